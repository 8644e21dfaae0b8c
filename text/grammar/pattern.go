package grammar

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An expression is a regular one of ECMAScript, as JSON Schema has them in pattern.
type expression struct {
	kind  expressionKind
	set   []runeRange
	of    []*expression
	least int32
	most  int32 // -1: any number
}

type expressionKind byte

const (
	exprSet    expressionKind = iota // a character
	exprThen                         // one after the other
	exprOr                           // any of them
	exprRepeat                       // least to most times
	exprLook                         // what follows begins so
	exprNotLook
	exprBegin // of the text
	exprEnd
)

// A patternError says what of a pattern is not supported.
type patternError struct{ what string }

func (e *patternError) Error() string { return e.what }

// A patternParser reads a pattern.
type patternParser struct {
	rest  string
	depth int
}

// parsePattern reads a pattern.
func parsePattern(text string) (e *expression, err error) {
	p := &patternParser{rest: text}
	defer failed(&err)
	e = p.alternatives()
	if p.rest != "" {
		p.fail("has a ) that closes nothing")
	}
	return e, nil
}

// fail ends the reading. It is the one way out of the parser.
func (p *patternParser) fail(format string, args ...any) {
	panic(&patternError{fmt.Sprintf(format, args...)})
}

// failed recovers what fail ends the reading with, and no other panic.
func failed(err *error) {
	switch wrong := recover().(type) {
	case nil:
	case *patternError:
		*err = wrong
	default:
		panic(wrong)
	}
}

func (p *patternParser) take(text string) bool {
	rest, took := strings.CutPrefix(p.rest, text)
	p.rest = rest
	return took
}

// char takes a character. There has to be one.
func (p *patternParser) char() rune {
	r, n := utf8.DecodeRuneInString(p.rest)
	p.rest = p.rest[n:]
	return r
}

func (p *patternParser) alternatives() *expression {
	if p.depth++; p.depth > maxDepth {
		p.fail("has groups nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	all := []*expression{p.sequence()}
	for p.take("|") {
		all = append(all, p.sequence())
	}
	if len(all) == 1 {
		return all[0]
	}
	return &expression{kind: exprOr, of: all}
}

func (p *patternParser) sequence() *expression {
	e := &expression{kind: exprThen}
	for p.rest != "" && p.rest[0] != '|' && p.rest[0] != ')' {
		e.of = append(e.of, p.repeated(p.item()))
	}
	return e
}

// item is a character, a group or an assertion.
func (p *patternParser) item() *expression {
	switch {
	case p.take("^"):
		return &expression{kind: exprBegin}
	case p.take("$"):
		return &expression{kind: exprEnd}
	case p.take("."):
		return &expression{kind: exprSet, set: complement([]runeRange{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}})}
	case p.take("(?="):
		return p.group(exprLook)
	case p.take("(?!"):
		return p.group(exprNotLook)
	case p.take("(?:"):
		return p.group(exprThen)
	case strings.HasPrefix(p.rest, "(?<=") || strings.HasPrefix(p.rest, "(?<!"):
		p.fail("looks behind with (?<= or (?<!")
	case p.take("(?<"):
		_, rest, named := strings.Cut(p.rest, ">")
		if !named {
			p.fail("has a group whose name has no end")
		}
		p.rest = rest
		return p.group(exprThen)
	case strings.HasPrefix(p.rest, "(?"):
		p.fail("has a group that begins with %s", short(p.rest[:min(len(p.rest), 3)]))
	case p.take("("):
		return p.group(exprThen)
	case p.take("["):
		return p.class()
	case p.take(`\`):
		set, _ := p.escape(false)
		return &expression{kind: exprSet, set: set}
	case strings.ContainsRune("*+?{}]", rune(p.rest[0])):
		p.fail(`has a %c that repeats and closes nothing; want it with a \ in front`, p.rest[0])
	}
	r := p.char()
	return &expression{kind: exprSet, set: []runeRange{{r, r}}}
}

func (p *patternParser) group(kind expressionKind) *expression {
	e := &expression{kind: kind, of: []*expression{p.alternatives()}}
	if !p.take(")") {
		p.fail("has a ( that is not closed")
	}
	return e
}

// repeated reads how often an item stands.
func (p *patternParser) repeated(of *expression) *expression {
	least, most := int32(1), int32(1)
	switch {
	case p.take("*"):
		least, most = 0, -1
	case p.take("+"):
		most = -1
	case p.take("?"):
		least = 0
	case p.take("{"):
		count, rest, closed := strings.Cut(p.rest, "}")
		lo, hi, ranged := strings.Cut(count, ",")
		if !closed {
			p.fail("has a { that is not closed")
		}
		p.rest = rest
		least = p.number(lo)
		if most = least; ranged && hi == "" {
			most = -1
		} else if ranged {
			most = p.number(hi)
		}
		if most >= 0 && most < least {
			p.fail("has {%s}, which ends before it begins", short(count))
		}
	default:
		return of
	}
	if of.kind >= exprLook {
		p.fail("repeats an assertion")
	}
	p.take("?") // which of the ways is tried first makes no difference
	if p.rest != "" && strings.ContainsRune("*+?{", rune(p.rest[0])) {
		p.fail("repeats what is repeated; want a group around it")
	}
	return &expression{kind: exprRepeat, of: []*expression{of}, least: least, most: most}
}

func (p *patternParser) number(text string) int32 {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n > maxRepeats {
		p.fail("has {%s} where a whole number up to %d is wanted", short(text), maxRepeats)
	}
	return int32(n)
}

// Classes of characters that escapes stand for.
var (
	digits      = []runeRange{{'0', '9'}}
	wordLetters = []runeRange{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}
	whitespace  = []runeRange{{'\t', '\r'}, {' ', ' '}, {0xA0, 0xA0}, {0x1680, 0x1680}, {0x2000, 0x200A},
		{0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}}
)

// escape is what stands after a backslash; one: it is one character.
func (p *patternParser) escape(inClass bool) (set []runeRange, one bool) {
	if p.rest == "" {
		p.fail(`ends with a \`)
	}
	r := p.char()
	switch r {
	case 'd':
		return digits, false
	case 'D':
		return complement(digits), false
	case 'w':
		return wordLetters, false
	case 'W':
		return complement(wordLetters), false
	case 's':
		return whitespace, false
	case 'S':
		return complement(whitespace), false
	case 't':
		r = '\t'
	case 'n':
		r = '\n'
	case 'r':
		r = '\r'
	case 'f':
		r = '\f'
	case 'v':
		r = '\v'
	case '0':
		if r = 0; p.rest != "" && p.rest[0] >= '0' && p.rest[0] <= '9' {
			p.fail(`has an octal escape`)
		}
	case 'x':
		r = p.hex(2)
	case 'u':
		if p.take("{") {
			n := strings.IndexByte(p.rest, '}')
			if n < 1 || n > 6 {
				p.fail(`has a \u{ without a number of up to 6 digits in it`)
			}
			r = p.hex(n)
			p.take("}")
		} else if r = p.hex(4); r >= 0xD800 && r <= 0xDBFF && p.take(`\u`) {
			if low := p.hex(4); low >= 0xDC00 && low <= 0xDFFF {
				r = 0x10000 + (r-0xD800)<<10 + (low - 0xDC00)
			}
		}
		if r > 0x10FFFF || r >= 0xD800 && r <= 0xDFFF {
			p.fail("has an escape of a character that there is not")
		}
	case 'b':
		if !inClass {
			p.fail(`has \b, the border of a word`)
		}
		r = '\b'
	default:
		if r >= '1' && r <= '9' || r == 'k' {
			p.fail(`refers back with \%c`, r)
		}
		if r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			p.fail(`has the escape \%c`, r)
		}
	}
	return []runeRange{{r, r}}, true
}

func (p *patternParser) hex(n int) rune {
	if len(p.rest) < n {
		p.fail("has an escape without its %d digits", n)
	}
	v, err := strconv.ParseUint(p.rest[:n], 16, 32)
	if err != nil {
		p.fail("has an escape without its %d digits", n)
	}
	p.rest = p.rest[n:]
	return rune(v)
}

// class is a set of characters in brackets.
func (p *patternParser) class() *expression {
	not := p.take("^")
	var set []runeRange
	member := func() (of []runeRange, one bool) {
		if p.take(`\`) {
			return p.escape(true)
		}
		r := p.char()
		return []runeRange{{r, r}}, true
	}
	for !p.take("]") {
		if p.rest == "" {
			p.fail("has a [ that is not closed")
		}
		of, one := member()
		if len(p.rest) > 1 && p.rest[0] == '-' && p.rest[1] != ']' {
			p.take("-")
			to, alsoOne := member()
			if !one || !alsoOne || to[0].lo < of[0].lo {
				p.fail("has a range of characters that ends before it begins, or has no ends")
			}
			of = []runeRange{{of[0].lo, to[0].lo}}
		}
		set = append(set, of...)
	}
	if set = normal(set); not {
		set = complement(set)
	}
	return &expression{kind: exprSet, set: set}
}

// sets are the sets of characters of an expression.
func (e *expression) sets() [][]runeRange {
	if e.kind == exprSet {
		return [][]runeRange{e.set}
	}
	var all [][]runeRange
	for _, of := range e.of {
		all = append(all, of.sets()...)
	}
	return all
}

// asserts reports whether a part of an expression looks at what is around it.
func (e *expression) asserts() bool {
	return e.kind >= exprLook || slices.ContainsFunc(e.of, (*expression).asserts)
}

// found are the texts in which an expression is found somewhere.
func (l *languages) found(e *expression) (int32, error) {
	first, err := l.followed(e, l.all, atBegin)
	if err != nil {
		return none, err
	}
	later, err := l.followed(e, l.all, pastBegin)
	if err != nil {
		return none, err
	}
	return l.or(first, l.then(l.one(anyRune), l.then(l.all, later))), nil
}

// Where in a text an expression stands.
type textPlace byte

const (
	atBegin   textPlace = iota
	pastBegin           // at least one character is in front
	anyPlace            // either
)

// followed are the texts of an expression, and after each one of rest, up to the end of the text.
func (l *languages) followed(e *expression, rest int32, at textPlace) (int32, error) {
	switch e.kind {
	case exprSet:
		return l.then(l.one(e.set), rest), nil
	case exprBegin:
		switch at {
		case atBegin:
			return rest, nil
		case pastBegin:
			return none, nil
		}
		return none, &patternError{"has ^ after something that may be empty"}
	case exprEnd:
		if l.nodes[rest].empty {
			return nothing, nil
		}
		return none, nil
	case exprLook, exprNotLook:
		ahead, err := l.followed(e.of[0], l.all, at)
		if e.kind == exprNotLook {
			ahead = l.not(ahead)
		}
		return l.and(ahead, rest), err
	case exprOr:
		var all []int32
		for _, of := range e.of {
			part, err := l.followed(of, rest, at)
			if err != nil {
				return none, err
			}
			all = append(all, part)
		}
		return l.or(all...), nil
	case exprRepeat:
		return l.repeat(e, rest, at)
	}
	places := make([]textPlace, len(e.of))
	for i, of := range e.of {
		if places[i] = at; at != pastBegin {
			switch least, most := of.lengths(); {
			case least > 0:
				at = pastBegin
			case most != 0:
				at = anyPlace
			}
		}
	}
	for i, of := range slices.Backward(e.of) {
		var err error
		if rest, err = l.followed(of, rest, places[i]); err != nil {
			return none, err
		}
	}
	return rest, nil
}

// repeat are the texts of a repeated expression. One that looks around can be left out or not.
func (l *languages) repeat(e *expression, rest int32, at textPlace) (int32, error) {
	if !e.of[0].asserts() {
		of, err := l.followed(e.of[0], nothing, at)
		if err != nil {
			return none, err
		}
		return l.then(l.repeated(of, e.least, e.most), rest), nil
	}
	if e.most != 1 {
		return none, &patternError{"repeats a group with ^, $ or a look ahead in it"}
	}
	once, err := l.followed(e.of[0], rest, at)
	if err != nil || e.least == 1 {
		return once, err
	}
	return l.or(once, rest), nil
}

// lengths are those of the shortest and the longest text of an expression; -1: there is no longest.
func (e *expression) lengths() (least, most int) {
	const many = 1 << 20 // more are not told apart
	add := func(a, b int) int {
		if a < 0 || b < 0 {
			return -1
		}
		return min(a+b, many)
	}
	switch e.kind {
	case exprSet:
		return 1, 1
	case exprThen:
		for _, of := range e.of {
			lo, hi := of.lengths()
			least, most = add(least, lo), add(most, hi)
		}
	case exprOr:
		for i, of := range e.of {
			lo, hi := of.lengths()
			if i == 0 {
				least, most = lo, hi
				continue
			}
			if least = min(least, lo); most < 0 || hi < 0 {
				most = -1
			} else {
				most = max(most, hi)
			}
		}
	case exprRepeat:
		lo, hi := e.of[0].lengths()
		least = min(lo*int(e.least), many)
		switch {
		case hi == 0 || e.most == 0:
		case hi < 0 || e.most < 0:
			most = -1
		default:
			most = min(hi*int(e.most), many)
		}
	}
	return least, most
}
