package serve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// strictly makes the first of two tools strict.
var strictly = strings.Replace(twoTools, `"name": "weather",`, `"name": "weather", "strict": true,`, 1)

// babbling begins an answer with a text, and then says anything.
func babbling(t testing.TB, text string) *scripted {
	ids := idsOf(t, text)
	e := newScripted(func(prompt, out []int) int {
		if len(out) < len(ids) {
			return ids[len(out)]
		}
		return hashed(prompt, out)
	})
	e.limits.MaxSeq = 3000
	return e
}

// checkCall checks a call of one of the two tools: of the strict one against its schema.
func checkCall(t testing.TB, call toolCall) {
	t.Helper()
	var given map[string]any
	require.NoError(t, json.Unmarshal([]byte(call.Function.Arguments), &given), call.Function.Arguments)
	if call.Function.Name != "weather" {
		require.Equal(t, "weather_map", call.Function.Name)
		return
	}
	require.Len(t, given, 1)
	require.IsType(t, 1.0, given["days"])
}

// Where a model begins a call, nothing but a call of a tool goes on, whose arguments follow the schema of one that is
// strict; with tokens chosen by the kernel or the host, and alongside other answers.
func TestStrictCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	seen := map[string]int{}
	for _, sequences := range []int{1, 3} {
		e := babbling(t, `Let me see.<tool_call>`)
		e.limits.Sequences, e.masks = sequences, sequences > 1
		s := serve(t, e)
		for seed := range 12 {
			temperature := `2`
			if seed%3 == 0 {
				temperature = `0`
			}
			status, body := s.post(t, "/v1/chat/completions", fmt.Sprintf(`{%s, "temperature": %s, "top_k": 1,
				"seed": %d, "max_tokens": 300, "stream": true, "parallel_tool_calls": %t}`,
				strings.Replace(strictly, "Warm?", fmt.Sprint(seed), 1), temperature, seed, seed%2 == 0))
			require.Equal(t, 200, status, body)
			content, calls, finish := joinedChat(t, body)
			require.True(t, strings.HasPrefix(content, "Let me see."), content)
			if finish == finishLength && len(calls) == 0 { // it is cut inside of the call
				require.True(t, strings.HasPrefix(content, `Let me see.<tool_call>{"name": "weather`), content)
				continue
			}
			require.NotContains(t, content, "<tool_call>{")
			for _, call := range calls {
				checkCall(t, call)
				seen[call.Function.Name]++
			}
			if seed%2 == 1 {
				require.Len(t, calls, 1)
				require.Equal(t, "tool_calls", finish)
			}
		}
	}
	require.Positive(t, seen["weather"])
	require.Positive(t, seen["weather_map"])
}

// Text without a call is what it is without strict, and so are other ends of an answer.
func TestStrictToolsChangeNoText(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	e := newScripted(hashed)
	e.limits.Sequences, e.masks = 2, true
	for _, e := range []Engine{newScripted(hashed), e} {
		s := serve(t, e)
		for seed := range 8 {
			fields := fmt.Sprintf(`, "temperature": %d, "seed": %d, "max_tokens": 60, "n": 2`, seed%2, seed)
			with := strings.Replace(strictly, "Warm?", fmt.Sprint(seed), 1)
			without := strings.Replace(with, `"strict": true`, `"strict": null`, 1)
			want, _ := s.ask(t, "/v1/chat/completions", without+fields)
			got, _ := s.ask(t, "/v1/chat/completions", with+fields)
			require.Len(t, got, 2)
			for i := range 2 {
				require.Equal(t, want[i].text, got[i].text)
			}
		}
	}
}

// Markers that are special tokens constrain calls too, after a thought that has them. Other special tokens that are not
// shown are text.
func TestStrictCallsBetweenSpecialTokens(t *testing.T) {
	const template = `{{ tools }}{% for m in messages %}{% if m.reasoning_content %}[THINK]{{ m.reasoning_content }}` +
		`[/THINK]{% endif %}{{ m.content }}{% for c in m.tool_calls or [] %}[TOOL_CALLS]{{ c.function.name }}[ARGS]` +
		`{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}`
	tok := withSpecial(t, "[THINK]", "[/THINK]", "[TOOL_CALLS]", "[ARGS]", "[HIDDEN]")
	ids, err := tok.Encode(`[THINK]A [TOOL_CALLS]b[/THINK]So[HIDDEN]: [TOOL_CALLS][HIDDEN]`, false)
	require.NoError(t, err)
	e := newScripted(func(prompt, out []int) int {
		if len(out) < len(ids) {
			return ids[len(out)]
		}
		return hashed(prompt, out)
	})
	e.limits.Vocab, e.limits.MaxSeq, e.masks = vocab+5, 3000, true
	s := newTest(e, func(c *Config) { c.Tokenizer, c.Chat = tok, format(template) }).start(t)
	whole, both := 0, strings.ReplaceAll(twoTools, `"name": "weather`, `"strict": true, "name": "weather`)
	for seed := range 10 {
		status, body := s.post(t, "/v1/chat/completions", fmt.Sprintf(`{%s, "max_tokens": 400, "stream": true,
			"parallel_tool_calls": false}`, strings.Replace(both, "Warm?", fmt.Sprint(seed), 1)))
		require.Equal(t, 200, status, body)
		content, calls, finish := joinedChat(t, body)
		if finish == finishLength {
			continue
		}
		require.True(t, strings.HasPrefix(content, "So:"), content) // the last token may have more than a bracket
		require.Contains(t, body, `"reasoning_content"`)
		require.Len(t, calls, 1, body)
		checkCall(t, calls[0])
		whole++
	}
	require.Positive(t, whole)
}

// Responses say strict alongside the name of a tool.
func TestStrictToolsOfResponses(t *testing.T) {
	s := serve(t, babbling(t, `<tool_call>`))
	status, body := s.post(t, responsesPath, `{"input": "a", "max_output_tokens": 200, "parallel_tool_calls": false,
		"tools": [{"type": "function", "name": "f", "strict": true, "parameters": {"type": "object", "properties": {
			"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": false}}]}`)
	require.Equal(t, 200, status, body)
	var whole response
	require.NoError(t, json.Unmarshal([]byte(body), &whole))
	require.Len(t, whole.Output, 1, body)
	require.Equal(t, itemCall, whole.Output[0].Type)
	require.Contains(t, []string{`{"a":true}`, `{"a":false}`}, *whole.Output[0].Arguments)
}

// What cannot be held is refused, with what would be accepted.
func TestStrictToolsThatAreRefused(t *testing.T) {
	const call = `{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}`
	for template, want := range map[string]string{
		`{{ tools }}` + call + `<tool_call><function={{ c.function.name }}>{% for k, v in ` +
			`c.function.arguments.items() %}<parameter={{ k }}>{{ v if v is string else v | tojson }}</parameter>` +
			`{% endfor %}</function></tool_call>{% endfor %}{% endfor %}`: "do not have their arguments as JSON",
		`{{ tools }}` + call + `{"name": "{{ c.function.name }}", "parameters": {{ c.function.arguments | tojson }}}` +
			`{% endfor %}{% endfor %}`: "nothing marks where the model's calls begin",
		`{{ tools }}{% for m in messages %}{{ m.content }}{% if m.tool_calls and messages | length > 2 %}` +
			`{{ raise_exception('no calls here') }}{% endif %}{% for c in m.tool_calls or [] %}<tool_call>` +
			`{{ c.function | tojson }}</tool_call>{% endfor %}{% endfor %}`: "no calls here",
	} {
		s := newTest(says(t, "x"), func(c *Config) { c.Chat = format(template) }).start(t)
		const asks = `{"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "a"}],
			"tools": [{"type": "function", "function": {"name": "f", "strict": %s}}]%s}`
		status, body := s.post(t, "/v1/chat/completions", fmt.Sprintf(asks, "true", ""))
		require.Equal(t, 400, status, "%s: %s", template, body)
		require.Equal(t, "tools", faultOf(t, body).Param)
		require.Equal(t, "unsupported_parameter", faultOf(t, body).Code)
		require.Contains(t, faultOf(t, body).Message, want)
		require.Contains(t, faultOf(t, body).Message, "want strict false, or none")
		for _, c := range [][2]string{{"false", ""}, {"null", ""}, {"true", `, "tool_choice": "none"`}} {
			status, body = s.post(t, "/v1/chat/completions", fmt.Sprintf(asks, c[0], c[1]))
			require.Equal(t, 200, status, body)
		}
	}
	s := serve(t, says(t, "x"))
	for fields, want := range map[string]string{
		strings.Replace(strictly, `"integer"`, `"integer", "not": {}`, 1): `parameters of "weather":/properties`,
		strings.Replace(strictly, `true`, `1`, 1):                         "strict is not as expected",
		strictly + `, "ignore_eos": true`:                                 "tools that are strict",
	} {
		status, body := s.post(t, "/v1/chat/completions", `{`+fields+`}`)
		require.Equal(t, 400, status, body)
		require.Contains(t, faultOf(t, body).Message, want)
	}
}
