package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

const (
	maxDepth  = 64      // of the nesting of JSON: the reader is recursive
	maxTokens = 1 << 20 // of one text; a safetensors header has some fifteen a tensor
)

// An Object is a JSON object that keeps the order of its keys. Values are nil, bool, string, json.Number as spelled in
// the file (so that 1e-05 and 500000.0 are not rounded before their reader decides how), []any and *Object.
type Object struct {
	keys   []string
	values map[string]any
}

// NewObject returns an object with the given values, its keys in order.
func NewObject(values map[string]any) *Object {
	return &Object{keys: slices.Sorted(maps.Keys(values)), values: values}
}

// Keys returns the keys in the order of the file.
func (o *Object) Keys() []string { return o.keys }

// Get returns the value of key, and whether the object has it. The value null is nil.
func (o *Object) Get(key string) (any, bool) {
	v, ok := o.values[key]
	return v, ok
}

// parseObject reads data as one JSON object. name is the file that errors are reported against. Memory is linear in
// len(data).
func parseObject(name string, data []byte) (*Object, *diag.Diagnostic) {
	r, err := newJSONReader(name, data)
	if err != nil {
		return nil, err
	}
	value, err := r.value(0)
	if err != nil {
		return nil, err
	}
	object, ok := value.(*Object)
	if !ok {
		return nil, diag.Errorf(codeJSON, name, "the file holds %s; an object, { ... }, is needed", kindOf(value))
	}
	return object, nil
}

// A jsonReader walks the tokens of a JSON text that is known to be well formed.
type jsonReader struct {
	name   string
	data   []byte
	dec    *json.Decoder
	tokens int // read so far
}

func newJSONReader(name string, data []byte) (*jsonReader, *diag.Diagnostic) {
	if !utf8.Valid(data) {
		return nil, diag.Errorf(codeJSON, name, "the file is not UTF-8 text")
	}
	if !json.Valid(data) {
		return nil, notJSON(name, data)
	}
	r := &jsonReader{name: name, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	return r, nil
}

// notJSON says where a text is malformed.
func notJSON(name string, data []byte) *diag.Diagnostic {
	err := infile.Unmarshal(data, new(json.RawMessage))
	var bad *infile.JSONError
	if !errors.As(err, &bad) {
		return diag.Errorf(codeJSON, name, "not JSON")
	}
	return diag.Errorf(codeJSON, fmt.Sprintf("%s:%d:%d", name, bad.Line, bad.Column), "not JSON: %s", bad.What)
}

// here is the position of the end of the last token.
func (r *jsonReader) here() string { return position(r.name, r.data, r.dec.InputOffset()) }

// token returns the next token. The text was checked, so that an error is not expected, but is reported all the same.
func (r *jsonReader) token() (json.Token, *diag.Diagnostic) {
	if r.tokens++; r.tokens > maxTokens {
		return nil, diag.Errorf(codeJSONDepth, r.here(), "more than %d keys, values and brackets", maxTokens)
	}
	token, err := r.dec.Token()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, diag.Errorf(codeJSON, r.here(), "not JSON")
	}
	return token, nil
}

// value reads the next value whole.
func (r *jsonReader) value(depth int) (any, *diag.Diagnostic) {
	token, err := r.token()
	if err != nil {
		return nil, err
	}
	delim, nested := token.(json.Delim)
	switch {
	case !nested:
		return token, nil
	case depth == maxDepth:
		return nil, diag.Errorf(codeJSONDepth, r.here(), "more than %d levels of nesting", maxDepth)
	case delim == '[':
		return r.array(depth)
	}
	object := &Object{values: map[string]any{}}
	err = r.members(func(key string) (err *diag.Diagnostic) {
		if _, twice := object.values[key]; twice {
			return diag.Errorf(codeJSONDuplicate, r.here(), "key %q appears twice in one object", key)
		}
		object.keys = append(object.keys, key)
		object.values[key], err = r.value(depth + 1)
		return err
	})
	return object, err
}

func (r *jsonReader) array(depth int) (any, *diag.Diagnostic) {
	array := []any{}
	for r.dec.More() {
		element, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		array = append(array, element)
	}
	_, err := r.token() // ]
	return array, err
}

// members calls read for each key of an object whose { has been read; read consumes the value.
func (r *jsonReader) members(read func(key string) *diag.Diagnostic) *diag.Diagnostic {
	for r.dec.More() {
		token, err := r.token()
		if err != nil {
			return err
		}
		if err := read(token.(string)); err != nil {
			return err
		}
	}
	_, err := r.token() // }
	return err
}

// position is name:line:column of the byte at offset, both counted from 1.
func position(name string, data []byte, offset int64) string {
	before := data[:min(max(offset-1, 0), int64(len(data)))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("%s:%d:%d", name, line, column)
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	}
	return "an object"
}
