package reply

// An example is how models of one form are prompted, and what they write.
type example struct {
	template string // what the template writes of a call c; by default it is written from the words of one
	words    string // what it says instead, if it leaves calls out
	answers  []answered
}

type answered struct {
	answer, text string
	calls        []Call
}

const exampleTools = `[{"type": "function", "function": {"name": "weather", "parameters": {"type": "object",
	"properties": {"place": {"type": "string"}, "days": {"type": "integer"}, "exact": {"type": "boolean"},
		"parts": {"type": "array"}, "more": {"type": ["object", "null"]}, "any": {}}}}},
	{"name": "clock"}]`

// Calls that examples have.
var (
	bern  = Call{"weather", `{"place":"Bern","days":2}`}
	clock = Call{"clock", `{}`}
)

// parameters writes arguments in marks.
const parameters = `{% for k, v in c.function.arguments.items() %}<parameter={{ k }}>{{ v if v is string else v | ` +
	`tojson }}` +
	`</parameter>{% endfor %}`

const pairs = `{% for k, v in c.function.arguments.items() %}<arg_key>{{ k }}</arg_key>` + "\n" +
	`<arg_value>{{ v if v is string else v | tojson }}</arg_value>{% endfor %}`

const object = `{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}`

// pythonic writes a call in Python.
const pythonic = `{{ c.function.name }}({% for k, v in c.function.arguments.items() %}{{ k }}={{ v | tojson | ` +
	`replace('true', 'True') }}{{ ', ' if not loop.last }}{% endfor %})`

// examples are of all forms, by their names.
var examples = map[string]example{
	"Qwen3-Coder": {template: `<tool_call><function={{ c.function.name }}>` + parameters + `</function></tool_call>`,
		answers: []answered{
			{"Let me see.\n\n<tool_call>\n<function=weather>\n<parameter=place>\nBern\n</parameter>" +
				"\n<parameter=days>\n2\n" +
				"</parameter>\n</function>\n</tool_call>", "Let me see.", []Call{bern}},
			{"<tool_call>\n<function=clock>\n</function>\n</tool_call>\n<tool_call>\n<function=weather>" +
				"\n<parameter=place>\n" +
				"two\nlines\n</parameter>\n<parameter=exact>\nTrue\n</parameter>\n<parameter=more>" +
				"\nNone\n</parameter>\n" +
				"</function>\n</tool_call>", "", []Call{clock, {"weather",
				`{"place":"two\nlines","exact":true,"more":null}`}}},
			{"<tool_call>\n<function=clock>\n</function>\n<function=clock></function></tool_call>", "",
				[]Call{clock, clock}},
			{"<tool_call>weather</tool_call> is one", "<tool_call>weather</tool_call> is one", nil},
			{"<tool_call> is <tool_call><function=clock></function></tool_call>", "<tool_call> is", []Call{clock}},
			{"<tool_call>\n<function=weather>\n<parameter=place>\nBern", "<tool_call>\n<function=weather>\n" +
				"<parameter=place>\nBern", nil},
			{"<tool_call>\n<function=clock>\n</function>", "", []Call{clock}},
		}},
	"GLM-4.5": {template: `<tool_call>{{ c.function.name }}` + "\n" + pairs + `</tool_call>`, answers: []answered{
		{"<tool_call>weather\n<arg_key>place</arg_key>\n<arg_value>Bern</arg_value>\n<arg_key>days</arg_key>\n" +
			"<arg_value>2</arg_value>\n</tool_call>", "", []Call{bern}},
		{"So:\n<tool_call>clock</tool_call>", "So:", []Call{clock}},
		{`<tool_call>weather<arg_key>parts</arg_key><arg_value>["a", 1]</arg_value><arg_key>place</arg_key>` +
			`<arg_value>12</arg_value></tool_call>`, "", []Call{{"weather", `{"parts":["a",1],"place":"12"}`}}},
		{"<tool_call>we cannot call</tool_call>", "<tool_call>we cannot call</tool_call>", nil},
		{"<tool_call>weather<arg_key>days</tool_call>", "<tool_call>weather<arg_key>days</tool_call>", nil},
	}},
	"Seed-OSS": {template: `<seed:tool_call>` + "\n" + `<function={{ c.function.name }}>` + parameters +
		`</function></seed:tool_call>`, answers: []answered{
		{"<seed:tool_call>\n<function=weather>\n<parameter=place>Bern</parameter>\n<parameter=days>2</parameter>\n" +
			"</function>\n</seed:tool_call>", "", []Call{bern}},
	}},
	"MiniMax-M2": {template: `<minimax:tool_call><invoke name="{{ c.function.name }}">{% for k, v in ` +
		`c.function.arguments.items() %}<parameter name="{{ k }}">{{ v if v is string else v | tojson }}</parameter>` +
		`{% endfor %}</invoke></minimax:tool_call>`, answers: []answered{
		{"<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter name=\"place\">Bern</parameter>\n" +
			"<parameter name=\"days\">2</parameter>\n</invoke>\n<invoke name=\"clock\">\n</invoke>" +
			"\n</minimax:tool_call>",
			"", []Call{bern, clock}},
	}},
	"MiniCPM5": {template: `<function name="{{ c.function.name }}">{% for k, v in c.function.arguments.items() %}` +
		`<param name="{{ k }}">{{ v }}</param>{% endfor %}</function>`, answers: []answered{
		{"<function name=\"weather\"><param name=\"place\">Bern</param><param name=\"days\">2</param>" +
			"<param name=\"parts\">['a', {'b': None}]</param></function>\n<function name=\"clock\"></function>", "",
			[]Call{{"weather", `{"place":"Bern","days":2,"parts":["a",{"b":null}]}`}, clock}},
	}},
	"DeepSeek-V3.2": {template: dsml("function_calls"), answers: []answered{
		{"So.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"weather\">\n<｜DSML｜parameter name=\"place\" " +
			"string=\"true\">" +
			"Bern</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">2</｜DSML｜parameter>\n" +
			"</｜DSML｜invoke>\n</｜DSML｜function_calls>", "So.", []Call{bern}},
	}},
	"DeepSeek-V4": {template: dsml("tool_calls"), answers: []answered{
		{"<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"clock\">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>", "", []Call{clock}},
	}},
	"Hunyuan 3": {template: `<tool_calls:opensource><tool_call:opensource>{{ c.function.name }}<tool_sep:opensource>` +
		`{% for k, v in c.function.arguments.items() %}<arg_key:opensource>{{ k }}</arg_key:opensource>` +
		`<arg_value:opensource>{{ v if v is string else v | tojson }}</arg_value:opensource>{% endfor %}` +
		`</tool_call:opensource></tool_calls:opensource>`, answers: []answered{
		{"<tool_calls:opensource>\n<tool_call:opensource>clock<tool_sep:opensource>\n</tool_call:opensource>\n" +
			"</tool_calls:opensource>", "", []Call{clock}},
	}},
	"Kimi-K3": {template: `<|open|>tools<|sep|><|open|>call tool="{{ c.function.name }}" index="1"<|sep|>` +
		`{% for k, v in c.function.arguments.items() %}<|open|>argument key="{{ k }}" type="any"<|sep|>` +
		`{{ v if v is string else v | tojson }}<|close|>argument<|sep|>{% endfor %}<|close|>call<|sep|>` +
		`<|close|>tools<|sep|>`, answers: []answered{
		{`<|open|>tools<|sep|><|open|>call tool="weather" index="1"<|sep|><|open|>argument key="place" ` +
			`type="string"<|sep|>` +
			`Bern<|close|>argument<|sep|><|open|>argument key="days" type="number"<|sep|>2<|close|>argument<|sep|>` +
			`<|close|>call<|sep|><|open|>call tool="clock" index="2"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>` +
			``, "",
			[]Call{bern, clock}},
		{`<|open|>tools<|sep|> none`, `<|open|>tools<|sep|> none`, nil},
	}},
	"Muse": {template: `<atem:function_calls><atem:invoke name="{{ c.function.name }}">{% for k, v in ` +
		`c.function.arguments.items() %}<atem:parameter name="{{ k }}">{{ v if v is string else v | tojson }}` +
		`</atem:parameter>{% endfor %}</atem:invoke></atem:function_calls>`, answers: []answered{
		{"<atem:function_calls>\n<atem:invoke name=\"clock\">\n</atem:invoke>\n</atem:function_calls>", "",
			[]Call{clock}},
	}},
	"OLMo 3": {template: `<function_calls>` + pythonic + `</function_calls>`, answers: []answered{
		{"<function_calls>\nweather(place=\"Bern\", days=2)\nclock()\n</function_calls>", "", []Call{bern, clock}},
		{"<function_calls>weather(exact=true, more=null, parts=[1, {\"a\": 'b'}])</function_calls>", "",
			[]Call{{"weather", `{"exact":true,"more":null,"parts":[1,{"a":"b"}]}`}}},
		{"<function_calls>[clock()]</function_calls>", "", []Call{clock}},
		{"<function_calls>weather(Bern)</function_calls>", "<function_calls>weather(Bern)</function_calls>", nil},
		{"<function_calls></function_calls>", "<function_calls></function_calls>", nil},
	}},
	"LFM2": {template: `<|tool_call_start|>[` + pythonic + `]<|tool_call_end|>`, answers: []answered{
		{"<|tool_call_start|>[weather(place='Bern', days=2), clock()]<|tool_call_end|>Asking.", "Asking.",
			[]Call{bern, clock}},
	}},
	"Llama 3.2 and 4 in Python": {template: `[` + pythonic + `]`, answers: []answered{
		{"[weather(place='Bern', days=2), clock()]", "", []Call{bern, clock}},
		{"<|python_start|>[clock()]<|python_end|>", "", []Call{clock}},
		{`[weather(place='it\'s "so"', more={'a': (1, 2.5, -3e2)},)]`, "",
			[]Call{{"weather", `{"place":"it's \"so\"","more":{"a":[1,2.5,-3e2]}}`}}},
		{"[1] says so", "[1] says so", nil},
		{"[sum(a=1)]", "[sum(a=1)]", nil},
		{"See [clock()]", "See [clock()]", nil},
	}},
	"Gemma 4": {template: `<|tool_call>call:{{ c.function.name }}{{ '{' }}` + gemmaPairs(`<|"|>`) + `}<tool_call|>`,
		answers: []answered{
			{`<|tool_call>call:weather{place:<|"|>Bern<|"|>,days:2}<tool_call|><|tool_call>call:clock{}<tool_call|>` +
				``, "",
				[]Call{bern, clock}},
			{`<|tool_call>call:weather{more:{a:[<|"|>},"<|"|>]}}<tool_call|>`, "",
				[]Call{{"weather", `{"more":{"a":["},\""]}}`}}},
		}},
	"FunctionGemma": {template: `<start_function_call>call:{{ c.function.name }}{{ '{' }}` + gemmaPairs(`<escape>`) +
		`}<end_function_call>`, answers: []answered{
		{`<start_function_call>call:weather{place:<escape>Bern<escape>,days:2}<end_function_call>`, "", []Call{bern}},
	}},
}

func dsml(section string) string {
	return `<｜DSML｜` + section + `><｜DSML｜invoke name="{{ c.function.name }}">{% for k, v in ` +
		`c.function.arguments.items() %}<｜DSML｜parameter name="{{ k }}" string="{{ v is string }}">` +
		`{{ v if v is string else v | tojson }}</｜DSML｜parameter>{% endfor %}</｜DSML｜invoke></｜DSML｜` + section + `>`
}

// gemmaPairs writes arguments as Gemma does, whose strings have marks instead of quotes.
func gemmaPairs(quote string) string {
	return `{% for k, v in c.function.arguments.items() %}{{ k }}:{{ v | tojson | replace('"', '` + quote +
		`') }}{{ ',' if not loop.last }}{% endfor %}`
}
