package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// maxInt bounds the integers of the native forms, so that JSON readers in other languages see the same number and sums
// of two fields cannot overflow.
const maxInt = 1 << 53

// A cursor reads the tokens of one line of program text, or of one operand of the JSON form. Its first error sticks:
// from then on every method returns a zero value and moves nothing, so that callers check once, at the end.
type cursor struct {
	s   string
	i   int
	err *syntaxError
}

func (c *cursor) fail(off int, format string, args ...any) {
	if c.err == nil {
		c.err = &syntaxError{off, fmt.Sprintf(format, args...)}
	}
}

// peek returns the next byte after blanks, or 0 at the end and after an error.
func (c *cursor) peek() byte {
	for c.i < len(c.s) && (c.s[c.i] == ' ' || c.s[c.i] == '\t') {
		c.i++
	}
	if c.err != nil || c.i == len(c.s) {
		return 0
	}
	return c.s[c.i]
}

// done reports whether nothing but blanks is left, or an error stopped the reading.
func (c *cursor) done() bool { c.peek(); return c.err != nil || c.i == len(c.s) }

// found describes what stands at the cursor, for messages.
func (c *cursor) found() string {
	if c.peek(); c.i >= len(c.s) {
		return "the end of the line"
	}
	rest := c.s[c.i:]
	if n := strings.IndexByte(rest[:min(len(rest), 60)], ' '); n > 0 {
		rest = rest[:n]
	}
	return clip(rest)
}

// end demands that nothing is left.
func (c *cursor) end() {
	if !c.done() {
		c.fail(c.i, "unexpected %s, want the end of the line", c.found())
	}
}

// atMost complains about one more where there are already as many as there may be.
func (c *cursor) atMost(have, limit int, what string) {
	if have >= limit {
		c.fail(c.i, "more than %d %s", limit, what)
	}
}

// accept consumes lit if it comes next.
func (c *cursor) accept(lit string) bool {
	if c.peek() == 0 || !strings.HasPrefix(c.s[c.i:], lit) {
		return false
	}
	c.i += len(lit)
	return true
}

func (c *cursor) expect(lit string) {
	if !c.accept(lit) {
		c.fail(c.i, "want %q, found %s", lit, c.found())
	}
}

// word consumes the bare word w if it comes next.
func (c *cursor) word(w string) bool {
	if c.peek() == 0 || !strings.HasPrefix(c.s[c.i:], w) {
		return false
	}
	if end := c.i + len(w); end < len(c.s) && (isNameByte(c.s[end]) || strings.IndexByte("[(=,", c.s[end]) >= 0) {
		return false
	}
	c.i += len(w)
	return true
}

// isNameByte reports whether names with this byte need no quotes.
func isNameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' ||
		strings.IndexByte("_.{}+-@/%", b) >= 0
}

// appendName prints a name so that cursor.name reads it back.
func appendName(dst []byte, name string) []byte {
	for i := range len(name) {
		if !isNameByte(name[i]) {
			return strconv.AppendQuote(dst, name)
		}
	}
	if name == "" {
		return append(dst, `""`...)
	}
	return append(dst, name...)
}

// name reads a bare or a quoted name; what says of what, for messages.
func (c *cursor) name(what string) string {
	b := c.peek()
	start := c.i
	if b == '"' {
		quoted, err := strconv.QuotedPrefix(c.s[start:])
		if err != nil {
			c.fail(start, "%s: a quoted name does not end", what)
			return ""
		}
		c.i += len(quoted)
		name, _ := strconv.Unquote(quoted)
		c.checkName(start, what, name)
		return name
	}
	for c.err == nil && c.i < len(c.s) && isNameByte(c.s[c.i]) {
		c.i++
	}
	if c.i == start {
		c.fail(start, "want %s, found %s", what, c.found())
		return ""
	}
	c.checkName(start, what, c.s[start:c.i])
	return c.s[start:c.i]
}

func (c *cursor) checkName(off int, what, name string) {
	if err := CheckName(name); err != nil && name != "" { // what may be empty is for CheckNames to say
		c.fail(off, "%s %v", what, err)
	}
}

// int reads an integer.
func (c *cursor) int(what string) int {
	c.peek()
	start, i := c.i, c.i
	if i < len(c.s) && c.s[i] == '-' {
		i++
	}
	for i < len(c.s) && c.s[i] >= '0' && c.s[i] <= '9' {
		i++
	}
	n, err := strconv.Atoi(c.s[start:i])
	if err != nil || n > maxInt || n < -maxInt {
		c.fail(start, "want %s, an integer of at most 2^53 in magnitude, found %s", what, c.found())
	}
	if c.err != nil {
		return 0
	}
	c.i = i
	return n
}

// interval reads LO..HI.
func (c *cursor) interval(what string) (lo, hi int) {
	lo = c.int(what)
	c.expect("..")
	return lo, c.int(what)
}

// family reads `for FIRST..LAST` or `for FIRST..LAST by STEP` if it comes next; the indices number least or more. A
// step of 1 is returned as 0, so that there is one way to have it.
func (c *cursor) family(least int) (first, count, step int) {
	if !c.word("for") {
		return 0, 0, 0
	}
	c.peek()
	start := c.i
	first, last := c.interval("the first and last index")
	by := 1
	if c.word("by") {
		c.peek()
		at := c.i
		if by = c.int("the step between indices"); by < 1 {
			c.fail(at, "indices by %d, want a step of 1 or more", by)
			return 0, 0, 0
		}
		step = oneAsZero(by)
	}
	switch {
	case first < 0 || last < first+(least-1)*by:
		c.fail(start, "indices run from %d to %d, want ascending ones from 0 on", first, last)
	case (last-first)%by != 0:
		c.fail(start, "indices run from %d to %d by %d, want the last one that occurs, which is %d", first, last, by,
			last-(last-first)%by)
	}
	return first, (last-first)/by + 1, step
}

// expr reads an expression.
func (c *cursor) expr() Expr {
	c.peek()
	if c.err != nil {
		return Expr{}
	}
	p := exprParser{s: c.s, i: c.i}
	e, err := p.sum(0)
	if err != nil {
		c.err = err
		return Expr{}
	}
	c.i = p.i
	return e
}

// enum reads a bare word with the parser of its type.
func enum[T any](c *cursor, what string, parse func(string) (T, error)) T {
	c.peek()
	start := c.i
	word := c.name(what)
	v, err := parse(word)
	if err != nil {
		c.fail(start, "%v", err)
	}
	return v
}
