package serve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const twoTools = `"messages": [{"role": "user", "content": "Warm?"}], "tools": [
	{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {
		"days": {"type": "integer"}}, "required": ["days"], "additionalProperties": false}}},
	{"type": "function", "function": {"name": "weather_map", "parameters": {"type": "object", "properties": {
		"kind": {"$ref": "#/$defs/kind"}}, "required": ["kind"], "additionalProperties": false,
		"$defs": {"kind": {"enum": ["rain", "wind"]}}}}}]`

// An answer that has to be a call is one, of a tool that may be called, and its arguments follow the tool's schema.
func TestForcedCalls(t *testing.T) {
	s := serve(t, longer())
	seen := map[string]int{}
	for seed := range 40 {
		choice, name := `"required"`, ""
		switch seed % 4 {
		case 0:
			choice, name = `{"type": "function", "function": {"name": "weather"}}`, "weather"
		case 1:
			choice, name = `{"type": "function", "function": {"name": "weather_map"}}`, "weather_map"
		}
		status, body := s.post(t, "/v1/chat/completions", fmt.Sprintf(
			`{%s, "tool_choice": %s, "parallel_tool_calls": false, "temperature": 2, "seed": %d, "max_tokens": 400,
			"stream": true}`, twoTools, choice, seed))
		require.Equal(t, 200, status, body)
		content, calls, finish := joinedChat(t, body)
		require.Empty(t, content)
		require.Len(t, calls, 1, body)
		require.Equal(t, "tool_calls", finish)
		call := calls[0].Function
		var given map[string]any
		require.NoError(t, json.Unmarshal([]byte(call.Arguments), &given), call.Arguments)
		require.Len(t, given, 1)
		if call.Name == "weather" {
			require.IsType(t, 1.0, given["days"])
		} else {
			require.Equal(t, "weather_map", call.Name)
			require.Contains(t, []any{"rain", "wind"}, given["kind"])
		}
		if name != "" {
			require.Equal(t, name, call.Name)
		} else {
			seen[call.Name]++
		}
	}
	require.Positive(t, seen["weather"])
	require.Positive(t, seen["weather_map"])
}

// The prompt of such an answer ends as the template writes a call up to its arguments.
func TestPromptsOfForcedCalls(t *testing.T) {
	s := serve(t, says(t, "x"))
	for choice, want := range map[string]string{
		`"auto"`:     `Warm?<|assistant|>`,
		`"required"`: `Warm?<|assistant|><tool_call>{"name": "`,
		`{"type": "function", "function": {"name": "weather"}}`: `Warm?<|assistant|>` +
			`<tool_call>{"name": "weather", "arguments": `,
	} {
		_, body := s.post(t, "/tokenize", `{`+twoTools+`, "tool_choice": `+choice+`}`)
		var got struct{ Tokens []int }
		require.NoError(t, json.Unmarshal([]byte(body), &got), body)
		text := words().Decode(got.Tokens, false)
		require.True(t, strings.HasSuffix(text, want), text)
	}
}

// What is cut is told with the arguments so far.
func TestForcedCallThatIsCut(t *testing.T) {
	s := serve(t, says(t, "x"))
	status, body := s.post(t, "/v1/chat/completions", `{`+twoTools+`, "max_tokens": 2,
		"tool_choice": {"type": "function", "function": {"name": "weather"}}}`)
	require.Equal(t, 200, status, body)
	require.Contains(t, body, `"finish_reason":"length"`)
	require.Contains(t, body, `"name":"weather"`)
	// in front of its arguments it is text
	status, body = s.post(t, "/v1/chat/completions", `{`+twoTools+`, "tool_choice": "required", "max_tokens": 1}`)
	require.Equal(t, 200, status, body)
	require.Contains(t, body, `"finish_reason":"length"`)
	require.NotContains(t, body, "tool_calls")
}

// A model whose calls have no arguments in JSON cannot be made to call.
func TestFormsThatCannotBeForced(t *testing.T) {
	for template, want := range map[string]string{
		`{{ tools }}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call><function=` +
			`{{ c.function.name }}>{% for k, v in c.function.arguments.items() %}<parameter={{ k }}>` +
			`{{ v if v is string else v | tojson }}</parameter>{% endfor %}</function></tool_call>{% endfor %}` +
			`{% endfor %}`: "do not have their arguments as JSON",
		`{{ tools }}<tool_call></tool_call>arguments{{ messages[0].content }}`: "do not have their arguments as JSON",
		`{{ tools }}{% for m in messages %}{{ m.content }}{% if m.tool_calls and messages | length > 2 %}` +
			`{{ raise_exception('no calls here') }}{% endif %}{% for c in m.tool_calls or [] %}<tool_call>` +
			`{{ c.function | tojson }}</tool_call>{% endfor %}{% endfor %}`: "no calls here",
	} {
		s := newTest(says(t, "x"), func(c *Config) { c.Chat = format(template) }).start(t)
		status, body := s.post(t, "/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"},
			{"role": "user", "content": "a"}], "tools": [{"type": "function", "function": {"name": "f"}}],
			"tool_choice": "required"}`)
		require.Equal(t, 400, status, "%s: %s", template, body)
		require.Equal(t, "tool_choice", faultOf(t, body).Param)
		require.Contains(t, faultOf(t, body).Message, want)
	}
}
