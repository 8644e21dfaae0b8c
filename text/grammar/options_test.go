package grammar

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A text of options begins with one of the texts, and goes on as its own schema says, with its own definitions.
func TestOptions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	g, err := Options(pieces(t, rng), []Option{
		{Before: `f": `, Schema: []byte(`{"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}},
			"required": ["a"], "additionalProperties": false, "$defs": {"x": {"type": "boolean"}}}`)},
		{Before: `ff": `, Schema: []byte(`{"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}},
			"required": ["a"], "additionalProperties": false, "$defs": {"x": {"enum": [1, 2]}}}`)},
	})
	require.NoError(t, err)
	seen := map[string]int{}
	for range 200 {
		text, ended := sample(t, g, rng)
		if !ended {
			continue
		}
		name, rest, found := strings.Cut(text, `": `)
		require.True(t, found, text)
		var given struct{ A any }
		require.NoError(t, json.Unmarshal([]byte(rest), &given), text)
		require.True(t, strings.HasPrefix(rest, "{"), "nothing stands in front of it: %q", text)
		if name == "f" {
			require.IsType(t, true, given.A)
		} else {
			require.Equal(t, "ff", name)
			require.Contains(t, []any{1.0, 2.0}, given.A)
		}
		seen[name]++
	}
	require.Greater(t, seen["f"], 10)
	require.Greater(t, seen["ff"], 10)
}

func TestOptionsThatAreRefused(t *testing.T) {
	v := pieces(t, rand.New(rand.NewPCG(1, 10)))
	fine := Option{Before: "a", Schema: []byte(`{"type": "object"}`), At: "one"}
	for want, options := range map[string][]Option{
		"want 1 to":          {},
		"other is false":     {fine, {Before: "b", Schema: []byte(`false`), At: "other"}},
		"other cannot be":    {fine, {Before: "b", Schema: []byte(`{`), At: "other"}},
		`has the keyword "i`: {fine, {Before: "b", Schema: []byte(`{"if": {}}`), At: "other"}},
		"other describes no": {fine, {Before: "b", Schema: []byte(`{"$ref": "#/$defs/l", "$defs": {"l": {
			"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/l"}}}}`), At: "other"}},
	} {
		_, err := Options(v, options)
		var refused *Error
		require.True(t, errors.As(err, &refused), "%s: %v", want, err)
		require.Contains(t, err.Error(), want)
	}
}
