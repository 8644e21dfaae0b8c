package reply

import "maps"

// Of forms with arguments in JSON.
func init() {
	maps.Copy(examples, map[string]example{
		"Mistral Small 3.2, Ministral 3, Devstral": {
			template: `[TOOL_CALLS]{{ c.function.name }}[CALL_ID]{{ c.id }}[ARGS]{{ c.function.arguments | tojson }}`,
			answers: []answered{
				{`[TOOL_CALLS]weather[ARGS]{"place": "Bern", "days": 2}`, "", []Call{bern}},
				{`So.[TOOL_CALLS]weather[CALL_ID]a1b2c3d4e[ARGS]{"place": "Bern", "days": 2}[TOOL_CALLS]clock[ARGS]` +
					`{}`, "So.",
					[]Call{bern, clock}},
				{`[TOOL_CALLS]clock[ARGS]{"a": }`, `[TOOL_CALLS]clock[ARGS]{"a": }`, nil},
				{`[TOOL_CALLS]clock[ARGS]{"a": [1`, `[TOOL_CALLS]clock[ARGS]{"a": [1`, nil},
			}},
		"Hunyuan": {template: "<tool_calls>\n<tool_call>{{ c.function.name }}\n```json\n{{ c.function.arguments | " +
			"tojson }}" +
			"\n```</tool_call>\n</tool_calls>", answers: []answered{
			{"<tool_calls>\n<tool_call>weather\n```json\n{\"place\": \"Bern\", \"days\": 2}\n```</tool_call>\n" +
				"<tool_call>clock\n```json\n{}\n```</tool_call>\n</tool_calls>", "", []Call{bern, clock}},
			{"<tool_calls> are <tool_call>s", "<tool_calls> are <tool_call>s", nil},
		}},
		"DeepSeek-R1": {template: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{{ c.function.name }}" +
			"\n```json\n" +
			"{{ c.function.arguments | tojson }}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", answers: []answered{
			{"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"place\": \"Bern\", " +
				"\"days\": 2}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>clock\n```json\n{}\n```" +
				"<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "", []Call{bern, clock}},
		}},
		"DeepSeek-V3.1": {template: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{{ c.function.name }}<｜tool▁sep｜>" +
			"{{ c.function.arguments | tojson }}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", answers: []answered{
			{"So.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>clock<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "So.",
				[]Call{clock}},
		}},
		"Kimi-K2": {template: "<|tool_calls_section_begin|><|tool_call_begin|>functions.{{ c.function.name }}:0" +
			"<|tool_call_argument_begin|>{{ c.function.arguments | tojson }}<|tool_call_end|>" +
			"<|tool_calls_section_end|>",
			answers: []answered{
				{"<|tool_calls_section_begin|><|tool_call_begin|>functions.clock:0<|tool_call_argument_begin|>{}" +
					"<|tool_call_end|><|tool_calls_section_end|>", "", []Call{clock}},
			}},
		"Solar": {template: "<|tool_calls|><|tool_call:begin|>{{ c.id }}<|tool_call:name|>{{ c.function.name }}" +
			"<|tool_call:args|>{{ c.function.arguments | tojson }}<|tool_call:end|><|calls|>", answers: []answered{
			{"<|tool_calls|><|tool_call:begin|>a1<|tool_call:name|>clock<|tool_call:args|>{}<|tool_call:end|>" +
				"<|calls|>", "",
				[]Call{clock}},
		}},
		"gpt-oss": {template: " to=functions.{{ c.function.name }}<|channel|>commentary json<|message|>" +
			"{{ c.function.arguments | tojson }}<|call|>", answers: []answered{
			{" to=functions.clock<|channel|>commentary json<|message|>{}<|call|>", "", []Call{clock}},
		}},
		"Functionary 3.1": {template: "<function={{ c.function.name }}>{{ c.function.arguments | tojson }}</function>",
			answers: []answered{
				{`<function=weather>{"place": "Bern", "days": 2}</function><function=clock>{}</function>`, "",
					[]Call{bern, clock}},
				{`<function=weather> is it`, `<function=weather> is it`, nil},
			}},
		"Functionary 3.2": {template: "{{ '\\n' }}>>>{{ c.function.name }}\n{{ '' + c.function.arguments }}",
			answers: []answered{
				{">>>all\nLet me see.\n>>>weather\n{\"place\": \"Bern\", \"days\": 2}\n>>>clock\n{}", "Let me see.",
					[]Call{bern, clock}},
				{">>> is a prompt", ">>> is a prompt", nil},
			}},
		"Hermes, Qwen, Granite 4, SmolLM3, EXAONE 4": {template: "<tool_call>\n" + object + "\n</tool_call>",
			answers: []answered{
				{"plain <text>  ", "plain <text>  ", nil},
				{`<tool_call>{"name":"f"}</tool_call>`, "", []Call{{"f", "{}"}}},
				{`a <tool_call>{"name":"f","arguments":"{\"b\":1}"}</tool_call> c`, "ac", []Call{{"f", `{"b":1}`}}},
				{`<tool_call>{"name":"f","arguments":[1, 2]}</tool_call>`, "", []Call{{"f", `[1,2]`}}},
				{`<tool_call>{"name":5}</tool_call>x`, `<tool_call>{"name":5}</tool_call>x`, nil},
				{`<tool_call>nothing</tool_call>`, `<tool_call>nothing</tool_call>`, nil},
				{`<tool_call>{"name":"f"`, `<tool_call>{"name":"f"`, nil},
				{`</tool_call><tool_`, `</tool_call><tool_`, nil},
				{`<tool_call><tool_call>{"name":"f"}</tool_call>`, `<tool_call>`, []Call{{"f", "{}"}}},
				{`<<tool_call>{"name":"f"}</tool_call>` + "\n" + `<tool_call>{"name":"g"}</tool_call>` + " \n", "<",
					[]Call{{"f", "{}"}, {"g", "{}"}}},
				{`<tool_call>{"name":"f","arguments":{"a":"</tool_call>\"}"}}</tool_call>`, "",
					[]Call{{"f", `{"a":"</tool_call>\"}"}`}}},
				{`<tool_call>{"name":"f"}`, "", []Call{{"f", "{}"}}},
				{"<tool_call>\n{\"name\": \"f\"}\n{\"name\": \"g\"}\n</tool_call>", "", []Call{{"f", "{}"}, {"g",
					"{}"}}},
				{`<tool_call>{{"name": "f", "arguments": {}}}</tool_call>`, "", []Call{{"f", "{}"}}},
				{`<tool_call>{{"name": "f", "arguments": {}}` + "\n</tool_call>", "", []Call{{"f", "{}"}}},
			}},
		"Mistral": {template: `[TOOL_CALLS] [{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments ` +
			`| ` +
			`tojson }}, "id": "{{ c.id }}"}]`, answers: []answered{
			{`[TOOL_CALLS] [{"name": "weather", "arguments": {"place": "Bern", "days": 2}}, {"name": "clock", ` +
				`"arguments": {},` +
				` "id": "abcdefghi"}]`, "", []Call{bern, clock}},
			{`[TOOL_CALLS] []`, `[TOOL_CALLS] []`, nil},
		}},
		"Granite 3": {words: "answer with <|tool_call|> and a JSON list", answers: []answered{
			{`<|tool_call|>[{"name": "weather", "arguments": {"place": "Bern", "days": 2}}, {"name": "clock"}]`, "",
				[]Call{bern, clock}},
		}},
		"Phi-4-mini": {words: "<|tool|>{{ tools }}<|/tool|>", answers: []answered{
			{`<|tool_call|>[{"name": "weather", "arguments": {"place": "Bern", "days": 2}}]<|/tool_call|>`, "",
				[]Call{bern}},
			{`functools[{"name": "weather", "arguments": {"place": "Bern", "days": 2}}, {"name": "clock"}]`, "",
				[]Call{bern, clock}},
			{"import functools\n", "import functools\n", nil},
			{"functools.cache is", "functools.cache is", nil},
		}},
		"Nemotron": {template: "<TOOLCALL>[" + object + "]</TOOLCALL>", answers: []answered{
			{`<TOOLCALL>[{"name": "weather", "arguments": {"place": "Bern", "days": 2}}, {"name": "clock"}]` +
				`</TOOLCALL>`, "",
				[]Call{bern, clock}},
		}},
		"Apriel, Hunyuan A13B, MiniMax-M1": {template: "<tool_calls>[" + object + "]</tool_calls>",
			answers: []answered{
				{`<tool_calls>[{"name": "weather", "arguments": {"place": "Bern", "days": 2}}]</tool_calls>`, "",
					[]Call{bern}},
				{"<tool_calls>\n{\"name\": \"weather\", \"arguments\": {\"place\": \"Bern\", \"days\": 2}}\n{" +
					"\"name\": \"clock\"}\n" +
					"</tool_calls>", "", []Call{bern, clock}},
			}},
		"Command R7B, Command A": {template: "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": " +
			"\"{{ c.function.name }}\", \"parameters\": {{ c.function.arguments | tojson }}}\n]<|END_ACTION|>",
			answers: []answered{
				{"<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"weather\", \"parameters\": " +
					"{\"place\": \"Bern\", \"days\": 2}},\n    {\"tool_call_id\": \"1\", \"tool_name\": \"clock\", " +
					"\"parameters\": {}}\n]<|END_ACTION|>", "", []Call{bern, clock}},
			}},
		"Command R": {template: "\nAction:\n```json\n[\n{\"tool_name\": \"{{ c.function.name }}\", \"parameters\": " +
			"{{ c.function.arguments | tojson(indent=4) }}}\n]```\n", answers: []answered{
			{"Action: ```json\n[\n    {\n        \"tool_name\": \"weather\",\n        \"parameters\": {\n           " +
				" " +
				"\"place\": \"Bern\",\n            \"days\": 2\n        }\n    }\n]\n```", "", []Call{bern}},
		}},
		"Apertus": {template: `<|tools_prefix|>[{"{{ c.function.name }}": {{ c.function.arguments | tojson }}}]` +
			`<|tools_suffix|>`, answers: []answered{
			{`So.<|tools_prefix|>[{"weather": {"place": "Bern", "days": 2}}, {"clock": {}}]<|tools_suffix|>`, "So.",
				[]Call{bern, clock}},
			{`<|tools_prefix|>[{"weather": 5}]<|tools_suffix|>`, `<|tools_prefix|>[{"weather": 5}]<|tools_suffix|>`,
				nil},
		}},
		"InternLM": {template: "<|action_start|><|plugin|>\n" + object + "<|action_end|>", answers: []answered{
			{"So.<|action_start|><|plugin|>\n{\"name\": \"weather\", \"parameters\": {\"place\": \"Bern\", " +
				"\"days\": 2}}" +
				"<|action_end|>", "So.", []Call{bern}},
		}},
		"HyperCLOVA X": {template: " -> tool/function_call\n[" + object + "]", answers: []answered{
			{" -> tool/function_call\n[{\"name\": \"clock\", \"arguments\": {}}]", "", []Call{clock}},
		}},
		"GigaChat 3": {template: "function call<|role_sep|>\n" + object, answers: []answered{
			{"So.function call<|role_sep|>\n{\"name\": \"clock\", \"arguments\": {}}", "So.", []Call{clock}},
		}},
		"GigaChat 3.1": {template: "<|function_call|>" + object, answers: []answered{
			{`<|function_call|>{"name": "clock", "arguments": {}}`, "", []Call{clock}},
		}},
		"Llama 3, xLAM": {template: `{"name": "{{ c.function.name }}", "parameters": {{ c.function.arguments | ` +
			`tojson }}}`,
			answers: []answered{
				{"plain {text}", "plain {text}", nil},
				{"  plain", "  plain", nil},
				{" ", " ", nil},
				{`{"name": "clock", "parameters": {}}`, "", []Call{clock}},
				{"\n" + `{"name": "weather", "parameters": {"a": "}\"{", "b": {"c": 1}}}` + "\n", "",
					[]Call{{"weather", `{"a":"}\"{","b":{"c":1}}`}}},
				{`{"name": "clock", "parameters": {}}; {"name": "weather", "parameters": {"x": 1}} and so on; ` +
					`{"name": "h"}`,
					`and so on; {"name": "h"}`, []Call{clock, {"weather", `{"x":1}`}}},
				{`<|python_tag|>{"name": "clock", "parameters": {}}`, "", []Call{clock}},
				{`[{"name": "clock", "arguments": {}}, {"name": "clock", "arguments": {}}]`, "", []Call{clock, clock}},
				{`{"name": "clock"}`, `{"name": "clock"}`, nil},
				{`{"name": "Anna", "parameters": {}}`, `{"name": "Anna", "parameters": {}}`, nil},
				{`{"parameters": 1} {"name": "clock", "parameters": {}}`,
					`{"parameters": 1} {"name": "clock", "parameters": {}}`,
					nil},
				{`{"name": "clock", "parameters": {"a"`, `{"name": "clock", "parameters": {"a"`, nil},
				{`{name} is`, `{name} is`, nil},
				{`x {"name": "clock", "parameters": {}}`, `x {"name": "clock", "parameters": {}}`, nil},
				{`{"name": "clock", "parameters": {}} {"name": "g"`, `{"name": "g"`, []Call{clock}},
			}},
		"GLM-4": {template: "{{ c.function.name }}\n{{ c.function.arguments | tojson }}", answers: []answered{
			{"weather\n{\"place\": \"Bern\", \"days\": 2}\nclock\n{}", "", []Call{bern, clock}},
			{"weather is\n{\"fine\": 1}", "weather is\n{\"fine\": 1}", nil},
			{"weather", "weather", nil},
			{"w\n{}", "w\n{}", nil},
		}},
	})
}
