package ir

import (
	"fmt"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Resolve replaces {i}, {i+N} and {i-N} in a name by the index, printed with at least two digits. Names without braces
// come back as they are.
func Resolve(name string, i int) (string, error) { return resolve(name, i, "%02d") }

// ResolveKey is Resolve for state-dict keys, where indices are printed without padding.
func ResolveKey(key string, i int) (string, error) { return resolve(key, i, "%d") }

func resolve(name string, i int, format string) (string, error) {
	open := strings.IndexByte(name, '{')
	if open < 0 {
		return name, nil
	}
	end := strings.IndexByte(name[open:], '}')
	if end < 0 {
		return "", fmt.Errorf("name %q: { without }", name)
	}
	inner := name[open+1 : open+end]
	offset := 0
	if inner != "i" {
		n, err := strconv.Atoi(strings.TrimPrefix(inner, "i"))
		if err != nil || !strings.HasPrefix(inner, "i") || n == 0 || inner[1] != '+' && inner[1] != '-' {
			return "", fmt.Errorf("name %q: want {i}, {i+N} or {i-N}", name)
		}
		offset = n
	}
	if i+offset < 0 {
		return "", fmt.Errorf("name %q: index %d is negative", name, i+offset)
	}
	rest, err := resolve(name[open+end+1:], i, format)
	if err != nil {
		return "", err
	}
	return name[:open] + fmt.Sprintf(format, i+offset) + rest, nil
}

// IsFamily reports whether a name holds an index in braces.
func IsFamily(name string) bool { return strings.IndexByte(name, '{') >= 0 }
