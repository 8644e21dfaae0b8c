package reply

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// list reads calls in a list: [f(a=1), g()].
func list(_, body string, _ *Tools) (calls []Call) {
	rest, ok := strings.CutPrefix(strings.Trim(body, spaces), "[")
	if !ok {
		return nil
	}
	for {
		call, after, ok := pythonCall(rest)
		if !ok {
			return nil
		}
		calls = append(calls, call)
		after = strings.TrimLeft(after, spaces)
		if rest, ok = strings.CutPrefix(after, ","); ok && strings.Trim(rest, spaces) != "]" {
			continue
		}
		if !ok {
			rest = after
		}
		if strings.Trim(rest, spaces) != "]" {
			return nil
		}
		return calls
	}
}

// lines reads calls that stand one below the other, or a list.
func lines(name, body string, tools *Tools) (calls []Call) {
	rest := strings.Trim(body, spaces)
	if strings.HasPrefix(rest, "[") {
		return list(name, body, tools)
	}
	for rest != "" {
		call, after, ok := pythonCall(rest)
		if !ok {
			return nil
		}
		calls = append(calls, call)
		rest = strings.Trim(after, spaces+",;")
	}
	return calls
}

// pythonCall reads f(a=1, b='x').
func pythonCall(text string) (c Call, rest string, ok bool) {
	name, rest, ok := strings.Cut(strings.TrimLeft(text, spaces), "(")
	if name = strings.TrimRight(name, spaces); !ok || !plausible(name) {
		return c, "", false
	}
	members, rest, ok := pythonMembers(rest, ")", 0, func(text string) (string, string, bool) {
		key, rest, ok := strings.Cut(text, "=")
		key = strings.Trim(key, spaces)
		return quoted(key), rest, ok && plausible(key)
	})
	return Call{name, "{" + members + "}"}, rest, ok
}

// maxDepth is how deep values may be nested.
const maxDepth = 64

// pythonMembers reads values up to a bracket, each after what key reads; nil: nothing. It returns them in JSON.
func pythonMembers(text, closing string, depth int, key func(string) (name, rest string, ok bool)) (members,
	rest string, ok bool) {
	var b strings.Builder
	for {
		text = strings.TrimLeft(text, spaces)
		if rest, ok := strings.CutPrefix(text, closing); ok {
			return b.String(), rest, true
		}
		if b.Len() > 0 {
			if text, ok = strings.CutPrefix(text, ","); !ok {
				return "", "", false
			}
			text = strings.TrimLeft(text, spaces)
			if rest, ok := strings.CutPrefix(text, closing); ok { // after a last comma
				return b.String(), rest, true
			}
			b.WriteByte(',')
		}
		if key != nil {
			var name string
			if name, text, ok = key(text); !ok {
				return "", "", false
			}
			b.WriteString(name)
			b.WriteByte(':')
		}
		var v string
		if v, text, ok = pythonValue(strings.TrimLeft(text, spaces), depth+1); !ok {
			return "", "", false
		}
		b.WriteString(v)
	}
}

// named are values that have names, in Python and in JSON.
var named = map[string]string{"True": "true", "False": "false", "None": "null", "true": "true", "false": "false",
	"null": "null"}

// pythonValue reads a value in Python, or in JSON, at the beginning of a text, and returns it in JSON.
func pythonValue(text string, depth int) (value, rest string, ok bool) {
	if text == "" || depth > maxDepth {
		return "", "", false
	}
	switch b := text[0]; {
	case b == '"' || b == '\'':
		s, rest, ok := pythonString(text)
		return quoted(s), rest, ok
	case b == '[':
		members, rest, ok := pythonMembers(text[1:], "]", depth, nil)
		return "[" + members + "]", rest, ok
	case b == '(':
		members, rest, ok := pythonMembers(text[1:], ")", depth, nil)
		return "[" + members + "]", rest, ok
	case b == '{':
		members, rest, ok := pythonMembers(text[1:], "}", depth, pythonKey)
		return "{" + members + "}", rest, ok
	}
	end := strings.IndexAny(text, ",)]}"+spaces)
	if end < 0 {
		end = len(text)
	}
	word := text[:end]
	if w := named[word]; w != "" {
		return w, text[end:], true
	}
	return word, text[end:], json.Valid([]byte(word)) // a number
}

// pythonKey reads the key of a dictionary up to its colon. Without quotes it is a word, as Gemma writes it.
func pythonKey(text string) (key, rest string, ok bool) {
	if text != "" && (text[0] == '"' || text[0] == '\'') {
		key, rest, ok = pythonString(text)
		if ok {
			rest, ok = strings.CutPrefix(strings.TrimLeft(rest, spaces), ":")
		}
		return quoted(key), rest, ok
	}
	key, rest, ok = strings.Cut(text, ":")
	key = strings.Trim(key, spaces)
	return quoted(key), rest, ok && plausible(key)
}

// A gemma form is call:f{a:1,b:x}, with marks instead of quotes.
type gemma struct{ quote string }

func (g gemma) read(_, body string, _ *Tools) []Call {
	var b strings.Builder
	for i, part := range strings.Split(body, g.quote) {
		if i%2 == 1 {
			part = quoted(part)
		}
		b.WriteString(part)
	}
	rest, ok := strings.CutPrefix(strings.Trim(b.String(), spaces), "call:")
	name, rest, there := strings.Cut(rest, "{")
	if name = strings.Trim(name, spaces); !ok || !there || !plausible(name) {
		return nil
	}
	given, rest, ok := pythonValue("{"+rest, 0)
	if !ok || strings.Trim(rest, spaces) != "" {
		return nil
	}
	return []Call{{name, given}}
}

// pythonString reads a string. A backslash in front of what it does not escape stands for itself.
func pythonString(text string) (s, rest string, ok bool) {
	quote := text[0]
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			return b.String(), text[i+1:], true
		case c == '\\' && i+1 < len(text):
			r, n := escape(text[i:])
			if n == 0 {
				b.WriteByte(c)
				continue
			}
			b.WriteString(r)
			i += n - 1
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

// escape reads an escape, of n bytes; 0: there is none.
func escape(text string) (s string, n int) {
	const codes, meant = "nrtbfav0\\'\"\n/", "\n\r\t\b\f\a\v\x00\\'\"\x00/"
	c := text[1]
	if c == '\n' { // a line that goes on
		return "", 2
	}
	if at := strings.IndexByte(codes, c); at >= 0 {
		return meant[at : at+1], 2
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if digits == 0 || len(text) < 2+digits {
		return "", 0
	}
	code, err := strconv.ParseUint(text[2:2+digits], 16, 32)
	if err != nil || !utf8.ValidRune(rune(code)) && !surrogate(code) {
		return "", 0
	}
	if surrogate(code) && len(text) >= 12 && text[6:8] == `\u` { // two that are one character, as JSON has them
		if low, err := strconv.ParseUint(text[8:12], 16, 32); err == nil && code < 0xDC00 && surrogate(low) {
			return string(rune(0x10000 + (code-0xD800)<<10 + (low - 0xDC00))), 12
		}
	}
	return string(rune(code)), 2 + digits
}

func surrogate(code uint64) bool { return 0xD800 <= code && code < 0xE000 }
