package grammar

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

// schemaOf is a random schema of what is known.
func schemaOf(rng *rand.Rand, depth int) map[string]any {
	s := map[string]any{}
	if rng.IntN(4) == 0 {
		s["description"] = "note"
	}
	kinds := []string{"string", "number", "integer", "boolean", "null"}
	n := rng.IntN(18)
	if depth == 0 {
		n = rng.IntN(4)
		if rng.IntN(2) == 0 {
			n = 12 + rng.IntN(2)
		}
	}
	switch {
	case n == 12:
		s["type"] = "string"
		switch rng.IntN(3) {
		case 0:
			s["minLength"], s["maxLength"] = rng.IntN(3), 3+rng.IntN(5)
		case 1:
			s["pattern"] = []string{"^a*b?", "[^a]$", `^(na|\d{2,4}|.[€ö"])+$`}[rng.IntN(3)]
		default:
			s["allOf"] = []any{map[string]any{"pattern": "^[a-z]+"}, map[string]any{"maxLength": 5 + rng.IntN(5)}}
		}
	case n == 13:
		s["type"] = kinds[1+rng.IntN(2)]
		lo := float64(rng.IntN(4000)-2000) / []float64{1, 10, 100}[rng.IntN(3)]
		s[[]string{"minimum", "exclusiveMinimum"}[rng.IntN(2)]] = lo
		if rng.IntN(2) == 0 {
			s[[]string{"maximum", "exclusiveMaximum"}[rng.IntN(2)]] = lo + 1.5 + float64(rng.IntN(300))/4
		}
	case n == 14:
		s["prefixItems"] = []any{schemaOf(rng, depth-1), schemaOf(rng, depth-1)}
		s["items"] = []any{false, map[string]any{"type": "boolean"}}[rng.IntN(2)]
		if rng.IntN(2) == 0 {
			s["minItems"] = rng.IntN(3)
		}
	case n == 15:
		var of []any
		for _, name := range []string{"a", "b", "c"}[:2+rng.IntN(2)] {
			of = append(of, map[string]any{"type": "object", "required": []string{"kind"}, "properties": map[string]any{
				"kind": map[string]any{"const": name}, "value": schemaOf(rng, depth-1)}})
		}
		s["oneOf"] = of
	case n == 16:
		s["type"] = "object"
		s["additionalProperties"] = schemaOf(rng, depth-1)
		s["propertyNames"] = []any{map[string]any{"pattern": "^[ab]+$"}, map[string]any{"maxLength": 3},
			map[string]any{"enum": []string{"a", "b"}}}[rng.IntN(3)]
		s["properties"] = map[string]any{"a": schemaOf(rng, 0), "zzzz": true}
	case n == 17:
		s["allOf"] = []any{schemaOf(rng, depth-1)}
	case n == 0:
		s["enum"] = []any{"red", "reds", 1, 12, nil, "ö\"", map[string]any{"a": 1}}[:1+rng.IntN(7)]
	case n == 1:
		s["const"] = anything(rng, 1)
	case n <= 3:
		s["type"] = kinds[rng.IntN(len(kinds))]
	case n == 4:
		s["type"] = []string{kinds[rng.IntN(2)], kinds[2+rng.IntN(3)]}
	case n <= 6:
		s["type"] = "array"
		s["items"] = schemaOf(rng, depth-1)
		if rng.IntN(2) == 0 {
			s["minItems"] = rng.IntN(3)
		}
		if rng.IntN(2) == 0 {
			s["maxItems"] = 2 + rng.IntN(2)
		}
	case n == 7:
		s["anyOf"] = []any{schemaOf(rng, depth-1), schemaOf(rng, depth-1)}
	case n == 8:
		s["$ref"] = "#/$defs/" + []string{"list", "pair"}[rng.IntN(2)]
	default:
		s["type"] = "object"
		properties, required := map[string]any{}, []string{}
		for _, name := range []string{"name", "b", "é", "a\"b", "na"}[rng.IntN(3) : 3+rng.IntN(3)] {
			properties[name] = schemaOf(rng, depth-1)
			if rng.IntN(2) == 0 {
				required = append(required, name)
			}
		}
		s["properties"], s["required"] = properties, required
		switch rng.IntN(3) {
		case 0:
			s["additionalProperties"] = false
		case 1:
			s["additionalProperties"] = schemaOf(rng, 0)
		}
	}
	return s
}

// Texts of random schemas are valid, to a validator that shares nothing with this package.
func TestSchemas(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	v := pieces(t, rng)
	texts, ended := 0, 0
	for range 300 {
		s := schemaOf(rng, 3)
		s["$defs"] = map[string]any{
			"list": map[string]any{"type": "array", "items": map[string]any{"$ref": "#/$defs/pair"}, "maxItems": 2},
			"pair": map[string]any{"type": "object", "properties": map[string]any{"next": map[string]any{"anyOf": []any{
				map[string]any{"$ref": "#/$defs/pair"}, map[string]any{"type": "null"}}}}, "required": []string{"next"},
				"additionalProperties": false}}
		text, err := json.Marshal(s)
		require.NoError(t, err)
		g, err := Schema(v, text)
		require.NoError(t, err, "%s", text)
		var parsed jsonschema.Schema
		require.NoError(t, json.Unmarshal(text, &parsed))
		resolved, err := parsed.Resolve(nil)
		require.NoError(t, err)
		for range 4 {
			texts++
			said, end := sample(t, g, rng)
			if !end {
				continue
			}
			ended++
			var value any
			require.NoError(t, json.Unmarshal([]byte(said), &value), "%q of %s", said, text)
			require.NoError(t, resolved.Validate(value), "%q of %s", said, text)
		}
	}
	require.Greater(t, ended, texts*9/10)
}

func TestWhatSchemasDescribe(t *testing.T) {
	v := pieces(t, rand.New(rand.NewPCG(9, 10)))
	for _, c := range []struct{ schema, yes, no string }{
		{`{}`, `1|"x"|{}|[]|null| true`, `|x`},
		{`true`, `1`, ``},
		{`{"type": "integer"}`, `0|-5|123456789012345`, `1.0|01|1e3|"1"`},
		{`{"type": ["string", "null"]}`, `"a"|null`, `1`},
		{`{"type": ["integer", "number"]}`, `1|1.5`, `null`},
		{`{"enum": ["a", "ab", 1, [1, 2], {"k": null}]}`, `"a"|"ab"|1|[1,2]|{"k":null}`, `"abc"|2|[1]`},
		{`{"enum": ["a", 1, 2.5, true], "type": "number"}`, `1|2.5`, `"a"|true`},
		{`{"const": "<ö>"}`, `"<ö>"`, `"<"`},
		{`{"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3}`, `[1]|[1,2]|[1, 2,3]`,
			`[]|[1,2,3,4]|["a"]`},
		{`{"type": "array", "items": {"type": "integer"}, "minItems": 2}`, `[1,2]|[1,2,3,4,5]`, `[]|[1]`},
		{`{"items": {"type": "null"}, "maxItems": 0}`, `[]`, `[null]|{}`},
		{`{"items": false}`, `[]`, `[1]`},
		{`{"type": "array"}`, `[]|[1,"a",[]]`, `{}`},
		{`{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["b"],
			"additionalProperties": false}`, `{"b":"x"}|{"a":1,"b":"x"}|{ "a": 1,` + "\n" + ` "b": "x"` + "\n" + `}`,
			`{}|{"a":1}|{"b":"x","a":1}|{"b":"x","c":1}|{"a":1,"a":1,"b":"x"}|{"b":"x",}`},
		{`{"properties": {"a": {"type": "integer"}}}`, `{}|{"a":1}|{"z":[]}|{"a":1,"aa":"x","b":2}|{"":0}`,
			`{"a":"x"}|{"z":1,"a":"x"}|{"z":1,"a":1}|{"\u0061":"x"}|[]`},
		{`{"properties": {"ö": {"const": 1}, "öl": {"const": 2}}, "additionalProperties": {"type": "null"}}`,
			`{"ö":1,"öl":2,"ölä":null}|{"é":null}|{"õ":null}|{"ö":1,"öö":null}`, `{"ö":null}|{"öl":null}|{"é":1}`},
		{`{"required": ["x"]}`, `{"x":1}|{"x":{},"y":2}`, `{}|{"y":1}`},
		{`{"additionalProperties": {"type": "boolean"}}`, `{}|{"a":true,"b":false}`, `{"a":1}`},
		{`{"anyOf": [{"type": "integer"}, {"type": "object", "properties": {"v": {"$ref": "#"}}, "required": ["v"],
			"additionalProperties": false}]}`, `1|{"v":1}|{"v":{"v":{"v":2}}}`, `{}|{"v":"x"}`},
		{`{"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": {"type": "null"}}}`, `null`, `1`},
		{`{"$ref": "#/definitions/x", "definitions": {"x": {"type": "null"}}, "title": "T", "default": 1}`, `null`,
			`1`},
		{`{"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#"}}]}`, `"a"|[]|[["a"],"b"]`, `1`},
		{`{"properties": {"a": {"type": "null"}, "b": {"$ref": "#/properties/a"}}, "additionalProperties": false}`,
			`{"b":null}`, `{"b":1}`},
		{`{"prefixItems": [{"type": "string"}, {"type": "number"}], "items": false}`, `["a",1]`,
			`[]|["a"]|["a",1,2]|[1,1]`},
		{`{"prefixItems": [{"type": "string"}, {"type": "number"}], "minItems": 1}`, `["a"]|["a",1]`, `[]|["a",1,2]`},
		{`{"items": [{"type": "string"}], "additionalItems": {"type": "null"}}`, `["a"]|["a",null,null]`, `[]|["a",1]`},
		{`{"prefixItems": [true], "items": {"type": "null"}, "minItems": 3}`, `[1,null,null]|[1,null,null,null]`,
			`[1,null]|[1,2,null]`},
		{`{"prefixItems": [true, true], "maxItems": 3}`, `[1,2]|[1,2,3]`, `[1]|[1,2,3,4]`},
		{`{"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "null"}}, "description": "d"}`, `null`, `1`},
		{`{"allOf": [{"pattern": "^a"}, {"pattern": "b$"}, {"minLength": 3}], "type": "string"}`, `"aab"|"a\nb"`,
			`"ab"|"aba"|1`},
		{`{"oneOf": [{"type": "integer"}, {"type": "string"}]}`, `1|"a"`, `null`},
		{`{"type": "object", "propertyNames": {"enum": ["x", "y"]}, "additionalProperties": {"type": "null"}}`,
			`{}|{"x":null,"y":null}|{"y":null}`, `{"z":null}|{"x":1}|{"x":null,"x":null}`},
		{`{"propertyNames": {"pattern": "^[a-c]+$"}, "properties": {"a": {"type": "null"}, "d": true}}`,
			`{"a":null,"b":1}|{"aa":1}`, `{"a":1}|{"d":1}|{"bd":1}`},
		{`{"patternProperties": {"^[ab]+$": {"type": "null"}}, "properties": {"c": {"const": 1}}, "required": ["aa"],
			"additionalProperties": false}`, `{"aa":null}|{"c":1,"aa":null,"b":null}`,
			`{}|{"aa":1}|{"aa":null,"d":null}`},
		{`{"type": "string", "contentEncoding": "base64", "x-hint": 1, "uniqueItems": false}`, `"a"`, `1`},
		{`{"type": ["string", "integer"], "format": "uint8"}`, `"abc"|255`, `256`},
		{`{"type": "string", "format": "int64", "pattern": "^-?\\d+$"}`, `"-12"`, `"a"|1`},
		{`{"$id": "a", "properties": {"$id": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"const": null, "default":
			{"$id": 1}}}}`, `{"$id":null}`, `{"$id":1}`},
		{`{"properties": {"a": {"$id": "b", "type": "null"}}}`, `{"a":null}`, `{"a":1}`},
		{`{"const": "\ud83d\ude00\ud83d\ude00\\ud800\u0041"}`, `"😀😀\\ud800A"`, `"😀"`},
		{`{"type": "string", "minimum": "bogus"}`, `"a"`, `1`},
		{`{"type": "string", "pattern": "^\\W.$"}`, `"ö😀"`, `"aö"|"ö"`},
		{`{"format": "int32"}`, `-2147483648|2147483647`, `2147483648|"a"|1.5`},
	} {
		g, err := Schema(v, []byte(c.schema))
		require.NoError(t, err, c.schema)
		for _, text := range strings.Split(c.yes, "|") {
			require.True(t, accepts(g, text), "%s: %s", c.schema, text)
		}
		for _, text := range strings.Split(c.no, "|") {
			require.False(t, accepts(g, text), "%s: %s", c.schema, text)
		}
	}
}

func TestSchemasThatAreRefused(t *testing.T) {
	v := pieces(t, rand.New(rand.NewPCG(11, 12)))
	for schema, want := range map[string]string{
		`{"not": {}}`: `# has the keyword "not"`,
		`{"properties": {"a/b": {"format": "jwt"}}}`:                   `#/properties/a~1b/format is "jwt"`,
		`{"items": {"uniqueItems": true}}`:                             `#/items has the keyword "uniqueItems"`,
		`{"oneOf": []}`:                                                `#/oneOf is not a list of schemas`,
		`{"anyOf": [{"allOf": []}]}`:                                   `#/anyOf/0/allOf is not a list`,
		`{"anyOf": [true], "type": "object"}`:                          `# has anyOf alongside type`,
		`{"$ref": "#", "enum": [1]}`:                                   `# has $ref alongside enum`,
		`{"$ref": "#"}`:                                                `# refers to itself`,
		`{"anyOf": [{"$ref": "#"}, {"type": "null"}]}`:                 `# refers to itself`,
		`{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}`: `# refers to itself`,
		`{"properties": {"a": {"$ref": "#"}}, "required": ["a"]}`:      `# describes no value of finite length`,
		`{"type": "array", "items": {"$ref": "#"}, "minItems": 1}`:     `# describes no value of finite length`,
		`{"$ref": "#/$defs/b", "$defs": {}}`:                           `#/$ref refers to something that is not there`,
		`{"$ref": "http://example.com/x"}`:                             `#/$ref refers to something that is not there`,
		`{"$ref": 1}`:                                                  `#/$ref refers to something that is not there`,
		`false`:                                                        `# is false`,
		`[]`:                                                           `# is not a schema`,
		`{"type": "text"}`:                                             `#/type is not string`,
		`{"type": []}`:                                                 `#/type is an empty list`,
		`{"enum": []}`:                                                 `#/enum is not a list of values`,
		`{"enum": ["a"], "type": "integer"}`:                           `#/enum has no value of the type`,
		`{"anyOf": {}}`:                                                `#/anyOf is not a list`,
		`{"properties": []}`:                                           `#/properties is not an object`,
		`{"required": "a"}`:                                            `#/required is not a list of names`,
		`{"required": [1]}`:                                            `#/required is not a list of names`,
		`{"required": ["a"], "additionalProperties": false}`:           `#/required has "a"`,
		`{"minItems": -1}`:                                             `#/minItems is not a whole number`,
		`{"maxItems": 1.5}`:                                            `#/maxItems is not a whole number`,
		`{"maxItems": 99999}`:                                          `is not a whole number from 0 to 1000`,
		`{"minItems": 3, "maxItems": 2}`:                               `# wants at least 3 items`,
		`{"type": "object", "type": "object"}`:                         `# cannot be read: the key "type" stands twice`,
		`{`:                                                            `# cannot be read`,
		`{"title": "` + strings.Repeat("a", maxSchema) + `"}`:          `# has 65549 bytes; want at most 65536`,
		strings.Repeat(`{"items":`, 100) + `{}` + strings.Repeat(`}`, 100): `nested more than 64 deep`,
		`{"items": 1}`:  `#/items is not a schema`,
		manyArrays(200): `makes the schema too large`,
	} {
		_, err := Schema(v, []byte(schema))
		var refused *Error
		require.ErrorAs(t, err, &refused, schema)
		require.Contains(t, err.Error(), want, short(schema))
	}
}

func manyArrays(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"p%d": {"items": {"type": "null"}, "minItems": 1000, "maxItems": 1000}, `, i)
	}
	return `{"properties": {` + b.String() + `"last": {}}}`
}
