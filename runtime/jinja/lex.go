package jinja

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	tokEOF tokenKind = iota
	tokData
	tokVarBegin
	tokVarEnd
	tokBlockBegin
	tokBlockEnd
	tokName
	tokString
	tokNumber
	tokOp
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
	case tokVarEnd:
		return "}}"
	case tokBlockEnd:
		return "%}"
	case tokString:
		return "a string"
	case tokNumber:
		return "a number"
	}
	return strconv.Quote(t.text)
}

// lexer cuts a template into tokens, by the rules of jinja2's lexer with trim_blocks and lstrip_blocks.
type lexer struct {
	src       string
	pos       int
	line      int
	lineStart bool // nothing but what was trimmed stands before pos in its line
	tokens    []token
	open      []byte // brackets that are to be closed
}

// lex returns the tokens of a template, with an end of file for the last one.
func lex(source string) []token {
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	l := &lexer{src: strings.TrimSuffix(source, "\n"), line: 1, lineStart: true}
	for l.pos < len(l.src) {
		l.text()
	}
	l.emit(token{kind: tokEOF})
	return l.tokens
}

func (l *lexer) emit(t token) {
	t.line = l.line
	l.tokens = append(l.tokens, t)
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

// text reads what stands before the next tag, and the tag.
func (l *lexer) text() {
	at := l.pos
	for at+1 < len(l.src) && !(l.src[at] == '{' && strings.IndexByte("%{#", l.src[at+1]) >= 0) {
		if next := strings.IndexByte(l.src[at+1:], '{'); next >= 0 {
			at += 1 + next
		} else {
			at = len(l.src)
		}
	}
	if at+1 >= len(l.src) {
		l.data(l.src[l.pos:])
		l.advance(len(l.src))
		return
	}
	kind, sign := l.src[at+1], byte(0)
	after := at + 2
	if after < len(l.src) && (l.src[after] == '-' || l.src[after] == '+') {
		sign = l.src[after]
		after++
	}
	l.data(l.before(l.src[l.pos:at], kind, sign))
	l.advance(at)
	if end, raw := rawTag(l.src, after, "raw"); kind == '%' && raw {
		l.raw(end)
		return
	}
	begin := l.line
	l.advance(after)
	switch kind {
	case '#':
		l.comment(begin)
	case '%':
		l.emit(token{kind: tokBlockBegin})
		l.tag('%', tokBlockEnd)
	default:
		l.emit(token{kind: tokVarBegin})
		l.tag('}', tokVarEnd)
	}
}

// before is the text in front of a tag, less what the tag strips from it.
func (l *lexer) before(text string, kind, sign byte) string {
	switch {
	case sign == '-':
		return strings.TrimRightFunc(text, isSpace)
	case sign != '+' && kind != '{':
		start := strings.LastIndexByte(text, '\n') + 1
		if (start > 0 || l.lineStart) && strings.TrimLeftFunc(text[start:], isSpace) == "" {
			return text[:start]
		}
	}
	return text
}

func (l *lexer) data(text string) {
	if text != "" {
		l.emit(token{kind: tokData, text: text})
	}
}

// endOf returns where a tag's end that begins at pos is over, with what it trims: "-%}" all space, "%}" one line break,
// which a variable's end does not.
func (l *lexer) endOf(pos int, first byte) (int, bool) {
	rest := l.src[pos:]
	mark := string(first) + "}"
	switch {
	case strings.HasPrefix(rest, "-"+mark):
		return len(l.src) - len(strings.TrimLeftFunc(rest[3:], isSpace)), true
	case first != '}' && strings.HasPrefix(rest, "+"+mark):
		return pos + 3, true
	case strings.HasPrefix(rest, mark):
		pos += 2
		if first != '}' && strings.HasPrefix(l.src[pos:], "\n") {
			pos++
		}
		return pos, true
	}
	return 0, false
}

func (l *lexer) comment(begin int) {
	if l.pos == len(l.src) {
		return // as jinja2 has it
	}
	for at := l.pos; ; at++ {
		next := strings.Index(l.src[at:], "#}")
		if next < 0 {
			fail(Syntax, begin, "a comment {# has no end; want #}")
		}
		at += next
		if at > l.pos && (l.src[at-1] == '-' || l.src[at-1] == '+') {
			at--
		}
		end, _ := l.endOf(at, '#')
		l.advance(end)
		return
	}
}

// rawTag reads the rest of a tag {% raw %} or {% endraw %} after the sign.
func rawTag(src string, pos int, name string) (end int, ok bool) {
	rest := strings.TrimLeftFunc(src[pos:], isSpace)
	if rest, ok = strings.CutPrefix(rest, name); !ok {
		return 0, false
	}
	rest = strings.TrimLeftFunc(rest, isSpace)
	if cut, trims := strings.CutPrefix(rest, "-%}"); trims {
		return len(src) - len(strings.TrimLeftFunc(cut, isSpace)), true
	}
	if cut, ends := strings.CutPrefix(rest, "%}"); ends {
		return len(src) - len(cut), true
	}
	return len(src) - len(rest), name == "endraw" && strings.HasPrefix(rest, "+%}")
}

// raw reads text up to {% endraw %}.
func (l *lexer) raw(from int) {
	begin := l.line
	if l.advance(from); from == len(l.src) {
		return // as jinja2 has it
	}
	for at := from; ; at += 2 {
		next := strings.Index(l.src[at:], "{%")
		if next < 0 {
			fail(Syntax, begin, "{%% raw %%} has no end; want {%% endraw %%}")
		}
		at += next
		after, sign := at+2, byte(0)
		if after < len(l.src) && (l.src[after] == '-' || l.src[after] == '+') {
			sign = l.src[after]
			after++
		}
		end, ok := rawTag(l.src, after, "endraw")
		if !ok {
			continue
		}
		if strings.HasPrefix(l.src[end:], "+%}") {
			end += 3
		} else if strings.HasSuffix(l.src[:end], "%}") && strings.HasPrefix(l.src[end:], "\n") &&
			!strings.HasSuffix(l.src[:end], "-%}") {
			end++
		}
		l.data(l.before(l.src[l.pos:at], '%', sign))
		l.advance(end)
		return
	}
}

// operators by length, so that the longest one is found.
var operators = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}",
	">", "<", "=", ".", ":", "|", ",", ";"}

// tag reads the tokens of a tag up to its end, which begins with first.
func (l *lexer) tag(first byte, end tokenKind) {
	for l.pos < len(l.src) {
		if len(l.open) == 0 {
			if to, ok := l.endOf(l.pos, first); ok {
				l.emit(token{kind: end})
				l.advance(to)
				return
			}
		}
		rest := l.src[l.pos:]
		r, _ := utf8.DecodeRuneInString(rest)
		switch {
		case isSpace(r):
			l.advance(len(l.src) - len(strings.TrimLeftFunc(rest, isSpace)))
		case '0' <= r && r <= '9':
			l.number(rest)
		case isWord(r):
			l.name(rest)
		case r == '\'' || r == '"':
			l.str(rest)
		default:
			l.operator(rest)
		}
	}
}

func (l *lexer) name(rest string) {
	n := len(rest) - len(strings.TrimLeftFunc(rest, isWord))
	if r, _ := utf8.DecodeRuneInString(rest); !unicode.IsLetter(r) && r != '_' {
		fail(Syntax, l.line, "%q is no name", rest[:n])
	}
	l.emit(token{kind: tokName, text: rest[:n]})
	l.advance(l.pos + n)
}

func (l *lexer) operator(rest string) {
	for _, op := range operators {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		switch op {
		case "(", "[", "{":
			l.open = append(l.open, map[string]byte{"(": ')', "[": ']', "{": '}'}[op])
		case ")", "]", "}":
			if len(l.open) == 0 || l.open[len(l.open)-1] != op[0] {
				fail(Syntax, l.line, "found %q, and no bracket that it closes is the last one open", op)
			}
			l.open = l.open[:len(l.open)-1]
		}
		l.emit(token{kind: tokOp, text: op})
		l.advance(l.pos + len(op))
		return
	}
	r, _ := utf8.DecodeRuneInString(rest)
	fail(Syntax, l.line, "found %q in a tag", r)
}

func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) || r > 127 && unicode.IsMark(r)
}

// isSpace reports what Python's str.isspace does of a character.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }
