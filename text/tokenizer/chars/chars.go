// Package chars has the character classes of the tokenizers library, as sets of code points: general categories, white
// space and word characters. It has its own tables, because the library's are of Unicode 16 and those of Go depend on
// the toolchain.
package chars

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// A Range holds the code points from Lo to Hi, both included.
type Range struct{ Lo, Hi rune }

// A Set is a set of code points: ranges in order, with gaps between them.
type Set []Range

// Of returns the set of the given characters.
func Of(members ...rune) Set {
	s := make(Set, len(members))
	for i, r := range members {
		s[i] = Range{r, r}
	}
	return merge(s)
}

// Between returns the set of the code points from lo to hi.
func Between(lo, hi rune) Set { return Set{{lo, hi}} }

// merge sorts ranges and joins those that touch.
func merge(s Set) Set {
	slices.SortFunc(s, func(a, b Range) int { return int(a.Lo) - int(b.Lo) })
	out := s[:0]
	for _, r := range s {
		if n := len(out); n > 0 && r.Lo <= out[n-1].Hi+1 {
			out[n-1].Hi = max(out[n-1].Hi, r.Hi)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// Union returns the union of the sets.
func Union(sets ...Set) Set { return merge(slices.Concat(sets...)) }

// Not returns the complement of s.
func (s Set) Not() Set {
	var out Set
	next := rune(0)
	for _, r := range s {
		if next < r.Lo {
			out = append(out, Range{next, r.Lo - 1})
		}
		next = r.Hi + 1
	}
	if next <= utf8.MaxRune {
		out = append(out, Range{next, utf8.MaxRune})
	}
	return out
}

// And returns the intersection of both sets.
func (s Set) And(t Set) Set { return Union(s.Not(), t.Not()).Not() }

// Has reports whether r is in s. Table is faster for many characters.
func (s Set) Has(r rune) bool {
	i, found := slices.BinarySearchFunc(s, r, func(e Range, r rune) int { return int(e.Lo) - int(r) })
	return found || i > 0 && r <= s[i-1].Hi
}

// A Table answers quickly whether a character is in a set.
type Table struct {
	bits [0x10000 / 64]uint64 // the first plane
	set  Set
}

// Table returns the table of s, which takes 8 KB.
func (s Set) Table() *Table {
	t := &Table{set: s}
	for _, r := range s {
		for c := r.Lo; c <= min(r.Hi, 0xFFFF); {
			if c&63 == 0 && c+63 <= r.Hi {
				t.bits[c>>6] = ^uint64(0)
				c += 64
			} else {
				t.bits[c>>6] |= 1 << (c & 63)
				c++
			}
		}
	}
	return t
}

// Has reports whether r is in the set.
func (t *Table) Has(r rune) bool {
	if uint32(r) < 0x10000 {
		return t.bits[r>>6]>>(r&63)&1 != 0
	}
	return t.set.Has(r)
}

// categoryLetters are the letters that stand for categories in the table, and the names of the categories.
var categoryLetters = map[string]byte{
	"Lu": 'A', "Ll": 'a', "Lt": 't', "Lm": 'm', "Lo": 'o', "Mn": 'n', "Mc": 'c', "Me": 'e', "Nd": 'd', "Nl": 'l',
	"No": 'N', "Pc": '_', "Pd": '-', "Ps": '(', "Pe": ')', "Pi": '<', "Pf": '>', "Po": '!', "Sm": '+', "Sc": '$',
	"Sk": '^', "So": 's', "Zs": 'Z', "Zl": 'L', "Zp": 'P', "Cc": 'C', "Cf": 'f', "Co": 'p', "Cs": 'S', "Cn": '.',
}

// byLetter holds the set of each letter of the table.
var byLetter = sync.OnceValue(func() map[byte]Set {
	sets := map[byte]Set{}
	next := rune(0)
	for rest := categories; rest != ""; {
		letter := rest[0]
		rest = rest[1:]
		length := rune(0)
		for rest != "" && '0' <= rest[0] && rest[0] <= '9' {
			length = 10*length + rune(rest[0]-'0')
			rest = rest[1:]
		}
		length = max(length, 1)
		sets[letter] = append(sets[letter], Range{next, next + length - 1})
		next += length
	}
	return sets
})

// Category returns the characters of a general category, "Lu", or of a group of them, "L".
func Category(name string) (s Set, ok bool) {
	var parts []Set
	for full, letter := range categoryLetters {
		if strings.HasPrefix(full, name) && name != "" {
			parts = append(parts, byLetter()[letter])
		}
	}
	return Union(parts...), len(parts) > 0
}

// category is Category of a name that there is.
func category(name string) Set {
	s, ok := Category(name)
	if !ok {
		panic("no category " + name) // only a constant of this package
	}
	return s
}

// Space is the property White_Space, \s in all parts of the library.
var Space = Union(Between('\t', '\r'), Of(' ', 0x85, 0xA0, 0x1680), Between(0x2000, 0x200A), Of(0x2028, 0x2029, 0x202F,
	0x205F, 0x3000))

// otherAlphabetic are the letter-like symbols that count as word characters, circled and squared ones.
var otherAlphabetic = Union(Between(0x24B6, 0x24E9), Between(0x1F130, 0x1F149), Between(0x1F150, 0x1F169),
	Between(0x1F170, 0x1F189))

// Letter, Number and the rest are the sets that the library's own steps look for, each computed when first asked for.
var (
	Letter = sync.OnceValue(func() Set { return category("L") })
	Number = sync.OnceValue(func() Set { return category("N") })

	// ClassWord is \w in brackets, in patterns of Split and Replace.
	ClassWord = sync.OnceValue(func() Set {
		return Union(category("L"), category("M"), category("Nd"), category("Nl"), category("Pc"), otherAlphabetic)
	})

	// Word is \w in those patterns outside of brackets, where fractions and superscripts of Latin-1 are in it.
	Word = sync.OnceValue(func() Set {
		return Union(ClassWord(), Between(0xB2, 0xB3), Of(0xB9), Between(0xBC, 0xBE))
	})

	// PlainWord is \w elsewhere: of added tokens that are single words, and of the step Whitespace. It has the joiners
	// U+200C and U+200D.
	PlainWord = sync.OnceValue(func() Set { return Union(ClassWord(), Between(0x200C, 0x200D)) })

	// Numeric is the set of the step Digits, numbers of Unicode 17.
	Numeric = sync.OnceValue(func() Set {
		return Union(Number(), Between(0x11DE0, 0x11DE9), Between(0x16FF4, 0x16FF6))
	})

	// EarlyMarks are the combining marks of Unicode 9, which the step StripAccents removes.
	EarlyMarks = sync.OnceValue(func() Set {
		return Union(category("M"), Between(0x1CF2, 0x1CF3)).And(Union(Of(0xCF3), laterMarks).Not())
	})

	// Punctuation is the set of the step Punctuation: that of Unicode 8, and all of ASCII's.
	Punctuation = sync.OnceValue(func() Set {
		return Union(category("P"), Of([]rune("$+<=>^`|~")...), Of(0x166D, 0x111C9)).And(laterPunctuation.Not())
	})
)

// laterPunctuation was not punctuation in Unicode 8.
var laterPunctuation = Set{
	{0x61D, 0x61D}, {0x9FD, 0x9FD}, {0xA76, 0xA76}, {0xC77, 0xC77}, {0xC84, 0xC84}, {0x1B4E, 0x1B4F},
	{0x1B7D, 0x1B7F}, {0x2E43, 0x2E4F}, {0x2E52, 0x2E5D}, {0x10D6E, 0x10D6E}, {0x10EAD, 0x10EAD},
	{0x10F55, 0x10F59}, {0x10F86, 0x10F89}, {0x113D4, 0x113D5}, {0x113D7, 0x113D8}, {0x1144B, 0x1144F},
	{0x1145A, 0x1145B}, {0x1145D, 0x1145D}, {0x11660, 0x1166C}, {0x116B9, 0x116B9}, {0x1183B, 0x1183B},
	{0x11944, 0x11946}, {0x119E2, 0x119E2}, {0x11A3F, 0x11A46}, {0x11A9A, 0x11A9C}, {0x11A9E, 0x11AA2},
	{0x11B00, 0x11B09}, {0x11BE1, 0x11BE1}, {0x11C41, 0x11C45}, {0x11C70, 0x11C71}, {0x11EF7, 0x11EF8},
	{0x11F43, 0x11F4F}, {0x11FFF, 0x11FFF}, {0x12FF1, 0x12FF2}, {0x16D6D, 0x16D6F}, {0x16E97, 0x16E9A},
	{0x16FE2, 0x16FE2}, {0x1E5FF, 0x1E5FF}, {0x1E95E, 0x1E95F},
}

// laterMarks are ranges with the marks of Unicode 10 and later, and no others.
var laterMarks = Set{
	{0x7FD, 0x7FD}, {0x897, 0x89F}, {0x8CA, 0x8D3}, {0x9FE, 0x9FE}, {0xAFA, 0xAFF}, {0xB55, 0xB55},
	{0xC04, 0xC04}, {0xC3C, 0xC3C}, {0xD00, 0xD00}, {0xD3B, 0xD3C}, {0xD81, 0xD81}, {0xEBA, 0xEBA},
	{0xECE, 0xECE}, {0x1715, 0x1715}, {0x180F, 0x180F}, {0x1ABF, 0x1ACE}, {0x1CF7, 0x1CF7}, {0x1DF6, 0x1DFA},
	{0xA82C, 0xA82C}, {0xA8FF, 0xA8FF}, {0x10D24, 0x10D27}, {0x10D69, 0x10D6D}, {0x10EAB, 0x10EAC},
	{0x10EFC, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x11073, 0x11074},
	{0x110C2, 0x110C2}, {0x11145, 0x11146}, {0x111C9, 0x111C9}, {0x111CE, 0x111CF}, {0x11241, 0x11241},
	{0x1133B, 0x1133B}, {0x113B8, 0x113E2}, {0x1145E, 0x1145E}, {0x1182C, 0x1183A}, {0x11930, 0x11943},
	{0x119D1, 0x119E4}, {0x11A01, 0x11A99}, {0x11D31, 0x11D97}, {0x11EF3, 0x11F5A}, {0x13440, 0x13455},
	{0x1611E, 0x1612F}, {0x16F4F, 0x16F4F}, {0x16F7F, 0x16F87}, {0x16FE4, 0x16FF1}, {0x1CF00, 0x1CF46},
	{0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
	{0x1E5EE, 0x1E5EF},
}
