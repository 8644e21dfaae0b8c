package grammar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"amkc/runtime/infile"
)

// A document is a value in JSON whose objects keep the order of their keys. It is nil, a bool, a json.Number, a string,
// a []document or an *object.
type document any

type object struct {
	keys   []string
	values map[string]document
}

// maxDepth is how deep documents may be nested.
const maxDepth = 64

// read reads a document. A key that stands twice is refused.
func read(text []byte) (document, error) {
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("it is not valid UTF-8")
	}
	if err := infile.Unmarshal(text, new(json.RawMessage)); err != nil {
		return nil, err
	}
	if half := loneSurrogate(text); half != "" { // which would be read as another character
		return nil, fmt.Errorf("it has %s, half of a surrogate pair, without the other half", half)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return readValue(d, 0)
}

// loneSurrogate is the first escape in a document that stands for no character; "": there is none.
func loneSurrogate(text []byte) string {
	escape := func(at int) rune { // -1: it is no \uHHHH
		if at+6 > len(text) || text[at] != '\\' || text[at+1] != 'u' {
			return -1
		}
		n, err := strconv.ParseUint(string(text[at+2:at+6]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if r := escape(i); utf16.IsSurrogate(r) {
			if utf16.DecodeRune(r, escape(i+6)) == utf8.RuneError {
				return string(text[i : i+6])
			}
			i += 6
		}
		i++ // past what follows the backslash
	}
	return ""
}

func readValue(d *json.Decoder, depth int) (document, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		all := []document{}
		for d.More() {
			v, err := readValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		_, err = d.Token()
		return all, err
	case json.Delim('{'):
		o := &object{values: map[string]document{}}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name, _ := key.(string)
			if _, twice := o.values[name]; twice {
				return nil, fmt.Errorf("the key %q stands twice in an object", short(name))
			}
			if o.values[name], err = readValue(d, depth+1); err != nil {
				return nil, err
			}
			o.keys = append(o.keys, name)
		}
		_, err = d.Token()
		return o, err
	}
	return token, nil
}

// write is a document in JSON, without spaces.
func write(d document) string {
	switch v := d.(type) {
	case string:
		return quoted(v)
	case json.Number:
		return v.String()
	case []document:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = write(item)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case *object:
		parts := make([]string, len(v.keys))
		for i, key := range v.keys {
			parts[i] = quoted(key) + ":" + write(v.values[key])
		}
		return "{" + strings.Join(parts, ",") + "}"
	case bool:
		return fmt.Sprint(v)
	}
	return "null"
}

// quoted is a string in JSON, with characters as they are where they may be.
func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // strings can be written
	return strings.TrimSuffix(b.String(), "\n")
}

// kind is what JSON Schema calls a document's type.
func kind(d document) string {
	switch v := d.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case []document:
		return "array"
	case *object:
		return "object"
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			return "integer"
		}
		return "number"
	}
	return "null"
}

// short is a name for a message.
func short(s string) string {
	const most = 64
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
