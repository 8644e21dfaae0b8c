package jinja

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"amkc/runtime/infile"
)

// maxJSONDepth is how deep lists and objects of JSON may nest: templates look at them one inside the other.
const maxJSONDepth = 100

// maxJSONValues is how many values a JSON text may have, as each takes many times what it is written with. A long
// conversation with many tools has some thousands.
const maxJSONValues = 1 << 18

// FromJSON reads a JSON text as Python does: objects keep the order of their keys, integers are exact.
func FromJSON(data []byte) (Value, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("it is not valid UTF-8")
	}
	if err := infile.Unmarshal(data, new(json.RawMessage)); err != nil {
		return nil, err
	}
	if i := loneSurrogate(data); i >= 0 {
		return nil, fmt.Errorf("line %d: %s is half a character; want whole characters",
			1+bytes.Count(data[:i], []byte("\n")), data[i:i+6])
	}
	r := jsonReader{Decoder: json.NewDecoder(bytes.NewReader(data))}
	r.UseNumber()
	return r.value(0)
}

// A jsonReader counts the values that it reads.
type jsonReader struct {
	*json.Decoder
	values int
}

func (r *jsonReader) value(depth int) (Value, error) {
	if r.values++; r.values > maxJSONValues {
		return nil, fmt.Errorf("it has more than %d values", maxJSONValues)
	}
	t, err := r.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		return readNumber(t.String())
	case json.Delim:
		if depth == maxJSONDepth {
			return nil, fmt.Errorf("lists and objects are nested more than %d deep", maxJSONDepth)
		}
		if t == '[' {
			return r.list(depth)
		}
		return r.object(depth)
	default:
		return t, nil
	}
}

func (r *jsonReader) list(depth int) (Value, error) {
	l := NewList()
	for r.More() {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, v)
	}
	_, err := r.Token()
	return l, err
}

func (r *jsonReader) object(depth int) (Value, error) {
	d := &Dict{}
	for r.More() {
		key, err := r.Token()
		if err != nil {
			return nil, err
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		d.Set(key.(string), v)
	}
	_, err := r.Token()
	return d, err
}

func readNumber(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, fmt.Errorf("the number %.40s is too large", s)
		}
		return f, nil
	}
	if len(s) > maxDigits {
		return nil, fmt.Errorf("an integer of %d digits; %d are the most", len(s), maxDigits)
	}
	n, _ := new(big.Int).SetString(s, 10)
	return norm(n), nil
}

// loneSurrogate finds a \u escape that is half a character, which encoding/json replaces without a word.
func loneSurrogate(data []byte) int {
	unit := func(i int) int {
		if i+6 > len(data) || data[i] != '\\' || data[i+1] != 'u' {
			return -1
		}
		n, _ := strconv.ParseUint(string(data[i+2:i+6]), 16, 32)
		return int(n)
	}
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		u, next := unit(i), -1
		if 0xd800 <= u && u < 0xdc00 {
			next = unit(i + 6)
		}
		switch {
		case u >= 0xdc00 && u < 0xe000, u >= 0xd800 && u < 0xdc00 && (next < 0xdc00 || next >= 0xe000):
			return i
		case next >= 0:
			i += 11
		default:
			i++
		}
	}
	return -1
}
