package serve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// weathered is the format of an answer.
const weathered = `"response_format": {"type": "json_schema", "json_schema": {"name": "warm", "schema": {
	"type": "object", "properties": {"warm": {"type": "boolean"}, "degrees": {"type": "integer", "minimum": -60,
	"maximum": 60}}, "required": ["warm", "degrees"], "additionalProperties": false}}}`

// checkWarm checks that a text follows it.
func checkWarm(t *testing.T, text string) {
	t.Helper()
	var given struct {
		Warm    *bool
		Degrees *int
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&given), text)
	require.NotNil(t, given.Warm, text)
	require.True(t, *given.Degrees >= -60 && *given.Degrees <= 60, text)
}

// With tools and a format an answer is calls, of tools that there are, or follows the format; as agents send them.
func TestToolsAlongsideAFormat(t *testing.T) {
	bare := `{{ tools }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}` +
		`{"name": "{{ c.function.name }}", "parameters": {{ c.function.arguments | tojson }}}{% endfor %}{% endfor %}` +
		`{% if add_generation_prompt %}<|assistant|>{% endif %}`
	for name, template := range map[string]string{"marked": chatML, "bare": bare} {
		s := newTest(longer(), func(c *Config) { c.Chat = format(template) }).start(t)
		answers, called := 0, map[string]int{}
		for seed := range 40 {
			status, body := s.post(t, "/v1/chat/completions", fmt.Sprintf(`{%s, %s, "temperature": 2, "seed": %d,
				"max_tokens": 400, "stream": true, "parallel_tool_calls": %t}`,
				strings.Replace(strictly, "Warm?", fmt.Sprint(seed), 1), weathered, seed, seed%2 == 0))
			require.Equal(t, 200, status, body)
			content, calls, finish := joinedChat(t, body)
			if finish == finishLength {
				continue
			}
			if len(calls) == 0 {
				require.Equal(t, finishStop, finish)
				checkWarm(t, content)
				answers++
				continue
			}
			require.Equal(t, "tool_calls", finish)
			require.Empty(t, strings.TrimSpace(content))
			if seed%2 == 1 {
				require.Len(t, calls, 1)
			}
			for _, call := range calls {
				checkCall(t, call)
				called[call.Function.Name]++
			}
		}
		require.Positive(t, answers, name)
		require.Positive(t, called["weather"], name)
		require.Positive(t, called["weather_map"], name)
		for choice, calls := range map[string]bool{`"required"`: true, `"none"`: false,
			`{"type": "function", "function": {"name": "weather"}}`: true} {
			status, body := s.post(t, "/v1/chat/completions", fmt.Sprintf(`{%s, %s, "tool_choice": %s, "stream": true,
				"max_tokens": 400, "temperature": 0}`, twoTools, weathered, choice))
			require.Equal(t, 200, status, body)
			content, all, finish := joinedChat(t, body)
			if finish != finishLength {
				require.Equal(t, calls, len(all) == 1, body)
				if !calls {
					checkWarm(t, content)
				}
			}
		}
	}
}

// What a model would say is kept where it may be said: a thought, and a call or an answer after it. Marks in the answer
// are text of it.
func TestToolsAlongsideAFormatAreAsSaid(t *testing.T) {
	template := strings.Replace(chatML, `{%- for call`, `{% if m.reasoning_content %}<think>{{ m.reasoning_content }}`+
		`</think>{% endif %}{%- for call`, 1)
	const call = `<tool_call>{"name": "weather", "arguments": {"days":3}}</tool_call>`
	const quoting = `"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object",
		"properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}}}`
	const quoted = `{"a":"<tool_call>[{}]</tool_call> <think>b</think>"}`
	for answer, want := range map[string]struct{ thought, content, arguments string }{
		call: {"", "", `{"days":3}`},
		"<think>So <tool_call>it</think>\n\n" + call: {"So <tool_call>it", "", `{"days":3}`},
		"<think>So.</think>\n" + `{"a":"b"}`:         {"So.", `{"a":"b"}`, ""},
		quoted:                                       {"", quoted, ""},
	} {
		e := says(t, answer)
		e.limits.MaxSeq = 1000
		s := newTest(e, func(c *Config) { c.Chat = format(template) }).start(t)
		for _, stream := range []string{"", `, "stream": true`} {
			status, body := s.post(t, "/v1/chat/completions", `{`+twoTools+`, `+quoting+`, "temperature": 0`+stream+`}`)
			require.Equal(t, 200, status, body)
			reasoning, content, arguments := "", "", ""
			if stream == "" {
				var whole struct {
					Choices []struct{ Message chatMessage }
				}
				require.NoError(t, json.Unmarshal([]byte(body), &whole))
				m := whole.Choices[0].Message
				reasoning = m.Reasoning
				if m.Content != nil {
					content = *m.Content
				}
				for _, call := range m.ToolCalls {
					arguments += call.Function.Arguments
				}
			} else {
				reasoning, _ = thought(t, body)
				said, calls, _ := joinedChat(t, body)
				content = said
				for _, call := range calls {
					arguments += call.Function.Arguments
				}
			}
			require.Equal(t, want.thought, reasoning, body)
			require.Equal(t, want.content, strings.TrimSpace(content), body)
			require.Equal(t, want.arguments, arguments, body)
		}
	}
}

// Responses have both too; a model whose calls cannot be held, and schemas that cannot, are refused with the reason.
func TestToolsAlongsideAFormatOfResponses(t *testing.T) {
	s := serve(t, says(t, `{"warm":true,"degrees":3}`))
	status, body := s.post(t, "/v1/responses", `{"input": "Warm?", "tools": [{"type": "function", "name": "f",
		"parameters": {"type": "object"}, "strict": false}], "text": {"format": {"type": "json_schema", "name": "n",
		"schema": {"type": "object", "properties": {"warm": {"type": "boolean"}, "degrees": {"type": "integer"}},
		"required": ["warm", "degrees"], "additionalProperties": false}}}, "temperature": 0}`)
	require.Equal(t, 200, status, body)
	require.Contains(t, body, `"text":"{\"warm\":true,\"degrees\":3}"`)
	tagged := `{{ tools }}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>` +
		`<function={{ c.function.name }}>{% for k, v in c.function.arguments.items() %}<parameter={{ k }}>` +
		`{{ v if v is string else v | tojson }}</parameter>{% endfor %}</function></tool_call>{% endfor %}{% endfor %}`
	s = newTest(says(t, "x"), func(c *Config) { c.Chat = format(tagged) }).start(t)
	status, body = s.post(t, "/v1/chat/completions", `{`+twoTools+`, `+weathered+`}`)
	require.Equal(t, 400, status, body)
	require.Equal(t, "tools", faultOf(t, body).Param)
	require.Contains(t, faultOf(t, body).Message, "tools alongside a format of the answer are not supported for this")
	s = serve(t, says(t, "x"))
	wrong := strings.Replace(strictly, `"integer"`, `"integer", "not": {}`, 1)
	status, body = s.post(t, "/v1/chat/completions", `{`+wrong+`, `+weathered+`}`)
	require.Equal(t, 400, status, body)
	require.Equal(t, "unsupported_schema", faultOf(t, body).Code)
	require.Contains(t, faultOf(t, body).Message, `parameters of "weather":/properties`)
	status, body = s.post(t, "/v1/chat/completions", `{`+twoTools+`, `+weathered+`, "ignore_eos": true}`)
	require.Equal(t, 400, status, body)
	require.Equal(t, "ignore_eos", faultOf(t, body).Param)
}
