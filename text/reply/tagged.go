package reply

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A tagged form has marks around names, keys and values of arguments. Values are text, whose type the tool's schema
// says.
type tagged struct {
	name, key, value marks
}

// read reads one call, or several.
func (f tagged) read(_, body string, tools *Tools) (calls []Call) {
	for {
		_, rest, there := strings.Cut(body, f.name.open)
		if f.name.open == "" {
			rest, there = body, len(calls) == 0
		}
		if !there {
			return calls
		}
		name, after, there := strings.Cut(rest, f.name.close)
		switch {
		case there && f.name.close == f.key.open: // the name ends where the first key begins
			after = rest[len(name):]
		case !there && f.name.close != f.key.open:
			return nil
		}
		if name = strings.Trim(name, spaces); !plausible(name) {
			return nil
		}
		var given []argument
		var ok bool
		if given, body, ok = f.arguments(after); !ok {
			return nil
		}
		calls = append(calls, Call{name, tools.object(name, given)})
	}
}

// An argument is one as it was written.
type argument struct{ key, text string }

// arguments reads those of one call, up to its end or the beginning of another.
func (f tagged) arguments(text string) (all []argument, rest string, ok bool) {
	for {
		at := strings.Index(text, f.key.open)
		if at < 0 || f.name.open != "" && strings.Contains(text[:at], f.name.open) {
			return all, text, true
		}
		key, after, there := strings.Cut(text[at+len(f.key.open):], f.key.close)
		if !there {
			return nil, "", false
		}
		between, after, there := strings.Cut(after, f.value.open)
		if !there || strings.Contains(between, f.key.open) {
			return nil, "", false
		}
		value, after, there := strings.Cut(after, f.value.close)
		if !there {
			return nil, "", false
		}
		all = append(all, argument{strings.Trim(key, spaces), line(value)})
		text = after
	}
}

// line takes one new line off each end, which forms put around values.
func line(value string) string {
	value = strings.TrimPrefix(strings.TrimPrefix(value, "\r"), "\n")
	return strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r")
}

// object makes JSON of arguments, each of the type that the tool's schema says. Of two with one key the last counts.
func (t *Tools) object(tool string, given []argument) string {
	last := map[string]int{}
	for i, a := range given {
		last[a.key] = i
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, a := range given {
		if last[a.key] != i {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(quoted(a.key))
		b.WriteByte(':')
		b.WriteString(convert(a.text, t.types(tool, a.key)))
	}
	b.WriteByte('}')
	return b.String()
}

// convert makes JSON of a text: of one of some types, or, where there are none, whatever it looks like.
func convert(text string, types []string) string {
	may := func(kind string) bool {
		for _, t := range types {
			if t == kind || t == "number" && kind == "integer" {
				return true
			}
		}
		return len(types) == 0
	}
	trimmed := strings.Trim(text, spaces)
	candidates := []string{trimmed}
	if v, rest, ok := pythonValue(trimmed, 0); ok && strings.Trim(rest, spaces) == "" {
		candidates = append(candidates, v)
	}
	for _, c := range candidates {
		if kind := kindOf(c); kind != "" && kind != "string" && may(kind) {
			return compact(c)
		}
	}
	if len(types) > 0 && !may("string") && kindOf(trimmed) != "" { // of no type that it may have
		return compact(trimmed)
	}
	return quoted(text)
}

// kindOf is what JSON Schema calls the type of a value in JSON; empty for other values.
func kindOf(text string) string {
	if !json.Valid([]byte(text)) {
		return ""
	}
	switch text[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if strings.ContainsAny(text, ".eE") {
		return "number"
	}
	return "integer"
}

// quoted is a string in JSON.
func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // strings can be written
	return strings.TrimSuffix(b.String(), "\n")
}
