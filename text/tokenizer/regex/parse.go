// Package regex matches the regular expressions of tokenizer.json as Oniguruma does, which the tokenizers library uses:
// alternatives in order, the first that matches wins. It supports the syntax that tokenizers use, and Compile refuses
// the rest of Oniguruma's syntax with a *SyntaxError that says what would be accepted.
//
// The time of a search is linear in the text for any pattern: a search that backtracks too often continues with a
// record of failed choices (see machine.go).
package regex

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"amkc/text/tokenizer/chars"
)

// A SyntaxError reports unsupported syntax of a pattern.
type SyntaxError struct {
	Pattern string
	At      int // offset in bytes
	Got     string
}

// Accepted lists the syntax that Compile accepts.
const Accepted = `characters, classes with ranges, \s \d \w \h \p{..} of general categories and &&, groups (?:..), ` +
	`(?i:..) of ASCII letters, alternatives, ? * + {n,m} also lazy, ?+ *+ ++ of one character, ^ $ \A \z \Z, and ` +
	`(?=.) (?!.) (?<=.) (?<!.) of one character`

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s at byte %d of %q", e.Got, e.At, e.Pattern)
}

// A node is a part of a parsed pattern.
type node interface{}

type (
	// seq matches its parts one after another, alt the first of its branches that leads to a match.
	seq []node
	alt []node
	// one matches a character of a set.
	one struct{ set chars.Set }
	// repeat matches body between min and max times, max < 0 meaning any number: as often as possible, as rarely if
	// lazy, and without giving anything back if possessive.
	repeat struct {
		body             node
		min, max         int
		lazy, possessive bool
	}
	// look holds where the next character, or the one before if behind is set, is of a set; or is not, if negative.
	look struct {
		set              chars.Set
		behind, negative bool
	}
	anchor op
)

// Bounds of a pattern. The longest in use has 600 bytes, and 30 named sets.
const (
	maxPattern = 8192
	maxRepeat  = 64
	maxDepth   = 32
	maxNamed   = 128 // \p{L} and the like, which are large
)

type parser struct {
	pattern string
	pos     int
	depth   int
	named   int
	fold    bool // inside (?i:
}

func (p *parser) fail(format string, args ...any) { p.failAt(p.pos, format, args...) }

// failAt ends parsing: parse recovers the error.
func (p *parser) failAt(at int, format string, args ...any) {
	panic(&SyntaxError{p.pattern, at, fmt.Sprintf(format, args...)})
}

func parse(pattern string) (n node, err error) {
	p := &parser{pattern: pattern}
	defer func() {
		if e, ok := recover().(*SyntaxError); ok {
			err = e
		}
	}()
	if len(pattern) > maxPattern || !utf8.ValidString(pattern) {
		p.fail("more than %d bytes, or none of UTF-8", maxPattern)
	}
	if p.take("(?i)") {
		p.fold = true
	}
	n = p.alternatives()
	if p.pos < len(pattern) {
		p.fail("an unmatched )")
	}
	return n, nil
}

func (p *parser) rest() string { return p.pattern[p.pos:] }

func (p *parser) take(s string) bool {
	if !strings.HasPrefix(p.rest(), s) {
		return false
	}
	p.pos += len(s)
	return true
}

func (p *parser) next() rune {
	r, size := utf8.DecodeRuneInString(p.rest())
	if size == 0 {
		p.fail("the end of the pattern")
	}
	p.pos += size
	return r
}

func (p *parser) alternatives() node {
	if p.depth++; p.depth > maxDepth {
		p.fail("groups nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	branches := alt{p.sequence()}
	for p.take("|") {
		branches = append(branches, p.sequence())
	}
	if len(branches) == 1 {
		return branches[0]
	}
	return branches
}

// sequence takes groups apart that are sequences themselves, as Oniguruma does.
func (p *parser) sequence() node {
	var parts seq
	for p.pos < len(p.pattern) && p.rest()[0] != '|' && p.rest()[0] != ')' {
		start, before := p.pos, len(parts)
		part := p.quantified(p.atom(), start)
		if inner, ok := part.(seq); ok {
			parts = append(parts, inner...)
		} else {
			parts = append(parts, part)
		}
		if p.fold && 0 < before && before < len(parts) {
			p.checkFold(parts[before-1], parts[before], start)
		}
	}
	return parts
}

// checkFold refuses two letters that are one character in some case, as in ﬁ, which Oniguruma matches too.
func (p *parser) checkFold(a, b node, at int) {
	first, okA := a.(one)
	second, okB := b.(one)
	if !okA || !okB {
		return
	}
	for _, pair := range []string{"ss", "ff", "fi", "fl", "st"} {
		if first.set.Has(rune(pair[0])) && second.set.Has(rune(pair[1])) {
			p.failAt(at, "%q in any case, which other characters stand for", pair)
		}
	}
}

// atom parses what a quantifier may follow.
func (p *parser) atom() node {
	start := p.pos
	switch r := p.next(); r {
	case '(':
		return p.group(start)
	case '[':
		return p.folded(p.class(), start)
	case '.':
		return one{chars.Of('\n').Not()}
	case '^':
		return anchor(opBeginLine)
	case '$':
		return anchor(opEndLine)
	case '*', '+', '?':
		p.failAt(start, "%q with nothing to repeat", r)
	case '{', '}', ']':
		p.failAt(start, "a bare %q", r)
	case '\\':
		for escape, a := range map[string]op{"A": opBeginText, "z": opEndText, "Z": opEndTextLine} {
			if p.take(escape) {
				return anchor(a)
			}
		}
		return p.folded(p.escape(start, false), start)
	default:
		return p.folded(chars.Of(r), start)
	}
	return nil // not reached: failAt panics
}

// folded adds the other case of the letters of s inside (?i:.
func (p *parser) folded(s chars.Set, at int) node {
	if !p.fold {
		return one{s}
	}
	if len(s) > 0 && s[len(s)-1].Hi > 0x7F {
		p.failAt(at, "characters beyond ASCII in any case")
	}
	out := s
	for r := 'a'; r <= 'z'; r++ {
		if upper := r - 'a' + 'A'; s.Has(r) || s.Has(upper) {
			out = chars.Union(out, chars.Of(r, upper))
		}
	}
	if s.Has('s') || s.Has('S') {
		out = chars.Union(out, chars.Of('ſ'))
	}
	if s.Has('k') || s.Has('K') {
		out = chars.Union(out, chars.Of('\u212A')) // the sign of kelvin
	}
	return one{out}
}

func (p *parser) group(start int) node {
	outer := p.fold
	defer func() { p.fold = outer }()
	negative, behind := false, false
	switch {
	case p.take("?:"):
	case p.take("?i:"):
		p.fold = true
	case p.take("?-i:"):
		p.fold = false
	case p.take("?="), p.take("?<="), p.take("?!"), p.take("?<!"):
		opening := p.pattern[start:p.pos]
		negative, behind = strings.HasSuffix(opening, "!"), strings.Contains(opening, "<")
		body := p.alternatives()
		p.closing(start)
		set, ok := single(body)
		if !ok {
			p.failAt(start, "%s of more than one character", opening)
		}
		return look{set, behind, negative}
	case p.take("?"):
		p.failAt(start, "a group that begins with %q", p.pattern[start:min(len(p.pattern), p.pos+1)])
	}
	body := p.alternatives()
	p.closing(start)
	return body
}

func (p *parser) closing(start int) {
	if !p.take(")") {
		p.failAt(start, "a ( without its )")
	}
}

// single returns the set of a node that matches one character.
func single(n node) (s chars.Set, ok bool) {
	switch n := n.(type) {
	case one:
		return n.set, true
	case seq:
		if len(n) == 1 {
			return single(n[0])
		}
	case alt:
		for _, branch := range n {
			set, ok := single(branch)
			if !ok {
				return nil, false
			}
			s = chars.Union(s, set)
		}
		return s, true
	}
	return nil, false
}

// quantified parses the quantifier of an atom, if it has one.
func (p *parser) quantified(body node, start int) node {
	r := repeat{body: body}
	braces := false
	switch at := p.pos; {
	case p.take("?"):
		r.max = 1
	case p.take("*"):
		r.max = -1
	case p.take("+"):
		r.min, r.max = 1, -1
	case p.take("{"):
		braces = true
		r.min, r.max = p.bounds(at)
	default:
		return body
	}
	switch at := p.pos; {
	case p.take("?"):
		if braces && r.min == r.max {
			p.failAt(at, "? after {n}")
		}
		r.lazy = true
	case p.take("+"):
		set, ok := single(body)
		if braces || !ok {
			p.failAt(at, "a possessive repeat of anything but one character")
		}
		r.body, r.possessive = one{set}, true
	}
	if p.rest() != "" && strings.ContainsRune("?*+{", rune(p.rest()[0])) {
		p.fail("a repeat of a repeat")
	}
	if r.max != 1 && nullable(body) {
		p.failAt(start, "a repeat of what may be empty")
	}
	switch body.(type) {
	case look, anchor:
		p.failAt(start, "a repeat of a position")
	}
	if r.min == 1 && r.max == 1 {
		return body
	}
	return r
}

// bounds parses what is between { and }.
func (p *parser) bounds(at int) (low, high int) {
	inside, _, ok := strings.Cut(p.rest(), "}")
	from, to, ranged := strings.Cut(inside, ",")
	low, okLow := count(from)
	high, okHigh := low, true
	switch {
	case ranged && to == "":
		high = -1
	case ranged:
		high, okHigh = count(to)
	}
	if !ok || !okLow || !okHigh || low > maxRepeat || high > maxRepeat || high >= 0 && high < low {
		p.failAt(at, "a { without bounds n, {n,} or {n,m} of at most %d", maxRepeat)
	}
	p.pos += len(inside) + 1
	return low, high
}

// count parses decimal digits. A sign would make the { a character.
func count(digits string) (n int, ok bool) {
	value, err := strconv.ParseUint(digits, 10, 16)
	return int(value), err == nil
}
