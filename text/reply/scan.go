package reply

import "strings"

// A scan looks for the end of a value in brackets as it comes, in JSON or in Python, and looks at each byte once.
type scan struct {
	at      int // bytes that have been looked at
	depth   int
	quote   byte // that a string has begun with, 0 outside of strings
	escaped bool
}

// How far a value has come.
const (
	unfinished = iota
	finished
	broken // no value begins like this
)

// value goes on over a text, of which it has seen the beginning.
func (s *scan) value(text []byte, python bool) int {
	for s.at < len(text) {
		b := text[s.at]
		switch {
		case s.escaped:
			s.escaped = false
		case s.quote != 0 && b == '\\':
			s.escaped = true
		case s.quote != 0:
			if b == s.quote {
				s.quote = 0
			}
		case b == '{' || b == '[' || python && s.depth > 0 && b == '(':
			s.depth++
		case s.depth == 0 && strings.IndexByte(spaces, b) >= 0:
		case s.depth == 0 || b == '<' || b == '`': // with which marks begin
			return broken
		case b == '"' || python && b == '\'':
			s.quote = b
		case b == '}' || b == ']' || python && b == ')':
			if s.depth--; s.depth == 0 {
				s.at++
				return finished
			}
		}
		s.at++
	}
	return unfinished
}
