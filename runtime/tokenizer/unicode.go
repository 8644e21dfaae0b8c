package tokenizer

import "unicode"

// The parts of the tokenizers library follow different versions of Unicode: \p{L}, \p{N} and \w are of Unicode 16, the
// numbers that Digits looks for of 17, and NFC of 9 (see nfc.go). Go has Unicode 15, so what was added since is listed
// here. \s is the White_Space property in all of them.

func isLetter(r rune) bool { return unicode.IsLetter(r) || unicode.Is(newLetters, r) }

func isNumber(r rune) bool { return unicode.IsNumber(r) || unicode.Is(newNumbers, r) }

// isNumeric is what Digits takes for a digit.
func isNumeric(r rune) bool { return isNumber(r) || unicode.Is(newestNumbers, r) }

func isSpace(r rune) bool { return unicode.IsSpace(r) }

func isNewline(r rune) bool { return r == '\r' || r == '\n' }

// isOther is [^\s\p{L}\p{N}].
func isOther(r rune) bool { return !isSpace(r) && !isLetter(r) && !isNumber(r) }

// isWord is \w as in the library's single_word test: Alphabetic, marks, decimal digits, connectors, joiners.
func isWord(r rune) bool {
	return isLetter(r) || unicode.In(r, unicode.Nl, unicode.Other_Alphabetic, unicode.M, unicode.Nd, unicode.Pc,
		unicode.Join_Control, newWords)
}

// newLetters and newNumbers are the members of L and N added by Unicode 15.1 and 16.0, newWords what these added to \w
// besides letters, and newestNumbers the members of N added by 17.0.
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
	newWords = &unicode.RangeTable{
		R16: []unicode.Range16{{0x0897, 0x0897, 1}},
		R32: []unicode.Range32{
			{0x10D40, 0x10D49, 1}, {0x10D69, 0x10D6D, 1}, {0x10EFC, 0x10EFC, 1}, {0x113B8, 0x113C0, 1},
			{0x113C2, 0x113C2, 1}, {0x113C5, 0x113C5, 1}, {0x113C7, 0x113CA, 1}, {0x113CC, 0x113D0, 1},
			{0x113D2, 0x113D2, 1}, {0x113E1, 0x113E2, 1}, {0x116D0, 0x116E3, 1}, {0x11BF0, 0x11BF9, 1},
			{0x11F5A, 0x11F5A, 1}, {0x1611E, 0x16139, 1}, {0x16D70, 0x16D79, 1}, {0x1CCF0, 0x1CCF9, 1},
			{0x1E5EE, 0x1E5EF, 1}, {0x1E5F1, 0x1E5FA, 1},
		},
	}
	newestNumbers = &unicode.RangeTable{R32: []unicode.Range32{{0x11DE0, 0x11DE9, 1}, {0x16FF4, 0x16FF6, 1}}}
)
