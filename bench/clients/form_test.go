package clients

import (
	"encoding/json"
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
			if _, formed := fields["response_format"]; !stream && formed {
				require.Equal(t, formKind, i%kinds)
				temperatures = append(temperatures, fields["temperature"])
				require.Equal(t, fields["temperature"] != 0., fields["seed"] != nil, q.fields)
			}
		}
	}
	require.Equal(t, []any{0., 0.9, 1.2}, temperatures)
}
