package jinja

import (
	"strings"
	"unicode"
)

// The case of letters, as Python's strings have it: by the full mappings of Unicode, where one letter may become
// several.

// expansions are the letters whose upper case is more than one letter, each with it: those of Unicode's
// SpecialCasing.txt that depend on no language. The titlecase of such a letter has only its first one in upper case.
var expansions = map[rune]string{}

func init() {
	const of = "ßSS ŉʼN ǰJ̌ ΐΪ́ ΰΫ́ ևԵՒ ẖH̱ ẗT̈ ẘW̊ ẙY̊ ẚAʾ ﬀFF ﬁFI ﬂFL ﬃFFI ﬄFFL ﬅST ﬆST ﬓՄՆ ﬔՄԵ ﬕՄԻ ﬖՎՆ ﬗՄԽ"
	for _, word := range strings.Fields(of) {
		runes := []rune(word)
		expansions[runes[0]] = string(runes[1:])
	}
}

// greek reports whether a letter is one of ancient Greek with a breathing or an iota below, some of which have upper
// cases of several letters.
func greek(r rune) bool { return 0x1f00 <= r && r <= 0x1fff }

func upper(s string) string {
	if ascii(s) {
		return strings.ToUpper(s)
	}
	var b strings.Builder
	for _, r := range s {
		b.WriteString(upperOf(r))
	}
	return b.String()
}

func upperOf(r rune) string {
	if many, ok := expansions[r]; ok {
		return many
	}
	if greek(r) {
		fail(Unsupported, 0, "the upper case of the letter %q is not supported", r)
	}
	return string(unicode.ToUpper(r))
}

func titleOf(r rune) string {
	if many, ok := expansions[r]; ok {
		first, rest := []rune(many)[:1], []rune(many)[1:]
		return string(first) + lower(string(rest))
	}
	if greek(r) {
		fail(Unsupported, 0, "the upper case of the letter %q is not supported", r)
	}
	return string(unicode.ToTitle(r))
}

func lower(s string) string {
	if ascii(s) {
		return strings.ToLower(s)
	}
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		switch {
		case r == 'İ':
			b.WriteString("i̇")
		case r == 'Σ' && finalSigma(runes, i):
			b.WriteRune('ς')
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// finalSigma reports whether a sigma ends a word: a letter stands before it and none behind, what is no letter and
// does not end a word apart.
func finalSigma(s []rune, at int) bool {
	i := at - 1
	for i >= 0 && caseIgnorable(s[i]) {
		i--
	}
	if i < 0 || !cased(s[i]) {
		return false
	}
	i = at + 1
	for i < len(s) && caseIgnorable(s[i]) {
		i++
	}
	return i == len(s) || !cased(s[i])
}

func cased(r rune) bool { return unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) }

func caseIgnorable(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) ||
		strings.ContainsRune("'.:·’․", r)
}

// capitalize is the first letter in upper case and the rest in lower case.
func capitalize(s string) string {
	for _, r := range s {
		rest := []rune(lower(s))
		if l := []rune(lower(string(r))); len(rest) >= len(l) {
			return titleOf(r) + string(rest[len(l):])
		}
	}
	return s
}

// title is every word with its first letter in upper case, and the others in lower case.
func title(s string) string {
	var b strings.Builder
	inside := false
	lowered := []rune(s)
	for i, r := range lowered {
		switch {
		case !inside:
			b.WriteString(titleOf(r))
		case r == 'Σ' && finalSigma(lowered, i):
			b.WriteRune('ς')
		default:
			b.WriteString(lower(string(r)))
		}
		inside = cased(r)
	}
	return b.String()
}

func swapCase(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsUpper(r) {
			b.WriteString(lower(string(r)))
		} else {
			b.WriteString(upperOf(r))
		}
	}
	return b.String()
}

func hasCase(s string) bool { return strings.IndexFunc(s, cased) >= 0 }

func isUpper(s string) bool {
	return hasCase(s) && strings.IndexFunc(s, func(r rune) bool { return unicode.IsLower(r) || unicode.IsTitle(r) }) < 0
}

func isLower(s string) bool {
	return hasCase(s) && strings.IndexFunc(s, func(r rune) bool { return unicode.IsUpper(r) || unicode.IsTitle(r) }) < 0
}

// isDigit reports what str.isdigit does: decimal digits, and those above and below the line and in circles.
func isDigit(r rune) bool {
	const others = "²³¹⁰⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉①②③④⑤⑥⑦⑧⑨⑴⑵⑶⑷⑸⑹⑺⑻⑼⒈⒉⒊⒋⒌⒍⒎⒏⒐⓪⓵⓶⓷⓸⓹⓺⓻⓼⓽⓿" +
		"❶❷❸❹❺❻❼❽❾➀➁➂➃➄➅➆➇➈➊➋➌➍➎➏➐➑➒"
	return unicode.IsDigit(r) || strings.ContainsRune(others, r)
}
