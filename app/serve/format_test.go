package serve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

// chatted is what an answer to a chat says.
func chatted(t *testing.T, s *testServer, fields string) (text, finish string, tokens int) {
	t.Helper()
	status, body := s.post(t, "/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}], `+fields+`}`)
	require.Equal(t, 200, status, body)
	var answer struct {
		Choices []struct {
			Message struct{ Content string }
			Finish  string `json:"finish_reason"`
		}
		Usage usage
	}
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	return answer.Choices[0].Message.Content, answer.Choices[0].Finish, answer.Usage.Completion
}

// longer is an engine whose answers may be long.
func longer() *scripted {
	e := newScripted(hashed)
	e.limits.MaxSeq = 3000
	return e
}

// Whatever a model would say, and whichever tokens are drawn, what ends on its own is an object in JSON, and what is
// cut is the beginning of one.
func TestJSONObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	s := serve(t, longer())
	whole := 0
	for seed := range 30 {
		text, finish, tokens := chatted(t, s, fmt.Sprintf(
			`"response_format": {"type": "json_object"}, "temperature": 2, "top_k": %d, "seed": %d, "max_tokens": 400,
			"logit_bias": {"34": 3, "92": 4, "94": 4}`, seed%3*1000, seed))
		if finish == finishLength {
			require.Equal(t, 400, tokens)
			continue
		}
		require.Equal(t, finishStop, finish)
		whole++
		var into map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &into), "%q", text)
	}
	require.Greater(t, whole, 10)
	text, finish, tokens := chatted(t, s, `"response_format": {"type": "json_object"}, "max_tokens": 3`)
	require.Equal(t, finishLength, finish)
	require.Equal(t, 3, tokens)
	require.NotEmpty(t, text)
	require.False(t, json.Valid([]byte(text)))
}

// Answers follow a schema, which a validator of others confirms.
func TestJSONSchemas(t *testing.T) {
	s := serve(t, longer())
	for i, schema := range []string{
		`{"type": "object", "properties": {"ok": {"type": "boolean"}, "n": {"type": "integer"},
			"kind": {"enum": ["a", "ö", null]}},
			"required": ["ok", "n", "kind"], "additionalProperties": false}`,
		`{"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 3}`,
		`{"type": "integer"}`,
		`{"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {"v": {"const": 1},
			"next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/tree"}]}}, "required": ["next"],
			"additionalProperties": false}}}`,
	} {
		var parsed jsonschema.Schema
		require.NoError(t, json.Unmarshal([]byte(schema), &parsed))
		resolved, err := parsed.Resolve(nil)
		require.NoError(t, err)
		whole := 0
		for seed := range 10 {
			text, finish, _ := chatted(t, s, fmt.Sprintf(`"response_format": {"type": "json_schema", "json_schema":
				{"name": "x", "strict": true, "schema": %s}}, "temperature": 1.5, "seed": %d, "max_tokens": 300`,
				schema, seed))
			if finish == finishLength {
				continue
			}
			whole++
			var value any
			require.NoError(t, json.Unmarshal([]byte(text), &value), "%q", text)
			require.NoError(t, resolved.Validate(value), "%q", text)
		}
		require.Greater(t, whole, 5, "schema %d", i)
	}
}

// Without a temperature the most probable of the tokens that may follow is chosen.
func TestJSONIsGreedyToo(t *testing.T) {
	s := serve(t, newScripted(func(_, _ []int) int { return idsOf(t, "x")[0] }))
	fields := `"response_format": {"type": "json_schema", "json_schema": {"schema": {"enum": ["red", "green"]}}}`
	text, finish, _ := chatted(t, s, fields)
	require.Contains(t, []string{`"red"`, `"green"`}, strings.TrimPrefix(text, " "))
	require.Equal(t, finishStop, finish)
	again, _, _ := chatted(t, s, fields)
	require.Equal(t, text, again)
	masking := newScripted(func(_, _ []int) int { return idsOf(t, "x")[0] })
	masking.masks = true
	again, _, _ = chatted(t, serve(t, masking), fields)
	require.Equal(t, text, again, "the engine chooses what the host does")
}
