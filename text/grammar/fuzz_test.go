package grammar

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

// Whatever a schema holds, it is refused, or something follows at every point of its texts, and those are JSON.
func FuzzSchema(f *testing.F) {
	for _, schema := range []string{
		`{"type": "object", "properties": {"a": {"type": ["string", "null"]}, "ö": {"enum": [1, "x", [2]]}},
			"required": ["a"]}`,
		`{"type": "array", "items": {"anyOf": [{"const": 1.5}, {"$ref": "#/$defs/x"}]}, "minItems": 1, "maxItems": 3,
			"$defs": {"x": {"additionalProperties": {"$ref": "#"}}}}`,
		`{"$ref": "#/definitions/a", "definitions": {"a": {"items": {"$ref": "#/definitions/a"}}}}`,
		`{"minItems": 900, "items": {"minItems": 900, "items": {"minItems": 900, "items": {"$ref": "#"}}}}`,
		`{"anyOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}, "minItems": 2}, {"minItems": 3},
			{"enum": ["aaaa"]}]}`,
		`{"type": ["integer", "number"], "minimum": -1.5e1, "exclusiveMaximum": 99, "multipleOf": 3, "format": "int8"}`,
		`{"minLength": 2, "maxLength": 90000, "pattern": "^(?=.*[a-c]{2})[^\\d\"]+|(?:x?y){2,3}$", "format": "date"}`,
		`{"allOf": [{"pattern": "a"}, {"format": "uri"}], "maxLength": 30}`,
		`{"oneOf": [{"properties": {"k": {"const": 1}}, "required": ["k"]}, {"type": "null"}]}`,
		`{"prefixItems": [{"format": "time"}, true], "items": false, "minItems": 1}`,
		`{"propertyNames": {"pattern": "^a"}, "properties": {"ab": true, "b": true}, "required": ["ac"]}`,
		`{"additionalProperties": false, "title": "t"}`, `true`, `{}`, `{"items": false}`,
	} {
		f.Add([]byte(schema))
	}
	v := pieces(f, rand.New(rand.NewPCG(1, 2)))
	f.Fuzz(func(t *testing.T, schema []byte) {
		defer watch.Execution()()
		g, err := Schema(v, schema)
		if err != nil {
			var refused *Error
			require.ErrorAs(t, err, &refused)
			return
		}
		rng := rand.New(rand.NewPCG(3, uint64(len(schema))))
		if text, ended := sample(t, g, rng); ended {
			require.True(t, json.Valid([]byte(text)), "%q", text)
		}
	})
}
