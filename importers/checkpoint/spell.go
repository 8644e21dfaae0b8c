package checkpoint

import (
	"encoding/json"
	"strconv"
	"strings"
)

// maxSpelt is how much of a value a message repeats, in bytes.
const maxSpelt = 80

// Spell prints a value of an Object for a message, truncated if it is long.
func Spell(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return Shortened(v.String())
	case string:
		return strconv.Quote(Shortened(v))
	case []any:
		return "an array"
	}
	return "an object"
}

// Shortened returns a text for a message, truncated if it is long.
func Shortened(s string) string {
	if len(s) <= maxSpelt {
		return s
	}
	return strings.ToValidUTF8(s[:maxSpelt], "") + "…"
}
