package tokenizer

import "unicode"

// The tokenizers library matches \p{L} and \p{N} of Unicode 16 and Go has Unicode 15, so the letters and numbers added
// since are listed here. \s is the White_Space property in both.

func isLetter(r rune) bool { return unicode.IsLetter(r) || unicode.Is(newLetters, r) }

func isNumber(r rune) bool { return unicode.IsNumber(r) || unicode.Is(newNumbers, r) }

func isSpace(r rune) bool { return unicode.IsSpace(r) }

func isNewline(r rune) bool { return r == '\r' || r == '\n' }

// isOther is [^\s\p{L}\p{N}].
func isOther(r rune) bool { return !isSpace(r) && !isLetter(r) && !isNumber(r) }

// isWord is \w as in the library's single_word test: Alphabetic, marks, decimal digits, connectors, joiners. It is as
// new as Go's tables: 131 characters added since, mostly marks and digits of small scripts, are words in the library.
func isWord(r rune) bool {
	return isLetter(r) || unicode.In(r, unicode.Nl, unicode.Other_Alphabetic, unicode.M, unicode.Nd, unicode.Pc,
		unicode.Join_Control)
}

// newLetters and newNumbers are the members of L and N added by Unicode 15.1 and 16.0.
var (
	newLetters = &unicode.RangeTable{
		R16: []unicode.Range16{{0x1C89, 0x1C8A, 1}, {0xA7CB, 0xA7CD, 1}, {0xA7DA, 0xA7DC, 1}},
		R32: []unicode.Range32{
			{0x105C0, 0x105F3, 1}, {0x10D4A, 0x10D65, 1}, {0x10D6F, 0x10D85, 1}, {0x10EC2, 0x10EC4, 1},
			{0x11380, 0x11389, 1},
			{0x1138B, 0x1138B, 1}, {0x1138E, 0x1138E, 1}, {0x11390, 0x113B5, 1}, {0x113B7, 0x113B7, 1},
			{0x113D1, 0x113D1, 1},
			{0x113D3, 0x113D3, 1}, {0x11BC0, 0x11BE0, 1}, {0x13460, 0x143FA, 1}, {0x16100, 0x1611D, 1},
			{0x16D40, 0x16D6C, 1},
			{0x18CFF, 0x18CFF, 1}, {0x1E5D0, 0x1E5ED, 1}, {0x1E5F0, 0x1E5F0, 1}, {0x2EBF0, 0x2EE5D, 1},
		},
	}
	newNumbers = &unicode.RangeTable{
		R32: []unicode.Range32{
			{0x10D40, 0x10D49, 1}, {0x116D0, 0x116E3, 1}, {0x11BF0, 0x11BF9, 1}, {0x16130, 0x16139, 1},
			{0x16D70, 0x16D79, 1},
			{0x1CCF0, 0x1CCF9, 1}, {0x1E5F1, 0x1E5FA, 1},
		},
	}
)
