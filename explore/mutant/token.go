package mutant

import (
	"fmt"
	"strings"
)

// A kind of token.
type kind uint8

const (
	word      kind = iota // an identifier or a keyword
	literal               // a number, a string or a character
	mark                  // an operator or a bracket
	directive             // a line of the preprocessor, with the lines that continue it
)

// A token is a piece of a source without what lies around it: blanks and comments.
type token struct {
	kind       kind
	text       string
	begin, end int // bytes of the source
}

func (t token) is(text string) bool { return t.text == text && (t.kind == word || t.kind == mark) }

// marks of more than one character. A pair of angle brackets is two tokens, since it ends two lists of arguments as
// often as it shifts.
var longMarks = []string{"<<=", "...", "->*", "::", "->", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
	"==", "!=", "<=", ">=", "&&", "||"}

// scan splits a source into tokens.
func scan(source string) ([]token, error) {
	var tokens []token
	add := func(k kind, begin, end int) int {
		tokens = append(tokens, token{k, source[begin:end], begin, end})
		return end
	}
	lineBegins := true
	for at := 0; at < len(source); {
		c := source[at]
		rest := source[at:]
		switch {
		case c == '\n':
			lineBegins = true
			at++
			continue
		case c == ' ' || c == '\t' || c == '\r':
			at++
			continue
		case strings.HasPrefix(rest, "//"):
			at += lineEnd(rest)
			continue
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest, "*/")
			if n < 0 {
				return nil, fmt.Errorf("line %d: a comment does not end", lineOf(source, at))
			}
			at += n + 2
			continue
		case c == '#' && lineBegins:
			at = add(directive, at, at+directiveEnd(rest))
			continue
		case isLetter(c):
			at = add(word, at, at+span(rest, func(c byte) bool { return isLetter(c) || isDigit(c) }))
		case isDigit(c) || c == '.' && len(rest) > 1 && isDigit(rest[1]):
			at = add(literal, at, at+numberEnd(rest))
		case c == '"' || c == '\'':
			n := quotedEnd(rest)
			if n < 0 {
				return nil, fmt.Errorf("line %d: a string does not end", lineOf(source, at))
			}
			at = add(literal, at, at+n)
		default:
			n := 1
			for _, m := range longMarks {
				if strings.HasPrefix(rest, m) {
					n = len(m)
					break
				}
			}
			at = add(mark, at, at+n)
		}
		lineBegins = false
	}
	return oneOfAlternatives(tokens), nil
}

func isLetter(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func span(s string, in func(byte) bool) int {
	n := 0
	for n < len(s) && in(s[n]) {
		n++
	}
	return n
}

// numberEnd is the length of a number, which may have an exponent with a sign and marks between digits.
func numberEnd(s string) int {
	n := 0
	for n < len(s) {
		switch c := s[n]; {
		case isLetter(c) || isDigit(c) || c == '.':
		case c == '\'' && n+1 < len(s) && isDigit(s[n+1]):
		case (c == '+' || c == '-') && strings.ContainsRune("eEpP", rune(s[n-1])):
			if (s[n-1] == 'e' || s[n-1] == 'E') && strings.HasPrefix(s, "0x") {
				return n
			}
		default:
			return n
		}
		n++
	}
	return n
}

// quotedEnd is the length of a string or a character, or -1.
func quotedEnd(s string) int {
	for n := 1; n < len(s) && s[n] != '\n'; n++ {
		switch s[n] {
		case '\\':
			n++
		case s[0]:
			return n + 1
		}
	}
	return -1
}

func lineEnd(s string) int {
	if n := strings.IndexByte(s, '\n'); n >= 0 {
		return n
	}
	return len(s)
}

// directiveEnd is the length of a directive without a comment at its end.
func directiveEnd(s string) int {
	n := lineEnd(s)
	for n > 0 && n < len(s) && s[n-1] == '\\' {
		n += 1 + lineEnd(s[n+1:])
	}
	if comment := strings.Index(s[:n], "//"); comment >= 0 {
		n = comment
	}
	return len(strings.TrimRight(s[:n], " \t\r"))
}

func lineOf(source string, at int) int { return 1 + strings.Count(source[:at], "\n") }

// oneOfAlternatives leaves out the tokens of all alternatives but the first, of a directive #if whose alternatives
// have unequal numbers of opening and closing braces: two beginnings of a function, say. Others are read one after the
// other.
func oneOfAlternatives(tokens []token) []token {
	drop := make([]bool, len(tokens))
	var open [][]int // for each #if under way, where its alternatives begin
	for i, t := range tokens {
		if t.kind != directive {
			continue
		}
		switch name := directiveName(t.text); name {
		case "if", "ifdef", "ifndef":
			open = append(open, []int{i})
		case "else", "elif":
			if n := len(open); n > 0 {
				open[n-1] = append(open[n-1], i)
			}
		case "endif":
			n := len(open)
			if n == 0 {
				continue
			}
			begins := append(open[n-1], i)
			open = open[:n-1]
			uneven := false
			for k := 0; k+1 < len(begins); k++ {
				uneven = uneven || braces(tokens[begins[k]:begins[k+1]], drop[begins[k]:begins[k+1]]) != 0
			}
			if !uneven || len(begins) == 2 {
				continue
			}
			for k := begins[1] + 1; k < i; k++ {
				drop[k] = true
			}
		}
	}
	kept := tokens[:0:0]
	for i, t := range tokens {
		if !drop[i] {
			kept = append(kept, t)
		}
	}
	return kept
}

func directiveName(text string) string {
	name := strings.TrimLeft(text[1:], " \t")
	return name[:span(name, isLetter)]
}

// braces is how many braces are opened and not closed.
func braces(tokens []token, drop []bool) int {
	n := 0
	for i, t := range tokens {
		switch {
		case drop[i]:
		case t.is("{"):
			n++
		case t.is("}"):
			n--
		}
	}
	return n
}
