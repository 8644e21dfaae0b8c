package serve

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"amkc/runtime/infile"
)

// A value is a field of a request.
type value struct {
	name string
	raw  json.RawMessage
}

// members reads a body that is an object in JSON. Fields that are null are as good as absent, as clients send them.
func members(body []byte) (map[string]value, error) {
	var raw map[string]json.RawMessage
	if !utf8.Valid(body) {
		return nil, malformed("it is not valid UTF-8")
	}
	if err := infile.Unmarshal(body, &raw); err != nil {
		return nil, malformed(infile.Reason(err))
	}
	all := map[string]value{}
	for name, text := range raw {
		if string(text) != "null" {
			all[name] = value{name, text}
		}
	}
	return all, nil
}

func malformed(what string) *apiError {
	e := invalid("", "the body is not a JSON object: %s", what)
	e.code = "invalid_json"
	return e
}

// read puts the value into a Go value, and says what was wanted if it does not go.
func (v value) read(into any, want string) error {
	if err := json.Unmarshal(v.raw, into); err != nil {
		return v.unexpected(want)
	}
	return nil
}

func (v value) unexpected(want string) error {
	return invalid(v.name, "%s is not as expected; want %s", v.name, want)
}

// list reads a list of up to most items, which are all there: to encoding/json a null is a zero of any type.
func list[T any](v value, most int, want string) ([]T, error) {
	var items []*T
	if v.commas() >= most { // some of which may be in strings
		some, err := v.items(most, want)
		if err != nil {
			return nil, err
		}
		items = make([]*T, 0, len(some))
	}
	if err := v.read(&items, want); err != nil {
		return nil, err
	}
	all := make([]T, len(items))
	for i, item := range items {
		if item == nil {
			return nil, v.unexpected(want)
		}
		all[i] = *item
	}
	return all, nil
}

// items are those of a list of up to most, none of which is null. No more of it is read.
func (v value) items(most int, want string) (all []value, err error) {
	d := json.NewDecoder(bytes.NewReader(v.raw))
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		return nil, v.unexpected(want)
	}
	for i := 0; d.More(); i++ {
		if i == most {
			return nil, invalid(v.name, "%s has more than %d items; want at most %d", v.name, most, most)
		}
		var raw json.RawMessage
		if d.Decode(&raw) != nil || string(raw) == "null" {
			return nil, v.unexpected(want)
		}
		all = append(all, v.item(i, raw))
	}
	return all, nil
}

// isList reports whether the value is a list, and isNumbers whether it is one that begins with a number.
func (v value) isList() bool { return v.raw[0] == '[' }

func (v value) isNumbers() bool {
	if !v.isList() {
		return false
	}
	first := bytes.TrimLeft(v.raw[1:], " \t\r\n")[0]
	return first == '-' || first >= '0' && first <= '9'
}

// commas are those in a value. A list of numbers has one less than it has items, so that it need not be read to know
// that it has too many.
func (v value) commas() int { return bytes.Count(v.raw, []byte(",")) }

// item is one of a list.
func (v value) item(i int, raw json.RawMessage) value {
	return value{v.name + "[" + strconv.Itoa(i) + "]", raw}
}

func (v value) text() (s string, err error) {
	err = v.read(&s, "a string")
	return s, err
}

func (v value) bool() (b bool, err error) {
	err = v.read(&b, "true or false")
	return b, err
}

// integer reads one within bounds. JSON has one kind of number: 3.0 is 3.
func (v value) integer(lo, hi int) (int, error) {
	want := "an integer from " + strconv.Itoa(lo) + " to " + strconv.Itoa(hi)
	var f float64
	if err := v.read(&f, want); err != nil {
		return 0, err
	}
	if f != math.Trunc(f) || f < float64(lo) || f > float64(hi) {
		return 0, invalid(v.name, "%s is %s; want %s", v.name, v.short(), want)
	}
	return int(f), nil
}

// number reads one within bounds.
func (v value) number(lo, hi float64) (float64, error) {
	want := "a number from " + strconv.FormatFloat(lo, 'g', -1, 64) + " to " + strconv.FormatFloat(hi, 'g', -1, 64)
	var f float64
	if err := v.read(&f, want); err != nil {
		return 0, err
	}
	if f < lo || f > hi {
		return 0, invalid(v.name, "%s is %s; want %s", v.name, v.short(), want)
	}
	return f, nil
}

// short is the value as it was sent, cut where it is long.
func (v value) short() string {
	const most = 64
	if len(v.raw) > most {
		return string(v.raw[:most]) + "…"
	}
	return string(v.raw)
}
