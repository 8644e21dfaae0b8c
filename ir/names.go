package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxName is the longest name that the readers and Check accept, in bytes. Families repeat names, so that an unbounded
// one would make a small file a large program.
const MaxName = 255

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
