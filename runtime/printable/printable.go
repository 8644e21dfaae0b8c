// Package printable makes text safe to print: it replaces control characters, and characters that change the order of
// displayed text, by escape sequences of Go. amkc and the launchers escape text with this package only.
//
// It is copied into every launcher. It imports the standard library only, and must not import any other package of
// amkc.
package printable

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Line returns s as part of one line: line breaks and tabs are escaped too.
func Line(s string) string { return escape(s, "") }

// Text returns s with its line breaks and tabs as they are. JSON without control characters stays the same JSON:
// outside of strings it has nothing to escape, and inside of them the escapes are those of JSON.
func Text(s string) string { return escape(s, "\n\t") }

// escape spells out C0 and C1 control characters, DEL, bytes that are not UTF-8, and what changes the order or the line
// that text is shown in; keep holds the control characters that stay.
func escape(s, keep string) string {
	at := next(s, keep)
	if at == len(s) {
		return s
	}
	var b strings.Builder
	for ; at < len(s); at = next(s, keep) {
		r, size := utf8.DecodeRuneInString(s[at:])
		b.WriteString(s[:at])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[at])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		s = s[at+size:]
	}
	b.WriteString(s)
	return b.String()
}

// next returns where the first character stands that must be escaped, or the length of s.
func next(s, keep string) int {
	for i := 0; i < len(s); {
		if c := s[i]; c >= ' ' && c < 0x7f {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if acts(r) && !strings.ContainsRune(keep, r) || r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(s)
}

// acts reports whether a terminal or an editor would do something else with the character than show it.
func acts(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r < 0xa0:
		return true
	case r == '\u2028' || r == '\u2029': // line and paragraph separators
		return true
	case r == '\u061c' || r == '\u200e' || r == '\u200f', r >= '\u202a' && r <= '\u202e',
		r >= '\u2066' && r <= '\u2069': // direction
		return true
	}
	return false
}

// maxShown is how much of one string a message shows, in bytes: above every message of amkc, and below what floods a
// screen.
const maxShown = 8 << 10

// Clip is Line, shortened to the length of a message.
func Clip(s string) string {
	if len(s) <= maxShown {
		return Line(s)
	}
	cut := maxShown
	for cut > maxShown-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes more)", Line(s[:cut]), len(s)-cut)
}
