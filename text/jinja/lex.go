package jinja

import (
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	tokEOF tokenKind = iota
	tokData
	tokName
	tokString
	tokNumber
	tokOp // an operator, or one of {{ }} {% %}
)

// A token is a piece of a template. Its text is that of data, names and operators, and the value of strings.
type token struct {
	kind  tokenKind
	text  string
	value Value // of numbers
	line  int
}

func (t token) String() string {
	switch t.kind {
	case tokEOF:
		return "the end of the template"
	case tokString:
		return "a string"
	case tokNumber:
		return "a number"
	}
	if t.text == "}}" || t.text == "%}" {
		return t.text
	}
	return strconv.Quote(t.text)
}

// The regular expressions of jinja2's lexer, with trim_blocks and lstrip_blocks. SP is what Python calls space.
var (
	opening = lexeme(`\{([%{#])([-+]?)`)
	rawTag  = lexeme(`^\{%[-+]?SP*raw(?:SP*-%\}SP*|SP*%\})`)
	rawEnd  = lexeme(`\{%([-+]?)SP*endrawSP*(?:\+%\}|-%\}SP*|%\}\n?)`)
	endings = map[string]*regexp.Regexp{"{": lexeme(`^(?:-\}\}SP*|\}\})`), "%": lexeme(`^(?:\+%\}|-%\}SP*|%\}\n?)`),
		"#": lexeme(`\+#\}|-#\}SP*|#\}\n?`)}
	// space, float, integer, name, string, operator: the first that matches
	lexemes = lexeme(`^(?:(SP+)|((?i:DIGITS(?:(?:\.DIGITS)?e[-+]?DIGITS|\.DIGITS)))|` +
		`((?i:0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[\da-f])+|[1-9](?:_?\d)*|0(?:_?0)*))|([_\pL\pN\pM]+)|` +
		`((?s:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))|(//|\*\*|[=!<>]=|[-+/*%~\[\](){}<>=.:|,;]))`)
	escape = lexeme(`(?s)\\(?:[0-7]{1,3}|x.{0,2}|u.{0,4}|U.{0,8}|.)`)
)

func lexeme(pattern string) *regexp.Regexp {
	return regexp.MustCompile(strings.NewReplacer("SP", `[\s\x0b\x1c-\x1f\x85\pZ]`, "DIGITS", `\d+(?:_\d+)*`).
		Replace(pattern))
}

// lexer cuts a template into tokens.
type lexer struct {
	src       string
	pos       int
	line      int
	lineStart bool // nothing but what was trimmed stands before pos in its line
	tokens    []token
}

// lex returns the tokens of a template, the last one an end of file.
func lex(source string) []token {
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	l := &lexer{src: strings.TrimSuffix(source, "\n"), line: 1, lineStart: true}
	for l.pos < len(l.src) {
		at := opening.FindStringSubmatchIndex(l.src[l.pos:])
		if at == nil {
			l.data(l.src[l.pos:])
			l.advance(len(l.src))
			break
		}
		begin := l.pos + at[0]
		kind, sign := l.src[l.pos+at[2]:l.pos+at[3]], l.src[l.pos+at[4]:l.pos+at[5]]
		after := l.pos + at[1]
		l.data(l.before(l.src[l.pos:begin], kind, sign))
		l.advance(begin)
		if raw := rawTag.FindString(l.src[begin:]); raw != "" {
			l.raw(begin + len(raw))
			continue
		}
		line := l.line
		l.advance(after)
		if kind == "#" {
			if end := endings["#"].FindStringIndex(l.src[l.pos:]); end != nil {
				l.advance(l.pos + end[1])
			} else if l.pos < len(l.src) { // jinja2 accepts a comment that begins at the end
				fail(Syntax, line, "a comment {# has no end; want #}")
			}
			continue
		}
		l.emit(token{kind: tokOp, text: "{" + kind})
		l.tag(kind)
	}
	l.emit(token{kind: tokEOF})
	return l.tokens
}

func (l *lexer) emit(t token) {
	t.line = l.line
	l.tokens = append(l.tokens, t)
}

func (l *lexer) data(text string) {
	if text != "" {
		l.emit(token{kind: tokData, text: text})
	}
}

// advance moves to a position and counts the lines that are passed.
func (l *lexer) advance(to int) {
	passed := l.src[l.pos:to]
	l.line += strings.Count(passed, "\n")
	if passed != "" {
		l.lineStart = strings.HasSuffix(passed, "\n")
	}
	l.pos = to
}

// before is the text in front of a tag, less what the tag strips from it.
func (l *lexer) before(text, kind, sign string) string {
	switch {
	case sign == "-":
		return strings.TrimRightFunc(text, isSpace)
	case sign != "+" && kind != "{":
		start := strings.LastIndexByte(text, '\n') + 1
		if (start > 0 || l.lineStart) && strings.TrimLeftFunc(text[start:], isSpace) == "" {
			return text[:start]
		}
	}
	return text
}

// raw reads text from a position up to {% endraw %}.
func (l *lexer) raw(from int) {
	begin := l.line
	l.advance(from)
	end := rawEnd.FindStringSubmatchIndex(l.src[from:])
	if end == nil && from < len(l.src) { // jinja2 accepts {% raw %} at the end
		fail(Syntax, begin, "{%% raw %%} has no end; want {%% endraw %%}")
	}
	if end != nil {
		l.data(l.before(l.src[from:from+end[0]], "%", l.src[from+end[2]:from+end[3]]))
		l.advance(from + end[1])
	}
}

// tag reads the tokens of a tag up to its end.
func (l *lexer) tag(kind string) {
	ending := endings[kind]
	close := "%}"
	if kind == "{" {
		close = "}}"
	}
	var open []string // brackets that are to be closed
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		if end := ending.FindString(rest); end != "" && len(open) == 0 {
			l.emit(token{kind: tokOp, text: close})
			l.advance(l.pos + len(end))
			return
		}
		match := lexemes.FindStringSubmatch(rest)
		if match == nil {
			r, _ := utf8.DecodeRuneInString(rest)
			if r == '\'' || r == '"' {
				fail(Syntax, l.line, "a string has no end; want %c", r)
			}
			fail(Syntax, l.line, "found %q in a tag", r)
		}
		space, float, integer, name, text, op := match[1], match[2], match[3], match[4], match[5], match[6]
		if float != "" && l.src[l.pos-1] == '.' { // list.0.1: an integer, and another
			float, integer = "", lexemes.FindStringSubmatch(float[:strings.IndexAny(float, ".eE")])[3]
		}
		switch {
		case space != "":
		case float != "":
			f, _ := strconv.ParseFloat(strings.ReplaceAll(float, "_", ""), 64) // beyond its range it is an infinity
			l.emit(token{kind: tokNumber, value: f})
			match[0] = float
		case integer != "":
			if len(integer) > maxDigits {
				fail(Limit, l.line, "a number of %d digits; %d are the most", len(integer), maxDigits)
			}
			v, _ := new(big.Int).SetString(strings.ReplaceAll(integer, "_", ""), 0)
			l.emit(token{kind: tokNumber, value: norm(v)})
			match[0] = integer
		case name != "":
			if r, _ := utf8.DecodeRuneInString(name); !unicode.IsLetter(r) && r != '_' {
				fail(Syntax, l.line, "%q is not a name", name)
			}
			l.emit(token{kind: tokName, text: name})
		case text != "":
			l.emit(token{kind: tokString, text: unescape(text[1:len(text)-1], l.line)})
		default:
			if i := slices.Index([]string{"(", "[", "{"}, op); i >= 0 {
				open = append(open, ")]}"[i:i+1])
			} else if strings.Contains(")]}", op) {
				if len(open) == 0 || open[len(open)-1] != op {
					fail(Syntax, l.line, "found %q, and no bracket that it closes is the last one open", op)
				}
				open = open[:len(open)-1]
			}
			l.emit(token{kind: tokOp, text: op})
		}
		l.advance(l.pos + len(match[0]))
	}
}

// unescape reads the escapes of Python's string literals.
func unescape(s string, line int) string {
	return escape.ReplaceAllStringFunc(s, func(e string) string {
		switch c := e[1]; {
		case c == '\n':
			return ""
		case c == '\'' || c == '"':
			return e[1:]
		case '0' <= c && c < '8':
			v, _ := strconv.ParseUint(e[1:], 8, 32)
			return string(rune(v))
		case c == 'N':
			fail(Unsupported, line, `a character by its name, \N{...}, is not supported`)
		case strings.IndexByte(`abfnrtv\xuU`, c) >= 0:
			r, _, rest, err := strconv.UnquoteChar(e, 0)
			if err != nil || rest != "" {
				fail(Syntax, line, "the escape %s of a string is not a character", e)
			}
			return string(r)
		}
		return e
	})
}

// isSpace reports what Python's str.isspace does of a character.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }
