package infile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type target struct {
	Name  string
	SMs   int
	Eps   float64
	Tied  bool
	List  []int
	Inner struct{ Small uint8 }
	Any   any
}

func TestUnmarshal(t *testing.T) {
	var v target
	require.NoError(t, Unmarshal([]byte(`{"name": "x", "sms": 3, "any": 1e-05} `+"\n"), &v))
	require.Equal(t, target{Name: "x", SMs: 3, Any: json.Number("1e-05")}, v)
	require.Nil(t, InJSON(nil, nil))
}

// Each error is in plain words, with the place: none has the words or the types of Go in it.
func TestJSONErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "line 1, column 1: the text ends too early",
		"{\n  \"a\": 1,\n":          "line 3, column 1: the text ends too early",
		"{\n  \"a\": }":             `line 2, column 8: found "}"; want a value`,
		`{"a": 1,}`:                 `line 1, column 9: found "}"; want a key in double quotes`,
		`{'a': 1}`:                  `line 1, column 2: found "'"; want a key in double quotes`,
		`{"a" 1}`:                   `line 1, column 6: found "1"; want a colon`,
		`{"a": 1 "b"}`:              `line 1, column 9: found "\""; want a comma or }`,
		`{"list": [1 2]}`:           `line 1, column 13: found "2"; want a comma or ]`,
		`{} {}`:                     `line 1, column 4: found "{"; want the end of the text`,
		`{} x`:                      `line 1, column 4: found "x"; want the end of the text`,
		"{\"a\": \"\n\"}":           `line 1, column 8: found "\n"; want an escape such as \n`,
		`{"a": "\q"}`:               `line 1, column 9: found "q"; want one of the escapes of JSON`,
		`{"a": "\u12x4"}`:           `line 1, column 12: found "x"; want four hexadecimal digits`,
		`{"a": -x}`:                 `line 1, column 8: found "x"; want a digit`,
		`{"a": 1.x}`:                `line 1, column 9: found "x"; want a digit`,
		`{"a": 1ex}`:                `line 1, column 9: found "x"; want a digit`,
		`{"a": trux}`:               `line 1, column 10: found "x"; want true`,
		`{"a": NaN}`:                `line 1, column 7: found NaN or Infinity, which JSON does not have; want a number`,
		`{"a": -Infinity}`:          `line 1, column 8: found NaN or Infinity, which JSON does not have; want a number`,
		"\ufeff{}":                  `line 1, column 1: found a byte order mark; want UTF-8 text without one`,
		`{"name": 1}`:               `Name is a number; want a string`,
		`{"sms": "1"}`:              `SMs is a string; want an integer of 64 bits`,
		`{"sms": 1.5}`:              `SMs is 1.5; want an integer of 64 bits`,
		`{"sms": 1e30}`:             `SMs is 1e30; want an integer of 64 bits`,
		`{"eps": {}}`:               `Eps is an object; want a number`,
		`{"tied": []}`:              `Tied is an array; want true or false`,
		`{"list": true}`:            `List is a boolean; want an array`,
		`{"inner": {"small": 300}}`: `Inner.Small is 300; want an integer from 0, of 8 bits`,
		`[]`:                        `it is an array; want an object`,
		strings.Repeat("[", 20000):  "values are nested too deeply",
	} {
		err := Unmarshal([]byte(text), new(target))
		require.ErrorContains(t, err, want, text)
		require.ErrorAs(t, err, new(*JSONError))
		for _, word := range []string{"json:", "Go ", "invalid character", "target", "uint8"} {
			require.NotContains(t, err.Error(), word)
		}
	}
}

// What package os says of calls and paths goes, and what others have said around it stays.
func TestReason(t *testing.T) {
	_, err := os.ReadFile("/no/such/file")
	require.Equal(t, "no such file or directory", Reason(err))
	require.Equal(t, "/no/such/file: no such file or directory", Describe(err))
	require.Equal(t, "loading weights: no such file or directory", Reason(fmt.Errorf("loading weights: %w", err)))
	require.Equal(t, "no such file or directory", Reason(os.Rename("/no/such/file", "/no/such/other")))
	_, err = Read("/no/such/file", Kind{"a file", 1})
	require.Equal(t, "no such file or directory", Reason(err))
	require.Equal(t, "", Reason(nil))
	require.Equal(t, "as it is", Reason(errors.New("as it is")))
}
