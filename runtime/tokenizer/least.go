package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// How many tokens a text has at least, found without encoding it. A token stands for no more bytes than it has, and so a
// text of many bytes has many tokens: unless some of the text may become none, or any number of characters one, as
// unknown ones do where they are dropped or fused. Where that may be, there is no bound.

// measure fills the table of the longest tokens. A model has it whose tokens stand for their own text: each byte of a
// word, or each character, is a token or is spelt by byte tokens, and no token is merged from byte tokens.
func (m *bpe) measure() {
	m.longest = [256]int{}
	if m.bytes {
		for _, id := range m.initial {
			if id == noToken {
				return
			}
		}
	} else if !m.spells() {
		return
	}
	for b := range m.longest {
		m.longest[b] = 1
	}
	for token := range m.ids {
		for i := range len(token) {
			m.longest[token[i]] = max(m.longest[token[i]], len(token))
		}
	}
}

// spells reports whether byte tokens spell each character that is no token, and no token has the text of one in it.
func (m *bpe) spells() bool {
	if !m.byteFallback {
		return false
	}
	for _, id := range m.byteTokens {
		if id == noToken {
			return false
		}
	}
	for token := range m.ids {
		if _, is := byteToken(token); is {
			continue
		}
		for rest := token; ; {
			i := strings.Index(rest, "<0x")
			if i < 0 {
				break
			}
			if rest = rest[i:]; len(rest) >= 6 {
				if _, is := byteToken(rest[:6]); is {
					return false
				}
			}
			rest = rest[1:]
		}
	}
	return true
}

// least is a number of tokens that a word has at least: a token of n bytes has each of them in it, and each of these
// counts for one n-th of a token or less.
func (m *bpe) least(word string) int {
	if m.longest[0] == 0 {
		return 0
	}
	var counts [256]int
	for i := range len(word) {
		counts[word[i]]++
	}
	n := 0
	for b, count := range counts {
		n += count / m.longest[b]
	}
	return n
}

// A coverage is what a token stands for at most in a text as it is given.
type coverage struct {
	bytes int  // 0: any number
	white bool // and white space beside it
}

// coverage finds what a token stands for at most, added ones and what steps before the model leave out included.
func (t *Tokenizer) coverage() (c coverage) {
	if t.model.longest[0] == 0 || t.shrink == limitless || t.drops {
		return c
	}
	longest := 0
	for _, n := range t.model.longest {
		longest = max(longest, n)
	}
	given := 0
	for _, a := range t.added {
		if a.Normalized {
			longest = max(longest, len(a.pattern))
		} else {
			given = max(given, len(a.pattern))
		}
		if a.LStrip || a.RStrip {
			if a.Normalized && len(t.normalize) > 0 { // what is white space then need not be now
				return coverage{}
			}
			c.white = true
		}
	}
	c.bytes = max(given, longest*t.shrink)
	return c
}

// Least is a number of tokens that a text has at least, found without encoding it; 0 where its bytes do not say.
func (t *Tokenizer) Least(text string) int { return t.covers.least(text) }

// least is a number of tokens that a text has at least.
func (c coverage) least(text string) int {
	if c.bytes == 0 {
		return 0
	}
	n := len(text)
	if c.white {
		for _, r := range text {
			if unicode.IsSpace(r) {
				n -= utf8.RuneLen(r)
			}
		}
	}
	return n / c.bytes
}
