package ir

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is the longest name that CheckName accepts, in bytes. Families repeat names, so without a bound a small file
// could be a large program.
const MaxName = 255

// nameMarks are the characters of a name besides letters, digits and blanks. There is no quote, backslash, $, * or
// character that starts markup among them, so that a name is data in a comment, a Makefile, a page and on a terminal.
const nameMarks = "_.-+/@%#:,={}[]()"

// CheckName returns nil for a valid name in a program: 1 to 255 bytes of letters, digits and nameMarks, with blanks
// inside but not at the ends. This is the grammar of the model's name and architecture, and of names of targets,
// buffers, groups, pages, variants, counters, loops, stages, temporaries, state-dict keys and configuration keys, in
// all forms of a program.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("is empty, want a name")
	case len(name) > MaxName:
		return fmt.Errorf("has %d bytes, want at most %d", len(name), MaxName)
	case name[0] == ' ' || name[len(name)-1] == ' ':
		return fmt.Errorf("%s begins or ends with a blank, want one without", clip(name))
	}
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && size == 1 || !isNameRune(r) {
			return fmt.Errorf("%s holds %q, want letters, digits, blanks and %s", clip(name), name[i:i+size], nameMarks)
		}
		i += size
	}
	return nil
}

func isNameRune(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == ' ' ||
			strings.IndexByte(nameMarks, byte(r)) >= 0
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// CheckArch returns nil for an architecture as nvcc names it: sm_ and two or three digits, then a or f or nothing.
func CheckArch(arch string) error {
	digits, ok := strings.CutPrefix(arch, "sm_")
	if n := len(digits); n > 0 && (digits[n-1] == 'a' || digits[n-1] == 'f') {
		digits = digits[:n-1]
	}
	if !ok || len(digits) < 2 || len(digits) > 3 || strings.Trim(digits, "0123456789") != "" {
		return fmt.Errorf("is %s, want sm_ and a number such as sm_90a or sm_120", clip(arch))
	}
	return nil
}

func itoa(n int) string { return strconv.Itoa(n) }

// Resolve replaces {i}, {i+N} and {i-N} in a name by the index, printed with at least two digits. Names without braces
// come back as they are.
func Resolve(name string, i int) (string, error) { return resolve(name, i, 2) }

// ResolveKey is Resolve for state-dict keys, where indices are printed without padding.
func ResolveKey(key string, i int) (string, error) { return resolve(key, i, 1) }

func resolve(name string, i, digits int) (string, error) {
	open := strings.IndexByte(name, '{')
	if open < 0 {
		return name, nil
	}
	out := make([]byte, 0, len(name)+2)
	for rest := name; ; open = strings.IndexByte(rest, '{') {
		if open < 0 {
			return string(append(out, rest...)), nil
		}
		end := strings.IndexByte(rest[open:], '}')
		if end < 0 {
			return "", fmt.Errorf("name %s: { without }", clip(name))
		}
		offset, ok := indexOffset(rest[open+1 : open+end])
		if !ok {
			return "", fmt.Errorf("name %s: want {i}, {i+N} or {i-N}", clip(name))
		}
		n := satAdd(i, offset)
		if n < 0 {
			return "", fmt.Errorf("name %s: index %d is negative", clip(name), n)
		}
		out = append(out, rest[:open]...)
		if n < 10 && digits == 2 {
			out = append(out, '0')
		}
		out = strconv.AppendInt(out, int64(n), 10)
		rest = rest[open+end+1:]
	}
}

// indexOffset reads what stands between braces: i, i+N or i-N with N > 0.
func indexOffset(inner string) (int, bool) {
	if inner == "i" {
		return 0, true
	}
	if len(inner) < 3 || inner[0] != 'i' || inner[1] != '+' && inner[1] != '-' {
		return 0, false
	}
	n, err := strconv.ParseUint(inner[2:], 10, 32)
	if err != nil || n == 0 {
		return 0, false
	}
	if inner[1] == '-' {
		return -int(n), true
	}
	return int(n), true
}

// IsFamily reports whether a name holds an index in braces.
func IsFamily(name string) bool { return strings.IndexByte(name, '{') >= 0 }
