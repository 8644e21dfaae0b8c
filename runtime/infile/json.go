package infile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A JSONError says what is wrong with a JSON text, without the terms of encoding/json. It wraps the latter.
type JSONError struct {
	Line, Column int    // of the byte at fault, from 1; 0 where a value is at fault, which Field names
	Field        string // path of the value, "" for the whole
	What         string
	Err          error
}

func (e *JSONError) Error() string {
	switch {
	case e.Line > 0:
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.What)
	case e.Field != "":
		return e.Field + " is " + e.What
	}
	return "it is " + e.What
}

func (e *JSONError) Unwrap() error { return e.Err }

// Unmarshal is json.Unmarshal with a [JSONError] for an error. Numbers in values of type any are json.Number.
func Unmarshal(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	err := dec.Decode(into)
	if err == nil {
		if _, more := dec.Token(); more != io.EOF {
			err = json.Unmarshal(data, new(json.RawMessage)) // says what follows the value
		}
	} else if _, typed := err.(*json.UnmarshalTypeError); !typed {
		err = json.Unmarshal(data, new(json.RawMessage)) // with the offset, which a decoder does not always know
	}
	return InJSON(data, err)
}

// escapes are those of a JSON text, two together if they are the halves of a character.
var escapes = regexp.MustCompile(`\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u....|[^u])`)

// HalfCharacter finds an escape in a valid JSON text that is half a character, which encoding/json replaces without an
// error. It returns -1 if there is none.
func HalfCharacter(data []byte) int {
	if !bytes.Contains(data, []byte(`\ud`)) && !bytes.Contains(data, []byte(`\uD`)) {
		return -1
	}
	for _, at := range escapes.FindAllIndex(data, -1) {
		if half := data[at[0]:at[1]]; len(half) == 6 && half[2]|0x20 == 'd' && half[3] >= '8' {
			return at[0]
		}
	}
	return -1
}

// InJSON turns an error of encoding/json over data into a [JSONError]. Others, and nil, stay as they are.
func InJSON(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at := min(max(syntax.Offset-1, 0), int64(len(data)))
		what := "the text ends too early"
		if !strings.HasPrefix(syntax.Error(), "unexpected end") {
			what = wanted(data[at:], syntax.Error())
		} else {
			at = int64(len(data))
		}
		before := data[:at]
		return &JSONError{Line: 1 + bytes.Count(before, []byte("\n")),
			Column: len(before) - bytes.LastIndexByte(before, '\n'), What: what, Err: err}
	case errors.As(err, &kind):
		return &JSONError{Field: kind.Field, What: kindOfValue(kind.Value) + "; want " + kindOfType(kind.Type),
			Err: err}
	}
	return err
}

// wants are the ends of encoding/json's messages of syntax, with what would be accepted there.
var wants = []struct{ message, want string }{
	{"looking for beginning of value", "a value"},
	{"looking for beginning of object key string", "a key in double quotes"},
	{"after object key", "a colon"},
	{"after object key:value pair", "a comma or }"},
	{"after array element", "a comma or ]"},
	{"after top-level value", "the end of the text"},
	{"in string literal", "an escape such as \\n"},
	{"in string escape code", "one of the escapes of JSON"},
	{"in \\u hexadecimal character escape", "four hexadecimal digits"},
	{"in numeric literal", "a digit"},
	{"after decimal point in numeric literal", "a digit"},
	{"in exponent of numeric literal", "a digit"},
	{"in literal true", "true"},
	{"in literal false", "false"},
	{"in literal null", "null"},
}

// wanted says what stands at the fault, and what would be accepted there.
func wanted(rest []byte, message string) string {
	if strings.Contains(message, "depth") {
		return "values are nested too deeply"
	}
	message, _, _ = strings.Cut(message, " (expecting")
	found := "found a byte that is not text"
	r, size := utf8.DecodeRune(rest)
	switch {
	case r == '\ufeff':
		return "found a byte order mark; want UTF-8 text without one"
	case bytes.HasPrefix(rest, []byte("NaN")), bytes.HasPrefix(rest, []byte("Infinity")):
		return "found NaN or Infinity, which JSON does not have; want a number"
	case size > 0 && r != utf8.RuneError:
		found = fmt.Sprintf("found %q", string(r))
	}
	for _, w := range wants {
		if strings.HasSuffix(message, w.message) {
			return found + "; want " + w.want
		}
	}
	return found + ", which is not JSON"
}

func kindOfValue(value string) string {
	value, number, _ := strings.Cut(value, " ")
	switch {
	case number != "":
		return number
	case value == "bool":
		return "a boolean"
	}
	return article(value)
}

func kindOfType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindOfType(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("an integer from 0, of %d bits", t.Bits())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("an integer of %d bits", t.Bits())
	}
	return "another kind of value"
}

func article(noun string) string {
	if strings.HasPrefix(noun, "a") || strings.HasPrefix(noun, "o") {
		return "an " + noun
	}
	return "a " + noun
}
