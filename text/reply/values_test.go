package reply

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An argument that is written as text is of a type that its schema allows, and a string where it can be nothing else.
func TestTypesOfArguments(t *testing.T) {
	for _, c := range []struct{ schema, text, want string }{
		{`{"type": "string"}`, "12", `"12"`},
		{`{"type": "string"}`, `{"a": 1}`, `"{\"a\": 1}"`},
		{`{"type": "string"}`, " two\n", `" two\n"`},
		{`{"type": "integer"}`, " 12 ", `12`},
		{`{"type": "number"}`, "12", `12`},
		{`{"type": "integer"}`, "1.5", `1.5`},
		{`{"type": "integer"}`, "many", `"many"`},
		{`{"type": "boolean"}`, "True", `true`},
		{`{"type": "boolean"}`, "false", `false`},
		{`{"type": ["string", "null"]}`, "None", `null`},
		{`{"type": ["string", "null"]}`, "none", `"none"`},
		{`{"type": ["string", "integer"]}`, "12", `12`},
		{`{"anyOf": [{"type": "string"}, {"type": "null"}]}`, "null", `null`},
		{`{"anyOf": [{"type": "string"}, {"$ref": "#/x"}]}`, "12", `12`},
		{`{"enum": ["1", "2"]}`, "1", `"1"`},
		{`{"enum": [1, 2]}`, "1", `1`},
		{`{"const": true}`, "True", `true`},
		{`{"type": "array"}`, `['a', {"b": None}]`, `["a",{"b":null}]`},
		{`{"type": "object"}`, `{"a": [1, 2]}`, `{"a":[1,2]}`},
		{`{"type": "object"}`, `{'a': (1, True)}`, `{"a":[1,true]}`},
		{`{"type": "array"}`, `[1, `, `"[1, "`},
		{`{}`, "12", `12`},
		{`{}`, "twelve", `"twelve"`},
		{`{"type": 5}`, "12", `12`},
		{`5`, "12", `12`},
	} {
		tools := ParseTools([]byte(`[{"name": "f", "parameters": {"properties": {"a": ` + c.schema + `}}}]`))
		require.Equal(t, `{"a":`+c.want+`}`, tools.object("f", []argument{{"a", c.text}}), c.schema)
	}
	require.Equal(t, `{"b":3,"a":2}`, (*Tools)(nil).object("f", []argument{{"a", "1"}, {"b", "3"}, {"a", "2"}}))
	require.Empty(t, ParseTools([]byte(`{"a": 1}`)).All())
	require.Len(t, ParseTools([]byte(`[{"type": "other"}, {"function": {"name": "f", "parameters": 5}}]`)).All(), 1)
}

// Literals of Python become values in JSON, and other text becomes nothing.
func TestPython(t *testing.T) {
	for text, want := range map[string]string{
		`'a"b'`:                    `"a\"b"`,
		`"it's"`:                   `"it's"`,
		`'\n\t\\\'\x41\u00e9\q'`:   `"\n\t\\'Aé\\q"`,
		`"\ud83d\ude00"`:           `"😀"`,
		`'\U0001F600'`:             `"😀"`,
		`-1.5e3`:                   `-1.5e3`,
		`[1, 'a', None, [], {}, ]`: `[1,"a",null,[],{}]`,
		`{'a': 1, "b": [True]}`:    `{"a":1,"b":[true]}`,
		`{a: 1}`:                   `{"a":1}`,
		`()`:                       `[]`,
		"'two\nlines'":             `"two\nlines"`,
		`f`:                        ``,
		`1 2`:                      ``,
		`'a`:                       ``,
		`[1 2]`:                    ``,
		`{1: 2}`:                   `{"1":2}`,
		`{'a' 1}`:                  ``,
		`01`:                       ``,
		``:                         ``,
		strings.Repeat("[", 100) + strings.Repeat("]", 100): ``,
	} {
		got, rest, ok := pythonValue(text, 0)
		if want == "" {
			require.False(t, ok && rest == "", text)
			continue
		}
		require.True(t, ok, text)
		require.Empty(t, rest, text)
		require.Equal(t, want, got)
	}
}
