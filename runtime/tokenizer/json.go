package tokenizer

import (
	"encoding/json"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"amkc/runtime/infile"
)

// A reader walks through JSON text without building values: vocabularies have hundreds of thousands of entries, for
// which encoding/json takes seconds. Its methods report false where the text is not as expected. What is wrong there is
// for encoding/json to say (see problem), which reads the text again.
type reader struct {
	text string
	pos  int
	buf  []byte // the last string that had escapes
}

// space skips white space, and returns the byte after it, or 0 at the end.
func (r *reader) space() byte {
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; c {
		case ' ', '\t', '\r', '\n':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

// take skips white space and then c, if it is there.
func (r *reader) take(c byte) bool {
	if r.space() != c {
		return false
	}
	r.pos++
	return true
}

// list reads what stands between two brackets: item reads one entry.
func (r *reader) list(open, end byte, item func() bool) bool {
	if !r.take(open) {
		return false
	}
	if r.take(end) {
		return true
	}
	for item() {
		if !r.take(',') {
			return r.take(end)
		}
	}
	return false
}

// object reads an object: value reads the value of a key. The key is valid until the next string is read.
func (r *reader) object(value func(key []byte) bool) bool {
	return r.list('{', '}', func() bool {
		key, ok := r.str()
		return ok && r.take(':') && value(key)
	})
}

func (r *reader) array(item func() bool) bool { return r.list('[', ']', item) }

// str reads a string. It is valid until the next one is read.
func (r *reader) str() (s []byte, ok bool) {
	if !r.take('"') {
		return nil, false
	}
	start := r.pos
	for ; r.pos < len(r.text); r.pos++ {
		switch c := r.text[r.pos]; {
		case c == '"':
			r.buf = append(r.buf[:0], r.text[start:r.pos]...)
			r.pos++
			return r.buf, true
		case c == '\\':
			r.buf = append(r.buf[:0], r.text[start:r.pos]...)
			return r.escaped()
		case c < ' ':
			return nil, false
		}
	}
	return nil, false
}

// escaped reads the rest of a string from its first escape on.
func (r *reader) escaped() (s []byte, ok bool) {
	for r.pos < len(r.text) {
		c := r.text[r.pos]
		r.pos++
		switch {
		case c == '"':
			return r.buf, true
		case c < ' ':
			return nil, false
		case c != '\\':
			r.buf = append(r.buf, c)
			continue
		}
		if r.pos == len(r.text) {
			return nil, false
		}
		c = r.text[r.pos]
		r.pos++
		if c == 'u' {
			char, ok := r.hex()
			if utf16.IsSurrogate(char) {
				low := rune(-1)
				if strings.HasPrefix(r.text[r.pos:], `\u`) {
					r.pos += 2
					low, _ = r.hex()
				}
				char = utf16.DecodeRune(char, low)
				ok = ok && char != utf8.RuneError
			}
			if !ok {
				return nil, false
			}
			r.buf = utf8.AppendRune(r.buf, char)
			continue
		}
		i := strings.IndexByte(`"\/bfnrt`, c)
		if i < 0 {
			return nil, false
		}
		r.buf = append(r.buf, "\"\\/\b\f\n\r\t"[i])
	}
	return nil, false
}

// hex reads four hexadecimal digits.
func (r *reader) hex() (char rune, ok bool) {
	if len(r.text)-r.pos < 4 {
		return -1, false
	}
	for _, c := range []byte(r.text[r.pos : r.pos+4]) {
		digit := strings.IndexByte("0123456789abcdef", c|0x20)
		if c < '0' || digit < 0 {
			return -1, false
		}
		char = char<<4 | rune(digit)
	}
	r.pos += 4
	return char, true
}

// number reads an integer of up to 18 digits.
func (r *reader) number() (n int, ok bool) {
	negative := r.take('-')
	start := r.pos
	for ; r.pos < len(r.text) && '0' <= r.text[r.pos] && r.text[r.pos] <= '9'; r.pos++ {
		n = 10*n + int(r.text[r.pos]-'0')
	}
	digits := r.pos - start
	if negative {
		n = -n
	}
	return n, 0 < digits && digits <= 18 && (digits == 1 || r.text[start] != '0')
}

// raw skips a value and returns its text. What lies between its brackets is not looked at closely.
func (r *reader) raw() (value string, ok bool) {
	r.space()
	start, depth := r.pos, 0
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; c {
		case '"':
			if !r.skipString() {
				return "", false
			}
			if depth == 0 {
				return r.text[start:r.pos], true
			}
			continue
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 { // after a number or a word
				return r.text[start:r.pos], r.pos > start
			}
			if c != ',' {
				depth--
			}
			if depth == 0 {
				r.pos++
				return r.text[start:r.pos], true
			}
		}
		r.pos++
	}
	return "", false
}

func (r *reader) skipString() bool {
	for r.pos++; r.pos < len(r.text); r.pos++ {
		switch r.text[r.pos] {
		case '"':
			r.pos++
			return true
		case '\\':
			r.pos++
		}
	}
	return false
}

// members returns the texts of the values of an object by key, the last one of a key that is there twice.
func members(text, where string) (map[string]string, error) {
	r := &reader{text: text}
	out := map[string]string{}
	ok := r.object(func(key []byte) bool {
		name := string(key)
		value, ok := r.raw()
		out[name] = strings.TrimRight(value, " \t\r\n")
		return ok
	})
	if !ok || r.space() != 0 || r.pos < len(text) {
		return nil, problem(text, where, &map[string]json.RawMessage{})
	}
	return out, nil
}

// problem is why text cannot be read into a value of the given kind, as encoding/json puts it. What encoding/json would
// take are halves of surrogate pairs, numbers of 19 digits, and null for a list.
func problem(text, where string, into any) error {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return malformed(where, "%v", infile.InJSON([]byte(text), err))
	}
	return malformed(where, "has a \\u escape that is half a character, a number of more than 18 digits, or null; want "+
		"whole characters, shorter integers and lists")
}
