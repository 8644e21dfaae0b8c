package serve

import (
	"encoding/json"
	"math/rand/v2"
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
		"content": "Let me see.\n", "refusal": null, "tool_calls": [
			{"id": "call_2", "type": "function", "function":
				{"name": "weather", "arguments": "{\"place\":\"Bern\",\"days\":2}"}},
			{"id": "call_3", "type": "function", "function": {"name": "clock", "arguments": "{}"}}]}}`, string(got))

	// Streamed, each call is one delta.
	status, body = s.post(t, "/v1/chat/completions", `{`+withTools+`, "max_tokens": 150, "stream": true}`)
	require.Equal(t, 200, status, body)
	content, calls, finish := joinedChat(t, body)
	require.Equal(t, "Let me see.\n", content)
	require.Equal(t, "tool_calls", finish)
	require.Len(t, calls, 2)
	require.Equal(t, toolCall{new(int), "call_5", "function",
		toolFunction{"weather", `{"place":"Bern","days":2}`}}, calls[0])
	require.Equal(t, "clock", calls[1].Function.Name)
	require.Equal(t, 1, *calls[1].Index)

	// Without tools nothing is read out of the text.
	_, body = s.post(t, "/v1/chat/completions", `{`+withTools+`, "tool_choice": "none", "max_tokens": 150}`)
	require.Contains(t, body, `{\"name\": \"clock\"}`)
	require.Contains(t, body, `"finish_reason":"stop"`)
}

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
			calls = append(calls, c.Delta.ToolCalls...)
			if c.Finish != nil {
				finish = *c.Finish
			}
		}
	}
	return content, calls, finish
}

// What is no call after all is text, none of it lost, and it does not depend on the parts.
func TestCallReader(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		text, want string
		calls      []toolFunction
	}{
		{"plain <text>", "plain <text>", nil},
		{`<tool_call>{"name":"f"}</tool_call>`, "", []toolFunction{{"f", "{}"}}},
		{`a <tool_call>{"name":"f","arguments":"{\"b\":1}"}</tool_call> c`, "a c", []toolFunction{{"f", `{"b":1}`}}},
		{`<tool_call>{"name":"f","arguments":[1, 2]}</tool_call>`, "", []toolFunction{{"f", `[1,2]`}}},
		{`<tool_call>{"name":5}</tool_call>x`, `<tool_call>{"name":5}</tool_call>x`, nil},
		{`<tool_call>nothing</tool_call>`, `<tool_call>nothing</tool_call>`, nil},
		{`<tool_call>{"name":"f"`, `<tool_call>{"name":"f"`, nil},
		{`</tool_call><tool_`, `</tool_call><tool_`, nil},
		{`<tool_call><tool_call>{"name":"f"}</tool_call>`, `<tool_call><tool_call>{"name":"f"}</tool_call>`, nil},
		{`<<tool_call>{"name":"f"}</tool_call>` + "\n" + `<tool_call>{"name":"g"}</tool_call>` + " \n", "<",
			[]toolFunction{{"f", "{}"}, {"g", "{}"}}},
	} {
		for range 50 {
			var r markedCalls
			var got string
			var calls []toolFunction
			for rest := c.text; rest != ""; {
				n := 1 + rng.IntN(len(rest))
				text, more := r.push(rest[:n])
				got, calls, rest = got+text, append(calls, more...), rest[n:]
			}
			got += r.end()
			require.Equal(t, c.want, got, c.text)
			require.Equal(t, c.calls, calls, c.text)
			require.Equal(t, c.calls != nil, r.found())
		}
	}
}

// So it is of calls without marks, which an answer begins with.
func TestBareCalls(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for _, c := range []struct {
		text, want string
		calls      []toolFunction
	}{
		{"plain {text}", "plain {text}", nil},
		{"  plain", "  plain", nil},
		{" ", " ", nil},
		{`{"name": "f", "parameters": {}}`, "", []toolFunction{{"f", "{}"}}},
		{"\n" + `{"name": "f", "parameters": {"a": "}\"{", "b": {"c": 1}}}` + "\n", "",
			[]toolFunction{{"f", `{"a":"}\"{","b":{"c":1}}`}}},
		{`{"name": "f", "parameters": {}}; {"name": "g", "parameters": {"x": 1}} and so on; {"name": "h"}`,
			`and so on; {"name": "h"}`, []toolFunction{{"f", "{}"}, {"g", `{"x":1}`}}},
		{`{"name": "f"}`, `{"name": "f"}`, nil},
		{`{"name": "f", "arguments": {}}`, `{"name": "f", "arguments": {}}`, nil},
		{`{"parameters": 1} {"name": "g", "parameters": {}}`, `{"parameters": 1} {"name": "g", "parameters": {}}`, nil},
		{`{"name": "f", "parameters": {"a"`, `{"name": "f", "parameters": {"a"`, nil},
		{`{name} is`, `{name} is`, nil},
		{`x {"name": "f", "parameters": {}}`, `x {"name": "f", "parameters": {}}`, nil},
		{`{"name": "f", "parameters": {}} {"name": "g"`, `{"name": "g"`, []toolFunction{{"f", "{}"}}},
	} {
		for range 50 {
			var r bareCalls
			var got string
			var calls []toolFunction
			for rest := c.text; rest != ""; {
				n := 1 + rng.IntN(len(rest))
				text, more := r.push(rest[:n])
				got, calls, rest = got+text, append(calls, more...), rest[n:]
			}
			got += r.end()
			require.Equal(t, c.want, got, c.text)
			require.Equal(t, c.calls, calls, c.text)
			require.Equal(t, c.calls != nil, r.any)
		}
	}
}

// A model whose template asks for calls as Llama's do has them read.
func TestCallsOfLlama(t *testing.T) {
	const asks = `{{ tools }}Respond in the format {"name": function name, "parameters": dictionary of argument name ` +
		`and its value}.{{ messages }}`
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

// Calls in a form that is not read are refused with the tools, rather than left in the text.
func TestFormsOfCalls(t *testing.T) {
	for template, want := range map[string]string{
		chatML:           "",
		`{{ messages }}`: "knows no tools",
		`{{ tools }}`:    "in a form that is not read",
		`{{ tools }}<tool_call><function=f><parameter=arguments></tool_call>`: "in a form that is not read",
		`{{ tools }}<tool_call>f<arg_key>arguments</arg_key></tool_call>`:     "in a form that is not read",
		`{{ tools }}[TOOL_CALLS] [{"name": "f", "arguments": {}}]`:            "in a form that is not read",
		`{{ tools }}<tool_call>{"name": "f", "arguments": {}}</tool_call>`:    "",
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

// Calls and their results go back to the template, which finds arguments as values.
func TestCallsInMessages(t *testing.T) {
	s := serve(t, says(t, "x"))
	_, body := s.post(t, "/tokenize", `{"messages": [{"role": "assistant", "content": null, "tool_calls": [{"id": "1",
		"type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]},
		{"role": "tool", "tool_call_id": "1", "content": "7"}]}`)
	var got struct{ Tokens []int }
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Equal(t, `<|assistant|>`+`<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>`+
		`<|tool|>7<|assistant|>`, words().Decode(got.Tokens, false))
}
