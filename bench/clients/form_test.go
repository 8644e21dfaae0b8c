package clients

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckForm(t *testing.T) {
	for _, a := range []Answer{
		{Text: `{"a": 1}`, Finish: "stop"}, {Text: "{\n \"a\":true , \"b\":\"x\"}", Finish: "stop"},
		{Text: ``, Finish: "length"}, {Text: "{\n\t\"", Finish: "length"},
		{Text: `{"a": 2, "b": "so`, Finish: "length"},
	} {
		require.NoError(t, checkForm(a), a)
	}
	for _, a := range []Answer{
		{Text: `{"a": 1`, Finish: "stop"}, {Text: `{"a": 3}`, Finish: "stop"}, {Text: `{"b": "x"}`, Finish: "stop"},
		{Text: `{"a": 1, "b": 2}`, Finish: "stop"}, {Text: `{"a": 1, "c": "x"}`, Finish: "stop"},
		{Text: `{"a": 1} {"a": 1}`, Finish: "stop"}, {Text: `[]`, Finish: "stop"}, {Text: `{"a": 1}`, Finish: "error"},
		{Text: `of the`, Finish: "length"}, {Text: `{"b": `, Finish: "length"},
	} {
		require.Error(t, checkForm(a), a)
	}
}

// Each question is JSON, no two are the same, and forms are asked for greedily and with seeds.
func TestQuestions(t *testing.T) {
	seen, temperatures := map[string]bool{}, []any{}
	for i := range questions {
		q := Plan{Prompt: 7, Tokens: 7}.question(i)
		for _, stream := range []bool{false, true} {
			var fields map[string]any
			require.NoError(t, json.Unmarshal([]byte(q.body(stream)), &fields), q.body(stream))
			require.False(t, seen[q.path+q.body(stream)], q.body(stream))
			seen[q.path+q.body(stream)] = true
			if _, formed := fields["response_format"]; !stream && formed && i%kinds != toolKind {
				require.Equal(t, formKind, i%kinds)
				temperatures = append(temperatures, fields["temperature"])
				require.Equal(t, fields["temperature"] != 0., fields["seed"] != nil, q.fields)
			}
		}
	}
	require.Equal(t, []any{0., 0.9, 1.2}, temperatures)
}

func TestCheckCall(t *testing.T) {
	for _, a := range []Answer{{Text: "\x01f" + `{"a": 1}`, Finish: "tool_calls"},
		{Text: `{"a": 2, "b": "x"}`, Finish: "stop"},
		{Text: "\x01f" + `{"a":2}` + "\x01f" + `{"a":1}`, Finish: "tool_use"}, {Text: "<tool", Finish: "length"}} {
		require.NoError(t, checkCall(a), a)
	}
	for _, a := range []Answer{{Text: `{"a": 3}`, Finish: "stop"}, {Text: "\x01g" + `{"a": 1}`, Finish: "tool_calls"},
		{Text: "\x01f" + `{"a": 3}`, Finish: "tool_calls"}, {Text: "", Finish: "tool_calls"},
		{Text: "\x01f" + `{"a": 1, "b": 1}`, Finish: "tool_use"}} {
		require.Error(t, checkCall(a), a)
	}
}

// A call is the same whole and in a stream, of chats and of messages.
func TestCalls(t *testing.T) {
	want := Answer{Text: "So.\x01f" + `{"a":1}`}
	for _, c := range []struct {
		path, finish, body string
		stream             bool
	}{
		{chats, "tool_calls", `{"choices": [{"message": {"content": "So.", "tool_calls": [{"id": "7", "function":
			{"name": "f", "arguments": "{\"a\":1}"}}]}, "finish_reason": "tool_calls"}]}`, false},
		{chats, "tool_calls", `: 4 of 6 tokens of the prompt are read

data: {"choices": [{"delta": {"content": "So."}}]}

data: {"choices": [{"delta": {"tool_calls": [{"id": "8", "function": {"name": "f", "arguments": ""}}]}}]}

data: {"choices": [{"delta": {"tool_calls": [{"function": {"arguments": "{\"a\":1}"}}]}}]}

data: {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}

data: [DONE]

`, true},
		{messages, "tool_use", `{"content": [{"type": "text", "text": "So."}, {"type": "tool_use", "name": "f",
			"input": {"a": 1}}], "stop_reason": "tool_use"}`, false},
		{messages, "tool_use", `data: {"type": "content_block_delta", "delta": {"text": "So."}}

data: {"type": "content_block_start", "content_block": {"type": "tool_use", "name": "f", "input": {}}}

data: {"type": "content_block_delta", "delta": {"partial_json": "{\"a\": 1}"}}

data: {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}

`, true},
	} {
		want.Finish = c.finish
		got, err := read(strings.NewReader(c.body), c.path, c.stream)
		require.NoError(t, err, c.body)
		require.Equal(t, want, got, c.body)
	}
}
