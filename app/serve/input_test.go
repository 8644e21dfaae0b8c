package serve

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// prompted is what a server decodes of a body.
func prompted(t *testing.T, template, path, body string) string {
	t.Helper()
	var seen []int
	s := newTest(newScripted(func(prompt, _ []int) int {
		seen = prompt
		return eos
	}), func(c *Config) { c.Chat = format(template) }).start(t)
	status, answer := s.post(t, path, body)
	require.Equal(t, 200, status, "%s: %s", body, answer)
	return words().Decode(seen, false)
}

// Input, instructions and tools become the prompt that the same conversation has in chat completions.
func TestInput(t *testing.T) {
	const turns = `{%- if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<{{ m.role }}` +
		`{{ m.tool_call_id or '' }}{{ m.name or '' }}>{% if m.reasoning_content %}({{ m.reasoning_content }})` +
		`{% endif %}` +
		`{{ m.content or '' }}{% for c in m.tool_calls or [] %}[{{ c.id }} <tool_call>` +
		`{{ c.function | tojson }}</tool_call>]{% endfor %}{% endfor %}{{ reasoning_effort }}`
	for input, messages := range map[string]string{
		`"input": "Hi"`: `{"role": "user", "content": "Hi"}`,
		`"input": [{"role": "user", "content": ""}]`: `{"role": "user", "content": ""}`,
		`"instructions": "Be kind.", "input": [{"type": "message", "role": "developer", "content": [
			{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]}]`: `
			{"role": "system", "content": "Be kind."}, {"role": "system", "content": "a\nb"}`,
		// A turn of the assistant is a message, whether it thinks, says or calls.
		`"input": [{"role": "user", "content": "a"},
			{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": null, "content": [
				{"type": "reasoning_text", "text": "b"}]},
			{"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [
				{"type": "output_text", "text": "c", "annotations": [], "logprobs": []}]},
			{"type": "function_call", "id": "fc_1", "call_id": "1", "name": "f", "arguments": "{\"x\": 1}",
				"status": "completed"},
			{"type": "function_call", "call_id": "2", "name": "g", "arguments": "{}"},
			{"type": "function_call_output", "call_id": "1", "output": "7"},
			{"type": "function_call_output", "call_id": "2", "name": "g", "output": [
				{"type": "input_text", "text": "8"}]},
			{"role": "assistant", "content": "d"}]`: `{"role": "user", "content": "a"},
			{"role": "assistant", "content": "c", "reasoning_content": "b", "tool_calls": [
				{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}},
				{"id": "2", "type": "function", "function": {"name": "g", "arguments": "{}"}}]},
			{"role": "tool", "tool_call_id": "1", "content": "7"},
			{"role": "tool", "tool_call_id": "2", "name": "g", "content": "8"},
			{"role": "assistant", "content": "d"}`,
		`"input": [{"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
			{"type": "function_call_output", "call_id": "1", "output": "7"},
			{"type": "function_call", "call_id": "2", "name": "f", "arguments": "{}"}]`: `
			{"role": "assistant", "content": "", "tool_calls": [
				{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
			{"role": "tool", "tool_call_id": "1", "content": "7"},
			{"role": "assistant", "content": "", "tool_calls": [
				{"id": "2", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}`,
		`"input": [{"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
			{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"},
			{"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "c"}]},
			{"type": "reasoning", "summary": []}, {"role": "user", "content": "d"}]`: `
			{"role": "assistant", "content": "", "tool_calls": [
				{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
			{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"},
			{"role": "assistant", "content": "", "reasoning_content": "c"}, {"role": "user", "content": "d"}`,
	} {
		want := prompted(t, turns, "/v1/chat/completions", `{"messages": [`+messages+`]}`)
		require.Equal(t, want, prompted(t, turns, responsesPath, `{`+input+`}`), input)
	}
	const parameters = `"name": "f", "description": "d", "parameters": {"type": "object", "properties": ` +
		`{"b": {}, "a": {}}}`
	want := prompted(t, turns, "/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}],
		"reasoning_effort": "low", "tools": [{"type": "function", "function": {`+parameters+`}}]}`)
	require.Contains(t, want, `"b": {}, "a": {}`)
	require.Contains(t, want, "low")
	require.Equal(t, want, prompted(t, turns, responsesPath, `{"input": "a", "reasoning": {"effort": "low"},
		"tools": [{"strict": true, `+parameters+`, "type": "function"}]}`))
}

// What is wrong with a request is said with the field that is at fault.
func TestResponseRefusals(t *testing.T) {
	e := says(t, "x")
	s := serve(t, e)
	const bad, no = "invalid_value", "unsupported_parameter"
	for _, c := range []struct{ fields, code, param, want string }{
		{``, bad, "input", "there is no input"},
		{`"input": 5`, bad, "input", "a string or a list of items"},
		{`"input": []`, bad, "input", "at least one"},
		{`"input": ["a"]`, bad, "input[0]", "not an object"},
		{`"input": [{"type": 5}]`, bad, "input[0].type", "not a string"},
		{`"input": [{"type": "computer_call"}]`, no, "input[0].type", "want message, function_call"},
		{`"input": [{"type": "item_reference", "id": "msg_1"}]`, no, "input[0].type", "nothing is stored"},
		{`"input": [{"id": "msg_1"}]`, bad, "input[0].role", "one of system"},
		{`"input": [{"role": "tool", "content": "a"}]`, bad, "input[0].role", "one of system"},
		{`"input": [{"role": "user"}]`, bad, "input[0].content", "parts of type input_text"},
		{`"input": [{"role": "user", "content": [{"type": "input_image"}]}]`, no, "input[0].content", "input_image"},
		{`"input": [{"role": "user", "content": [{"type": "input_text"}]}]`, bad, "input[0].content", "not a string"},
		{`"input": [{"role": "assistant", "content": [{"type": "refusal", "refusal": "a"}]}]`, no, "input[0].content",
			"refusal"},
		{`"input": [{"role": "assistant", "content": "a", "phase": "commentary"}]`, no, "input[0].phase", "want none"},
		{`"input": [{"type": "function_call", "call_id": "1", "name": "f"}]`, bad, "input[0].arguments", "a string"},
		{`"input": [{"type": "function_call", "call_id": "1", "name": "f", "arguments": "{"}]`, bad,
			"input[0].arguments", "is not JSON"},
		{`"input": [{"type": "function_call_output", "output": "a"}]`, bad, "input[0].call_id", "a string"},
		{`"input": [{"type": "function_call_output", "call_id": "1", "output": 5}]`, bad, "input[0].output", "parts"},
		{`"input": [{"type": "reasoning", "encrypted_content": "a"}]`, no, "input[0].encrypted_content",
			"want content"},
		{`"input": [{"type": "reasoning", "summary": [{}]}]`, no, "input[0].summary", "want []"},
		{`"input": [{"type": "reasoning", "content": "a"}]`, bad, "input[0].content", "reasoning_text"},
		{`"input": "` + strings.Repeat("a ", 300) + `"`, "context_length_exceeded", "input", "256 tokens"},
		{`"input": "a", "instructions": ["a"]`, bad, "instructions", "a string"},
		{`"input": "a", "model": "other"`, "model_not_found", "model", `this server has "m"`},
		{`"input": "a", "max_output_tokens": 0`, bad, "max_output_tokens", "from 1"},
		{`"input": "a", "max_tokens": 1`, "unknown_parameter", "max_tokens", "no field"},
		{`"input": "a", "messages": []`, "unknown_parameter", "messages", "no field"},
		{`"input": "a", "previous_response_id": "resp_1"`, no, "previous_response_id", "nothing is stored"},
		{`"input": "a", "conversation": "conv_1"`, no, "conversation", "nothing is stored"},
		{`"input": "a", "prompt": {"id": "1"}`, no, "prompt", "nothing is stored"},
		{`"input": "a", "store": 1`, bad, "store", "true or false"},
		{`"input": "a", "background": true`, no, "background", "want false"},
		{`"input": "a", "truncation": "auto"`, no, "truncation", `want "disabled"`},
		{`"input": "a", "include": ["file_search_call.results"]`, no, "include", "message.output_text.logprobs"},
		{`"input": "a", "include": "a"`, bad, "include", "a list of strings"},
		{`"input": "a", "top_logprobs": 2`, bad, "top_logprobs", "goes with include"},
		{`"input": "a", "include": ["message.output_text.logprobs"], "top_logprobs": 21`, bad, "top_logprobs",
			"0 to 20"},
		{`"input": "a", "metadata": {"a": 1}`, bad, "metadata", "an object of strings"},
		{`"input": "a", "stream_options": {"include_obfuscation": true}`, bad, "stream_options", "goes with stream"},
		{`"input": "a", "stream": true, "stream_options": {"include_usage": true}`, "unknown_parameter",
			"stream_options.include_usage", "no field"},
		{`"input": "a", "text": "a"`, bad, "text", "an object"},
		{`"input": "a", "text": {"verbosity": "low"}`, no, "text.verbosity", "want none"},
		{`"input": "a", "text": {"formt": {}}`, "unknown_parameter", "text.formt", "no field"},
		{`"input": "a", "text": {"format": {"type": "xml"}}`, no, "text.format", "want text, json_object"},
		{`"input": "a", "text": {"format": {"type": "text", "name": "n"}}`, "unknown_parameter", "text.format.name",
			"no field"},
		{`"input": "a", "text": {"format": {"type": "json_schema", "name": "n"}}`, bad, "text.format.schema",
			"has no schema"},
		{`"input": "a", "text": {"format": {"type": "json_schema", "json_schema": {}}}`, "unknown_parameter",
			"text.format.json_schema", "no field"},
		{flatTools + `, "text": {"format": {"type": "json_object"}}, "ignore_eos": true`, no, "ignore_eos",
			"where it is whole"},
		{`"input": "a", "reasoning": 5`, bad, "reasoning", "an object"},
		{`"input": "a", "reasoning": {"effort": "low"}`, no, "reasoning.effort", "knows no reasoning_effort"},
		{`"input": "a", "reasoning": {"summary": "x"}`, bad, "reasoning.summary", "auto, concise or detailed"},
		{`"input": "a", "reasoning": {"mode": "pro"}`, no, "reasoning.mode", "want none"},
		{`"input": "a", "reasoning": {"x": "pro"}`, "unknown_parameter", "reasoning.x", "no field"},
		{`"input": "a", "tools": {}`, bad, "tools", "a list of objects"},
		{`"input": "a", "tools": [5]`, bad, "tools[0]", "an object"},
		{`"input": "a", "tools": [{"type": "web_search"}]`, no, "tools[0].type", "want function"},
		{`"input": "a", "tools": [{"type": "function"}]`, bad, "tools[0].name", "no name"},
		{`"input": "a", "tools": [{"type": "function", "function": {"name": "f"}}]`, no, "tools[0].function",
			"want none"},
		{`"input": "a", "tools": [{"type": "function", "name": "f", "parameters": 5}]`, bad, "tools[0].parameters",
			"an object"},
		{`"input": "a", "tool_choice": "required"`, bad, "tool_choice", "goes with tools"},
		{flatTools + `, "tool_choice": "any"`, no, "tool_choice", `"name": NAME`},
		{flatTools + `, "tool_choice": {"name": "weather"}`, no, "tool_choice", `"name": NAME`},
		{flatTools + `, "tool_choice": {"type": "function"}`, no, "tool_choice", `"name": NAME`},
		{flatTools + `, "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}`, no, "tool_choice",
			`"name": NAME`},
		{flatTools + `, "tool_choice": {"type": "function", "name": "clock"}`, bad, "tool_choice", "not one of tools"},
	} {
		status, body := s.post(t, responsesPath, `{`+c.fields+`}`)
		require.GreaterOrEqual(t, status, 400, "%s: %s", c.fields, body)
		require.Less(t, status, 500, c.fields)
		f := faultOf(t, body)
		require.Equal(t, c.code, f.Code, "%s: %s", c.fields, f.Message)
		require.Equal(t, c.param, f.Param, "%s: %s", c.fields, f.Message)
		require.Contains(t, f.Message, c.want, c.fields)
	}
	_, steps := e.load()
	require.Zero(t, steps, "nothing was decoded")

	s = newTest(e, func(c *Config) { c.Chat = nil }).start(t)
	_, body := s.post(t, responsesPath, `{"input": "a"}`)
	require.Equal(t, "no_chat_template", faultOf(t, body).Code)
	require.Equal(t, "input", faultOf(t, body).Param)
}
