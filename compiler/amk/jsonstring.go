package amk

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

var unescaped = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// str reads a string, whose opening quote is next.
func (r *reader) str() string {
	r.off++
	start := r.off
	var buf []byte // nil while the string has no escape
	for r.off < len(r.text) {
		switch c := r.text[r.off]; {
		case c == '"':
			raw := r.text[start:r.off]
			r.off++
			if buf == nil {
				return raw
			}
			return string(append(buf, raw...))
		case c == '\\':
			buf = append(buf, r.text[start:r.off]...)
			buf = r.escape(buf)
			start = r.off
		case c < ' ':
			r.fail(codeSyntax, r.off, `control character 0x%02x in a string; write it as \u%04x`, c, c)
			return ""
		case c < utf8.RuneSelf:
			r.off++
		default:
			c, size := utf8.DecodeRuneInString(r.text[r.off:])
			if c == utf8.RuneError && size == 1 {
				r.unexpected("UTF-8 text")
				return ""
			}
			r.off += size
		}
	}
	if r.err == nil {
		r.unexpected("the closing quote of a string")
	}
	return ""
}

// escape appends the character of the escape sequence that is next.
func (r *reader) escape(buf []byte) []byte {
	start := r.off
	r.off++
	if c, ok := unescaped[r.peek()]; ok {
		r.off++
		return append(buf, c)
	}
	c, ok := r.unicode()
	if !ok {
		r.fail(codeSyntax, start, `unknown escape; \" \\ \/ \b \f \n \r \t and \uXXXX are accepted`)
		return nil
	}
	if utf16.IsSurrogate(c) {
		low, ok := rune(0), false
		if r.accept('\\') {
			low, ok = r.unicode()
		}
		pair := utf16.DecodeRune(c, low)
		if !ok || pair == utf8.RuneError {
			r.fail(codeSyntax, start, `half a surrogate pair; \uD800 to \uDBFF must be followed by \uDC00 to \uDFFF`)
			return nil
		}
		c = pair
	}
	return utf8.AppendRune(buf, c)
}

// unicode reads a `u` and four hexadecimal digits.
func (r *reader) unicode() (rune, bool) {
	if r.off+5 > len(r.text) || r.text[r.off] != 'u' {
		return 0, false
	}
	c, err := strconv.ParseUint(r.text[r.off+1:r.off+5], 16, 16)
	if err != nil {
		return 0, false
	}
	r.off += 5
	return rune(c), true
}
