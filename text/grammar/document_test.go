package grammar

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the tables of docs/schemas.md")

// keptSchemas are those of the first table.
var keptSchemas = []struct{ by, schema, yes, no string }{
	{"zod `int()`", `{"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991}`,
		`9007199254740991`, `9007199254740992`},
	{"zod `number().min(0).max(1)`, pydantic `Field(ge=0, le=1)`", `{"type": "number", "minimum": 0, "maximum": 1}`,
		`0.125`, `1.01`},
	{"zod `number().positive()`, pydantic `PositiveFloat`", `{"type": "number", "exclusiveMinimum": 0}`, `0.5`, `-1`},
	{"zod `number().multipleOf(0.01)`", `{"type": "number", "multipleOf": 0.01}`, `19.99`, `0.005`},
	{"pydantic `Field(multiple_of=5)`", `{"type": "integer", "multipleOf": 5}`, `25`, `24`},
	{"zod `string().min(1).max(20)`, pydantic `Field(min_length=1)`",
		`{"type": "string", "minLength": 1, "maxLength": 20}`, `"a"`, `""`},
	{"zod `string().regex()`, pydantic `Field(pattern=…)`", `{"type": "string", "pattern": "^[A-Z]{2}\\d{4}$"}`,
		`"AB1234"`, `"AB123"`},
	{"zod `email()`", `{"type": "string", "format": "email", ` +
		`"pattern": "^(?!\\.)(?!.*\\.\\.)([\\w'+\\-\\.]*)[\\w+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$"}`,
		`"a@b.example"`, `"a..b@c.example"`},
	{"zod `string().startsWith(\"a\").endsWith(\"z\")`",
		`{"type": "string", "allOf": [{"pattern": "^a.*"}, {"pattern": ".*z$"}]}`, `"abz"`, `"ab"`},
	{"zod `iso.date()`, pydantic `date`", `{"type": "string", "format": "date"}`, `"2024-02-29"`, `"2023-02-29"`},
	{"pydantic `datetime`", `{"type": "string", "format": "date-time"}`, `"2024-01-01T12:30:00Z"`,
		`"2024-01-01 12:30"`},
	{"pydantic `UUID4`", `{"type": "string", "format": "uuid4"}`, `"9b2f3a04-1d6b-4c1e-8f3a-0123456789ab"`,
		`"9b2f3a04-1d6b-1c1e-8f3a-0123456789ab"`},
	{"zod `url()`, pydantic `AnyUrl`", `{"type": "string", "format": "uri", "minLength": 1, "maxLength": 2083}`,
		`"https://example.org/a?b=1"`, `"example"`},
	{"zod `nullable()`", `{"type": ["string", "null"]}`, `null`, `1`},
	{"pydantic `Optional[int]`", `{"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null}`, `null`, `"1"`},
	{"zod `enum()`, pydantic `Literal`", `{"type": "string", "enum": ["red", "green"]}`, `"red"`, `"blue"`},
	{"zod `object()`, pydantic with `extra=\"forbid\"`", `{"type": "object", "properties": {"name": ` +
		`{"type": "string"}, "age": {"type": "integer"}}, "required": ["name"], ` +
		`"additionalProperties": false}`, `{"name":"Bo"}`,
		`{"name":"Bo","x":1}`},
	{"zod `record(string(), number())`", `{"type": "object", "propertyNames": {"type": "string"}, ` +
		`"additionalProperties": {"type": "number"}}`, `{"a":1}`, `{"a":"b"}`},
	{"zod `partialRecord(enum([\"x\", \"y\"]), number())`", `{"type": "object", "propertyNames": {"type": "string", ` +
		`"enum": ["x", "y"]}, "additionalProperties": {"type": "number"}}`, `{"y":1}`, `{"z":1}`},
	{"pydantic `dict` whose keys have a pattern", `{"type": "object", "patternProperties": {"^x_": ` +
		`{"type": "integer"}}}`, `{"x_1":1}`, `{"y":1}`},
	{"zod `tuple()`", `{"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": false}`,
		`["a",1]`, `["a",1,2]`},
	{"zod `tuple()` for draft 7, as the AI SDK asks for it", `{"type": "array", "items": [{"type": "string"}, ` +
		`{"type": "number"}], "additionalItems": false, "minItems": 2, "maxItems": 2}`, `["a",1]`, `["a"]`},
	{"zod `array().min(1).max(3)`, pydantic `conlist`", `{"type": "array", "items": {"type": "boolean"}, ` +
		`"minItems": 1, "maxItems": 3}`, `[true]`, `[]`},
	{"zod `discriminatedUnion()`", `{"oneOf": [{"type": "object", "properties": {"kind": {"type": "string", ` +
		`"const": "cat"}, "lives": {"type": "integer"}}, "required": ["kind", "lives"]}, {"type": "object", ` +
		`"properties": {"kind": {"type": "string", "const": "dog"}}, "required": ["kind"]}]}`,
		`{"kind":"cat","lives":9}`, `{"kind":"cat"}`},
	{"pydantic `Field(discriminator=\"kind\")`", `{"discriminator": {"mapping": {"cat": "#/$defs/Cat", ` +
		`"dog": "#/$defs/Dog"}, "propertyName": "kind"}, "oneOf": [{"$ref": "#/$defs/Cat"}, ` +
		`{"$ref": "#/$defs/Dog"}], "$defs": {"Cat": {"type": "object", ` +
		`"properties": {"kind": {"const": "cat"}}, "required": ["kind"]}, ` +
		`"Dog": {"type": "object", "properties": {"kind": {"const": "dog"}}, "required": ["kind"]}}}`,
		`{"kind":"dog"}`, `{"kind":"cow"}`},
	{"pydantic, of a model in a field", `{"allOf": [{"$ref": "#/$defs/A"}], "description": "d", "$defs": {"A": ` +
		`{"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]}}}`, `{"a":null}`, `{}`},
	{"zod and pydantic, recursive", `{"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, ` +
		`{"type": "null"}]}}, "required": ["next"], "additionalProperties": false}`, `{"next":{"next":null}}`,
		`{"next":1}`},
	{"zod `int32()`, schemars `u8`", `{"type": "integer", "format": "uint8", "minimum": 0}`, `255`, `256`},
	{"", `{"type": "string", "maxLength": 100000}`, `"a"`, `1`},
}

// refusedSchemas are those of the second table.
var refusedSchemas = []struct{ by, schema string }{
	{"zod `emoji()`", `{"type": "string", "pattern": "^\\p{Emoji}+$"}`},
	{"zod `jwt()`", `{"type": "string", "format": "jwt"}`},
	{"zod `never()`", `{"not": {}}`},
	{"pydantic `set[int]`", `{"type": "array", "items": {"type": "integer"}, "uniqueItems": true}`},
	{"pydantic `dict` with `min_length`", `{"type": "object", "minProperties": 1}`},
	{"", `{"type": "object", "patternProperties": {"^a": {}, "^b": {}}}`},
	{"pydantic `IPv4Network`", `{"type": "string", "format": "ipv4network"}`},
	{"zod `hostname()`", `{"type": "string", "format": "hostname", "pattern": "^(?=.{1,253}\\.?$)[a-zA-Z0-9](?:` +
		`[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[-0-9a-zA-Z]{0,61}[0-9a-zA-Z])?)*\\.?$"}`},
	{"", `{"allOf": [{"type": "object"}, {"required": ["a"]}]}`},
	{"", `{"oneOf": [{"type": "integer"}, {"type": "number"}]}`},
	{"", `{"type": "object", "properties": {"a/b": {"type": "string", "pattern": "\\bword"}}}`},
	{"", `{"type": "string", "pattern": "(a)\\1"}`},
	{"", `{"type": "string", "pattern": "(a|b)*a(a|b){20}$"}`},
	{"", `{"if": {"type": "string"}, "then": {"minLength": 1}}`},
	{"", `{"contains": {"type": "string"}}`},
	{"", `{"type": "number", "multipleOf": 0.3}`},
	{"", `{"type": "number", "minimum": 2, "maximum": 1}`},
	{"", `{"type": "array", "maxItems": 100000}`},
	{"", `{"$ref": "https://example.org/schema"}`},
	{"", `{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}`},
	{"", `{"type": "text"}`},
}

// TestDocument holds the tables of docs/schemas.md to what becomes of each schema; -update writes them.
func TestDocument(t *testing.T) {
	const document = "../../docs/schemas.md"
	rng := rand.New(rand.NewPCG(31, 1))
	v := pieces(t, rng)
	code := func(text string) string { return "`" + strings.ReplaceAll(text, "|", `\|`) + "`" }
	kept := "| by | schema | written | not written |\n|---|---|---|---|\n"
	for _, c := range keptSchemas {
		g := schema(t, v, "%s", c.schema)
		require.True(t, accepts(g, c.yes), "%s: %s", c.schema, c.yes)
		require.False(t, accepts(g, c.no), "%s: %s", c.schema, c.no)
		for range 5 {
			if text, ended := sample(t, g, rng); ended {
				require.True(t, json.Valid([]byte(text)), text)
			}
		}
		kept += fmt.Sprintf("| %s | %s | %s | %s |\n", c.by, code(c.schema), code(c.yes), code(c.no))
	}
	refused := "| by | schema | code | message |\n|---|---|---|---|\n"
	for _, c := range refusedSchemas {
		_, err := Schema(v, []byte(c.schema))
		var said *Error
		require.True(t, errors.As(err, &said), c.schema)
		message, _, cut := strings.Cut(said.Error(), "known are")
		if cut {
			message += "known are …"
		}
		refused += fmt.Sprintf("| %s | %s | `%s` | %s |\n", c.by, code(c.schema), said.Kind,
			strings.NewReplacer("|", `\|`, "*", `\*`, `\`, `\\`, "<", `\<`).Replace(message))
	}
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	want := string(text)
	for name, table := range map[string]string{"kept": kept, "refused": refused} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
		before, rest, found := strings.Cut(want, begin)
		_, after, closed := strings.Cut(rest, end)
		require.True(t, found && closed, name)
		want = before + begin + table + end + after
	}
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(want), 0o666))
		return
	}
	require.Equal(t, want, string(text), "go test ./text/grammar -run TestDocument -update")
}
