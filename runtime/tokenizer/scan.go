package tokenizer

import "unicode/utf8"

// A scanner returns the length in bytes of the first match of a pattern in non-empty text. Every pattern here matches
// at the first character of any text, so calling it again on the rest cuts the text end to end.
//
// The patterns need look-ahead and Unicode classes of a newer version than Go's, which package regexp cannot express;
// each is implemented by hand and recognised by exact match on its source.
type scanner func(text string) int

const (
	patternGPT2   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	patternLlama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternQwen2  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

var scanners = map[string]scanner{
	patternGPT2:   scanGPT2,
	patternLlama3: func(s string) int { return scanLlama3(s, 3) },
	patternQwen2:  func(s string) int { return scanLlama3(s, 1) },
}

func scanGPT2(s string) int {
	if n := contraction(s, false); n > 0 {
		return n
	}
	body := s
	if s[0] == ' ' {
		body = s[1:]
	}
	space := len(s) - len(body)
	if body != "" {
		switch r, _ := utf8.DecodeRuneInString(body); {
		case isLetter(r):
			return space + runLength(body, isLetter)
		case isNumber(r):
			return space + runLength(body, isNumber)
		case !isSpace(r):
			return space + runLength(body, isOther)
		}
	}
	return whitespace(s)
}

// scanLlama3 is the Llama-3 pattern with at most maxDigits digits a piece.
func scanLlama3(s string, maxDigits int) int {
	if n := contraction(s, true); n > 0 {
		return n
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case isLetter(r):
		return runLength(s, isLetter)
	case isNumber(r):
		n := size
		for d := 1; d < maxDigits; d++ {
			r, size := utf8.DecodeRuneInString(s[n:])
			if size == 0 || !isNumber(r) {
				break
			}
			n += size
		}
		return n
	}
	if !isNewline(r) {
		if n := runLength(s[size:], isLetter); n > 0 {
			return size + n
		}
	}
	body := s
	if r == ' ' {
		body = s[1:]
	}
	if n := runLength(body, isOther); n > 0 {
		n += len(s) - len(body)
		return n + runLength(s[n:], isNewline)
	}
	// Whitespace: up to its last line break, if it has one.
	run := s[:runLength(s, isSpace)]
	for i := len(run) - 1; i >= 0; i-- {
		if isNewline(rune(run[i])) {
			return i + 1
		}
	}
	return whitespace(s)
}

// whitespace matches \s+(?!\S)|\s+: the run, less its last character if text follows, but at least one.
func whitespace(s string) int {
	n := runLength(s, isSpace)
	if n == len(s) {
		return n
	}
	if _, last := utf8.DecodeLastRuneInString(s[:n]); last < n {
		return n - last
	}
	return n
}

// contraction matches 's|'t|'re|'ve|'m|'ll|'d, in any case if fold is set, and returns 0 if nothing matches. Case
// folding takes the long s for an s, as the regular expression does.
func contraction(s string, fold bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	lower := func(c byte) byte {
		if fold && 'A' <= c && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}
	switch lower(s[1]) {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(s) > 2 && lower(s[2]) == 'e' {
			return 3
		}
	case 'l':
		if len(s) > 2 && lower(s[2]) == 'l' {
			return 3
		}
	}
	const longS = "ſ"
	if fold && len(s) > len(longS) && s[1:1+len(longS)] == longS {
		return 1 + len(longS)
	}
	return 0
}

// runLength is the length in bytes of the longest prefix of s made of characters of one class.
func runLength(s string, in func(rune) bool) int {
	for i, r := range s {
		if !in(r) {
			return i
		}
	}
	return len(s)
}
