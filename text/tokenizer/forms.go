package tokenizer

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A form is a normalization form of Unicode 9, as the tokenizers library computes it. x/text gives the quick check, the
// decompositions, the classes and the compositions. Its own String would differ in two ways: it puts U+034F into long
// runs of combining marks, and it knows characters of later versions of Unicode, which the library takes for
// unassigned.
//
// The quick check holds for Unicode 9 too. Between two later characters there are only characters of Unicode 9, whose
// normalization never changes, and a part of normalized text is normalized.
type form struct {
	data     norm.Form
	composed bool
}

var (
	nfc  = form{norm.NFC, true}
	nfd  = form{norm.NFD, false}
	nfkd = form{norm.NFKD, false}
)

// nfkc takes two steps: x/text cuts segments before letters of Hangul that compose with what is before them once they
// are decomposed.
func nfkc(text string) string {
	if norm.NFKC.QuickSpanString(text) == len(text) {
		return text
	}
	return nfc.normalize(nfkd.normalize(text))
}

// normalize returns text in the form.
func (f form) normalize(text string) string {
	n := f.data.QuickSpanString(text)
	if n == len(text) {
		return text
	}
	out := append(make([]byte, 0, len(text)), text[:n]...)
	seg := segmentOf{form: f}
	for rest := text[n:]; rest != ""; {
		n := f.segmentEnd(rest)
		out = seg.normalize(out, rest[:n])
		rest = rest[n:]
		n = f.data.QuickSpanString(rest)
		out = append(out, rest[:n]...)
		rest = rest[n:]
	}
	return string(out)
}

// segmentEnd is the length of the first segment of text: its first character, and those after it which could combine
// with what is before them or move.
func (f form) segmentEnd(text string) int {
	for i, r := range text {
		if i > 0 && (isLater(r) || f.data.PropertiesString(text[i:]).BoundaryBefore()) {
			return i
		}
	}
	return len(text)
}

// segmentOf normalizes one segment after another, reusing its buffers.
type segmentOf struct {
	form
	chars []classed
	pair  []byte
	whole []byte
}

// A classed is a character and its canonical combining class, which is 0 for a starter.
type classed struct {
	char  rune
	class uint8
}

// normalize appends the normal form of a segment to out: it decomposes, sorts the marks and composes, as Unicode says.
func (s *segmentOf) normalize(out []byte, text string) []byte {
	s.chars = s.chars[:0]
	for i, r := range text {
		if isLater(r) {
			s.chars = append(s.chars, classed{char: r})
			continue
		}
		if first, last := rune(0xAC00), rune(0xD7A3); !s.composed && first <= r && r <= last { // Hangul has no table
			const vowels, ends = 21, 28
			r -= first
			s.chars = append(s.chars, classed{char: 0x1100 + r/ends/vowels}, classed{char: 0x1161 + r/ends%vowels})
			if r%ends > 0 {
				s.chars = append(s.chars, classed{char: 0x11A7 + r%ends})
			}
			continue
		}
		p := s.data.PropertiesString(text[i:])
		parts := p.Decomposition()
		if parts == nil {
			s.chars = append(s.chars, classed{r, p.CCC()})
		}
		for len(parts) > 0 {
			r, size := utf8.DecodeRune(parts)
			s.chars = append(s.chars, classed{r, s.data.Properties(parts).CCC()})
			parts = parts[size:]
		}
	}
	sortMarks(s.chars)
	if s.composed {
		s.compose()
	}
	for _, c := range s.chars {
		out = utf8.AppendRune(out, c.char)
	}
	return out
}

// sortMarks puts each run of characters that are not starters into the order of their classes.
func sortMarks(chars []classed) {
	for i := 0; i < len(chars); i++ {
		start := i
		for i < len(chars) && chars[i].class != 0 {
			i++
		}
		slices.SortStableFunc(chars[start:i], func(a, b classed) int { return int(a.class) - int(b.class) })
	}
}

// compose joins a starter with each character after it that makes one character with it, unless one in between, which
// did not join, has the same class or a higher one.
func (s *segmentOf) compose() {
	kept := s.chars[:0]
	starter := -1
	for _, c := range s.chars {
		if starter >= 0 && (starter == len(kept)-1 || kept[len(kept)-1].class < c.class) {
			if whole, ok := s.join(kept[starter].char, c.char); ok {
				kept[starter].char = whole
				continue
			}
		}
		if c.class == 0 {
			starter = len(kept)
		}
		kept = append(kept, c)
	}
	s.chars = kept
}

// join returns the one character that a and b compose to.
func (s *segmentOf) join(a, b rune) (whole rune, ok bool) {
	if isLater(a) || isLater(b) {
		return 0, false
	}
	s.pair = utf8.AppendRune(s.pair[:0], b)
	if norm.NFC.QuickSpan(s.pair) == len(s.pair) {
		return 0, false // b is the second half of nothing
	}
	s.pair = utf8.AppendRune(utf8.AppendRune(s.pair[:0], a), b)
	s.whole = norm.NFC.Append(s.whole[:0], s.pair...)
	whole, size := utf8.DecodeRune(s.whole)
	return whole, size == len(s.whole)
}

// isLater says whether a later version of Unicode than 9 gave r a part in normalization.
func isLater(r rune) bool { return r >= firstLater && unicode.Is(later, r) }

const firstLater = 0x07FD

// later holds the characters of Unicode 10 to 17 that have a combining class, decompose or compose, and of blocks that
// are newer as a whole also others: those are inert in every version.
var later = &unicode.RangeTable{
	R16: []unicode.Range16{
		{firstLater, firstLater, 1}, // NKo
		{0x0897, 0x089F, 1},         // Arabic
		{0x08CA, 0x08D3, 1},
		{0x09FE, 0x09FE, 1}, // Bengali
		{0x0C3C, 0x0C3C, 1}, // Telugu
		{0x0D3B, 0x0D3C, 1}, // Malayalam
		{0x0EBA, 0x0EBA, 1}, // Lao
		{0x1715, 0x1715, 1}, // Tagalog
		{0x1ABF, 0x1AFF, 1}, // combining marks
		{0x1DF6, 0x1DFA, 1},
		{0x32FF, 0x32FF, 1}, // the era Reiwa
		{0xA7F1, 0xA7F4, 1}, // modifier letters
		{0xA82C, 0xA82C, 1}, // Syloti Nagri
		{0xAB69, 0xAB69, 1}, // a modifier letter
	},
	R32: []unicode.Range32{
		{0x105C0, 0x105FF, 1}, // Todhri
		{0x10780, 0x107BF, 1}, // modifier letters
		{0x10D00, 0x10D8F, 1}, // Hanifi Rohingya, Garay
		{0x10E80, 0x10FAF, 1}, // Yezidi, Arabic, Old Sogdian, Sogdian, Old Uyghur
		{0x11070, 0x11070, 1}, // Brahmi
		{0x1133B, 0x1133B, 1}, // Grantha
		{0x11380, 0x113FF, 1}, // Tulu-Tigalari
		{0x1145E, 0x1145E, 1}, // Newa
		{0x11800, 0x1184F, 1}, // Dogra
		{0x11900, 0x11AAF, 1}, // Dives Akuru, Nandinagari, Zanabazar Square, Soyombo
		{0x11D00, 0x11DAF, 1}, // Masaram Gondi, Gunjala Gondi
		{0x11F00, 0x11F5F, 1}, // Kawi
		{0x16100, 0x1613F, 1}, // Gurung Khema
		{0x16D40, 0x16D7F, 1}, // Kirat Rai
		{0x16FF0, 0x16FF1, 1}, // Vietnamese reading marks
		{0x1CCD6, 0x1CCF9, 1}, // outlined letters and digits
		{0x1E030, 0x1E14F, 1}, // Cyrillic, Nyiakeng Puachue Hmong
		{0x1E290, 0x1E2FF, 1}, // Toto, Wancho
		{0x1E4D0, 0x1E6FF, 1}, // Nag Mundari, Ol Onal, Tai Yo
		{0x1F16C, 0x1F16C, 1}, // symbols
		{0x1FBF0, 0x1FBF9, 1},
	},
}
