package serve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const withTools = `"messages": [{"role": "user", "content": "Warm?"}],
	"tools": [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]`

// A call is read out of an answer; its arguments are JSON in a string, as they were written.
func TestToolCalls(t *testing.T) {
	const answer = "Let me see.\n<tool_call>\n" +
		"{\"name\": \"weather\", \"arguments\": {\"place\": \"Bern\", \"days\": 2}}\n" +
		"</tool_call>\n<tool_call>{\"name\": \"clock\"}</tool_call>"
	s := serve(t, says(t, answer))
	status, body := s.post(t, "/v1/chat/completions", `{`+withTools+`, "max_tokens": 150}`)
	require.Equal(t, 200, status, body)
	var whole struct{ Choices []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(body), &whole))
	got, err := json.Marshal(whole.Choices[0])
	require.NoError(t, err)
	require.JSONEq(t, `{"index": 0, "logprobs": null, "finish_reason": "tool_calls", "message": {"role": "assistant",
		"content": "Let me see.", "refusal": null, "tool_calls": [
			{"id": "call_2", "type": "function", "function":
				{"name": "weather", "arguments": "{\"place\":\"Bern\",\"days\":2}"}},
			{"id": "call_3", "type": "function", "function": {"name": "clock", "arguments": "{}"}}]}}`, string(got))

	// Streamed, a call is a delta with its name, and one with its arguments.
	status, body = s.post(t, "/v1/chat/completions", `{`+withTools+`, "max_tokens": 150, "stream": true}`)
	require.Equal(t, 200, status, body)
	require.Contains(t, body, `{"tool_calls":[{"index":0,"id":"call_5","type":"function",`+
		`"function":{"name":"weather","arguments":""}}]}`)
	require.Contains(t, body, `{"tool_calls":[{"index":0,"function":{"arguments":"{\"place\":\"Bern\",\"days\":2}"}}]}`)
	content, calls, finish := joinedChat(t, body)
	require.Equal(t, "Let me see.", content)
	require.Equal(t, "tool_calls", finish)
	require.Equal(t, []toolCall{
		{new(int), "call_5", "function", toolFunction{"weather", `{"place":"Bern","days":2}`}},
		{calls[1].Index, "call_6", "function", toolFunction{"clock", `{}`}},
	}, calls)
	require.Equal(t, 1, *calls[1].Index)

	// Without tools nothing is read out of the text.
	_, body = s.post(t, "/v1/chat/completions", `{`+withTools+`, "tool_choice": "none", "max_tokens": 150}`)
	require.Contains(t, body, `{\"name\": \"clock\"}`)
	require.Contains(t, body, `"finish_reason":"stop"`)
}

// With one call at most, an answer ends after it, and others in the same list are left out.
func TestOneCall(t *testing.T) {
	const one = `<tool_call>{"name": "weather", "arguments": {}}`
	for answer, tokens := range map[string]int{
		`So ` + one + `</tool_call><tool_call>{"name": "clock"}</tool_call>`: len(idsOf(t, `So `+one)),
		`<tool_call>[{"name": "weather"}, {"name": "clock"}]</tool_call>`: len(idsOf(t,
			`<tool_call>[{"name": "weather"}, {"name": "clock"}]`)),
	} {
		s := serve(t, says(t, answer))
		for _, stream := range []string{"", `, "stream": true, "stream_options": {"include_usage": true}`} {
			status, body := s.post(t, "/v1/chat/completions", `{`+withTools+`, "parallel_tool_calls": false`+stream+`}`)
			require.Equal(t, 200, status, body)
			require.Contains(t, body, `"name":"weather"`)
			require.NotContains(t, body, "clock")
			require.Contains(t, body, `"finish_reason":"tool_calls"`)
			var decoded int
			_, usage, _ := strings.Cut(body, `"completion_tokens":`)
			_, err := fmt.Sscanf(usage, "%d", &decoded)
			require.NoError(t, err, body)
			require.InDelta(t, tokens, decoded, 1, "a token may be of a call and of what follows")
		}
	}
}

// joinedChat is what a stream comes to: its content, its calls put together by their index, and why it ended.
func joinedChat(t testing.TB, stream string) (content string, calls []toolCall, finish string) {
	for _, event := range strings.Split(strings.TrimSuffix(stream, "\n\ndata: [DONE]\n\n"), "\n\n") {
		var chunk struct {
			Choices []struct {
				Delta  chatDelta
				Finish *string `json:"finish_reason"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &chunk))
		for _, c := range chunk.Choices {
			require.Empty(t, finish)
			if c.Delta.Content != nil {
				content += *c.Delta.Content
			}
			for _, call := range c.Delta.ToolCalls {
				if *call.Index == len(calls) {
					require.NotEmpty(t, call.ID)
					require.NotEmpty(t, call.Function.Name)
					calls = append(calls, call)
					continue
				}
				require.Equal(t, len(calls)-1, *call.Index)
				require.Empty(t, call.ID+call.Type+call.Function.Name)
				calls[len(calls)-1].Function.Arguments += call.Function.Arguments
			}
			if c.Finish != nil {
				finish = *c.Finish
			}
		}
	}
	return content, calls, finish
}

// A model whose template writes calls as Llama's does has them read.
func TestCallsOfLlama(t *testing.T) {
	const asks = `{{ tools }}{% for m in messages %}<|{{ m.role }}|>{% for c in m.tool_calls or [] %}` +
		`{"name": "{{ c.function.name }}", "parameters": {{ c.function.arguments | tojson }}}` +
		`{% else %}{{ m.content }}{% endfor %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}`
	s := newTest(says(t, `{"name": "weather", "parameters": {"place": "Bern"}}`), func(c *Config) {
		c.Chat = format(asks)
	}).start(t)
	status, body := s.post(t, "/v1/chat/completions", `{`+withTools+`, "max_tokens": 99, "stream": true}`)
	require.Equal(t, 200, status, body)
	content, calls, finish := joinedChat(t, body)
	require.Empty(t, content)
	require.Equal(t, "tool_calls", finish)
	require.Equal(t, toolFunction{"weather", `{"place":"Bern"}`}, calls[0].Function)
	_, body = s.post(t, "/v1/chat/completions", `{`+withTools+`, "max_tokens": 99}`)
	require.Contains(t, body, `"content":null`)
	require.Contains(t, body, `"finish_reason":"tool_calls"`)
}

// An answer that is cut off inside of a call has its text.
func TestUnfinishedCall(t *testing.T) {
	const answer = `<tool_call>{"name": "weather"}</tool_call>`
	s := serve(t, says(t, answer))
	status, body := s.post(t, "/v1/chat/completions", `{`+withTools+`, "max_tokens": 9, "stream": true}`)
	require.Equal(t, 200, status)
	content, calls, finish := joinedChat(t, body)
	require.Empty(t, calls)
	require.Equal(t, finishLength, finish)
	require.Equal(t, words().Decode(idsOf(t, answer)[:9], true), content)
}

// Calls in a form that is not known are refused with the tools, rather than left in the text, and so are tools that the
// template would leave out of the prompt.
func TestFormsOfCalls(t *testing.T) {
	for template, want := range map[string]string{
		chatML:           "",
		`{{ messages }}`: "knows no tools",
		`{{ tools }}`:    "in a form that is not known",
		`{{ tools }}<tool_call><function=f><parameter=arguments></tool_call>`: "",
		`{{ tools }}[TOOL_CALLS] [{"name": "f", "arguments": {}}]`:            "",
		`{{ tools }}<tool_call>{"name": "f", "arguments": {}}</tool_call>`:    "",
		`{% if tools %}{% endif %}<tool_call>arguments</tool_call>`:           "leaves tools out",
		`{{ tools }}{% for m in messages %}{{ m.tool_calls }}{% endfor %}`:    "not known",
	} {
		s := newTest(says(t, "x"), func(c *Config) { c.Chat = format(template) }).start(t)
		status, body := s.post(t, "/v1/chat/completions", `{`+withTools+`}`)
		if want == "" {
			require.Equal(t, 200, status, "%s: %s", template, body)
			continue
		}
		require.Equal(t, 400, status, template)
		require.Equal(t, "tools", faultOf(t, body).Param)
		require.Contains(t, faultOf(t, body).Message, want)
	}
}

// A template that looks for tools in the system message finds them there: in JSON, as Phi-4-mini's does, or as a list,
// as the first GLM-4's; without what is not for the model.
func TestToolsOfTheSystemMessage(t *testing.T) {
	const tools = `"tools": [{"type":"function","function": {"name": "f", "strict": false}}]`
	for template, want := range map[string]string{
		`{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% if m['tools'] %}` +
			`{{ '<|tool|>' + m['tools'] + '<|/tool|>' }}{% endif %}{% endfor %}<|assistant|>`: `<|tool|>[{"type": ` +
			`"function", "function": {"name": "f"}}]<|/tool|>`,
		`{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% if m['tools'] %}# 可用工具{% for tool in m['tools'] %}` +
			`{{ tool['function'] | tojson }}{% endfor %}{% endif %}{% endfor %}<|assistant|>`: `# 可用工具{"name": "f"}`,
	} {
		s := newTest(says(t, "x"), func(c *Config) { c.Chat = format(template) }).start(t)
		for messages, system := range map[string]string{
			`{"role": "user", "content": "a"}`:                                       ``,
			`{"role": "system", "content": "Be."}, {"role": "user", "content": "a"}`: `Be.`,
		} {
			_, body := s.post(t, "/tokenize", `{"messages": [`+messages+`], `+tools+`}`)
			var got struct{ Tokens []int }
			require.NoError(t, json.Unmarshal([]byte(body), &got), body)
			require.Equal(t, `<|system|>`+system+want+`<|user|>a<|assistant|>`, words().Decode(got.Tokens, false))
		}
	}
}

// Calls and their results go back to the template, which finds arguments as values.
func TestCallsInMessages(t *testing.T) {
	const messages = `{"messages": [{"role": "assistant", "content": null, "tool_calls": [{"id": "1",
		"type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]},
		{"role": "tool", "tool_call_id": "1", "content": "7"}]}`
	for template, want := range map[string]string{
		chatML: `<|assistant|><tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>` + `<|tool|>7<|assistant|>`,
		// unless it wants them as text
		`{{ tools }}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}>>>{{ c.function.name }}` +
			"\n" + `{{ '' + c.function.arguments }}{% endfor %}{% endfor %}`: ">>>f\n" + `{"a": 1}7`,
	} {
		s := newTest(says(t, "x"), func(c *Config) { c.Chat = format(template) }).start(t)
		_, body := s.post(t, "/tokenize", messages)
		var got struct{ Tokens []int }
		require.NoError(t, json.Unmarshal([]byte(body), &got), body)
		require.Contains(t, words().Decode(got.Tokens, false), want)
	}
}

// Where a template finds tools in the system message, each takes a look through the prompt: there is a bound of them.
func TestMostTools(t *testing.T) {
	s := newTest(says(t, "x"), func(c *Config) {
		c.Chat = format(`{% for m in messages %}{{ m.content }}{{ m.tools }}{% endfor %}<tool_call>arguments` +
			`</tool_call>`)
	}).start(t)
	const tool = `{"type": "function", "function": {"name": "f"}}`
	for n, want := range map[int]string{1024: "context_length_exceeded",
		1025: "tools has 1025 items; want at most 1024"} {
		_, body := s.post(t, "/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}], "tools": [`+tool+
			strings.Repeat(", "+tool, n-1)+`]}`)
		require.Contains(t, body, want)
	}
}
