package front

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// countSuffixes are what may stand after a whole number on the command line. 8k is 8192: contexts and vocabularies
// are counted so.
var countSuffixes = map[string]int{"k": 1 << 10, "m": 1 << 20}

// A Count is the value of a flag that takes a whole number from lo to hi, as 8192 or 8k.
type Count struct {
	value  *int
	lo, hi int
}

// NewCount sets the default, which need not be in the range, and returns the flag's value.
func NewCount(value *int, def, lo, hi int) *Count {
	*value = def
	return &Count{value, lo, hi}
}

func (c *Count) String() string { return strconv.Itoa(*c.value) }
func (c *Count) Type() string   { return "int" }

func (c *Count) Set(s string) error {
	n, err := ParseCount(s, c.lo, c.hi)
	if err == nil {
		*c.value = n
	}
	return err
}

// ParseCount reads a whole number from lo to hi.
func ParseCount(s string, lo, hi int) (int, error) {
	digits, unit := strings.ToLower(strings.TrimSpace(s)), 1
	for suffix, times := range countSuffixes {
		if rest, ok := strings.CutSuffix(digits, suffix); ok {
			digits, unit = rest, times
			break
		}
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n > math.MaxInt/unit || n < math.MinInt/unit || n*unit < lo || n*unit > hi {
		return 0, errors.New(CountWant(lo, hi))
	}
	return n * unit, nil
}

// CountWant says what a count may be; of a range that lies below the suffixes it does not speak of them.
func CountWant(lo, hi int) string {
	want := fmt.Sprintf("want a whole number from %d on", lo)
	if hi < math.MaxInt {
		want = fmt.Sprintf("want a whole number from %d to %d", lo, hi)
	}
	if hi >= 8<<10 {
		want += "; 8k is 8192, 1m is 1048576"
	}
	return want
}

// A Word is the value of a flag that takes any text but none: an empty one is a variable of the shell's that was not
// set.
type Word struct{ value *string }

// NewWord sets the default and returns the flag's value.
func NewWord(value *string, def string) *Word {
	*value = def
	return &Word{value}
}

func (w *Word) String() string { return *w.value }
func (w *Word) Type() string   { return "string" }

func (w *Word) Set(s string) error {
	if s == "" {
		return ErrEmpty
	}
	*w.value = s
	return nil
}

// ErrEmpty refuses an empty value.
var ErrEmpty = errors.New("want a value that is not empty, or no such flag")
