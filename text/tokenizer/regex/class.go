package regex

import (
	"strconv"
	"strings"

	"amkc/text/tokenizer/chars"
)

// class parses what follows [ up to its ].
func (p *parser) class() chars.Set {
	start := p.pos - 1
	if p.depth++; p.depth > maxDepth {
		p.fail("classes nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	negative := p.take("^")
	if strings.HasPrefix(p.rest(), "]") {
		p.fail("a class that begins with ]")
	}
	var members []chars.Set
	var both chars.Set
	for intersected := false; ; {
		if p.pos == len(p.pattern) {
			p.failAt(start, "a [ without its ]")
		}
		ends := strings.HasPrefix(p.rest(), "]")
		if ends || p.take("&&") {
			set := chars.Union(members...)
			if intersected {
				set = both.And(set)
			}
			both, members, intersected = set, nil, true
			if ends {
				p.pos++
				break
			}
			continue
		}
		members = append(members, p.member())
	}
	if negative {
		return both.Not()
	}
	return both
}

// member parses a character, a range, an escape or a class within a class.
func (p *parser) member() chars.Set {
	start := p.pos
	if strings.HasPrefix(p.rest(), "[:") {
		p.fail("a class [:name:]")
	}
	if p.take("[") {
		return p.class()
	}
	low := p.item(start)
	if !strings.HasPrefix(p.rest(), "-") || strings.HasPrefix(p.rest(), "-]") {
		return low
	}
	first, ok := character(low)
	if !ok || strings.HasPrefix(p.rest(), "-[") || strings.HasPrefix(p.rest(), "-&&") {
		p.fail("a - after a class")
	}
	p.pos++
	at := p.pos
	last, ok := character(p.item(at))
	if !ok || last < first {
		p.failAt(start, "a range with no characters in it")
	}
	return chars.Between(first, last)
}

func (p *parser) item(start int) chars.Set {
	if r := p.next(); r != '\\' {
		return chars.Of(r)
	}
	return p.escape(start, true)
}

// character returns the only member of a set.
func character(s chars.Set) (rune, bool) {
	if len(s) != 1 || s[0].Lo != s[0].Hi {
		return 0, false
	}
	return s[0].Lo, true
}

// escape parses what follows a backslash, in a class or outside.
func (p *parser) escape(start int, inClass bool) chars.Set {
	switch r := p.next(); r {
	case 'r':
		return chars.Of('\r')
	case 'n':
		return chars.Of('\n')
	case 't':
		return chars.Of('\t')
	case 'f':
		return chars.Of('\f')
	case 'v':
		return chars.Of('\v')
	case 's':
		return chars.Space
	case 'S':
		return chars.Space.Not()
	case 'd':
		return p.category("Nd", start)
	case 'D':
		return p.category("Nd", start).Not()
	case 'w', 'W':
		p.name(start)
		word := chars.Word
		if inClass {
			word = chars.ClassWord
		}
		if r == 'W' {
			return word().Not()
		}
		return word()
	case 'h':
		return chars.Union(chars.Between('0', '9'), chars.Between('a', 'f'), chars.Between('A', 'F'))
	case 'p', 'P':
		name, _, ok := strings.Cut(p.rest(), "}")
		if !ok || !strings.HasPrefix(name, "{") {
			p.failAt(start, `\%c without {name}`, r)
		}
		p.pos += len(name) + 1
		name, negated := strings.CutPrefix(name[1:], "^")
		set := p.category(name, start)
		if negated != (r == 'P') {
			return set.Not()
		}
		return set
	case 'u':
		return chars.Of(p.hex(4, start))
	case 'x':
		if inside, _, ok := strings.Cut(p.rest(), "}"); ok && strings.HasPrefix(inside, "{") {
			p.pos++
			value := p.hex(len(inside)-1, start)
			p.pos++
			return chars.Of(value)
		}
		value := p.hex(2, start)
		if value > 0x7F {
			p.failAt(start, "a byte that is not a character")
		}
		return chars.Of(value)
	default:
		if r >= 0x80 || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z' {
			p.failAt(start, `\%c`, r)
		}
		return chars.Of(r)
	}
}

// name counts a named set.
func (p *parser) name(start int) {
	if p.named++; p.named > maxNamed {
		p.failAt(start, "more than %d of \\p and \\w", maxNamed)
	}
}

func (p *parser) category(name string, start int) chars.Set {
	p.name(start)
	set, ok := chars.Category(name)
	if !ok {
		p.failAt(start, `\p{%s}, which is not a general category`, name)
	}
	return set
}

// hex parses a character of n hexadecimal digits.
func (p *parser) hex(digits, start int) rune {
	if digits < 1 || len(p.rest()) < digits {
		p.failAt(start, "an unfinished number of a character")
	}
	value, err := strconv.ParseUint(p.rest()[:digits], 16, 32)
	if err != nil || value > 0x10FFFF || value>>11 == 0xD800>>11 {
		p.failAt(start, "%q, which numbers no character", p.rest()[:digits])
	}
	p.pos += digits
	return rune(value)
}
