package readback

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir/diag"
)

// maxSource bounds a header, in bytes. Those of the largest models have some tens of thousands, and a hundred times
// as many where the layers are in no loop.
const maxSource = 1 << 21

// pos is a place in a header: line and column from 1, columns in bytes.
type pos struct{ line, col int }

// source is a header, or a walk of the kernel, being read. Its first error ends the reading.
type source struct {
	file  string
	text  string
	code  *diag.Code // of its first error
	marks string     // the punctuation of its grammar
	pairs []string   // of two characters
	at    pos
	i     int
	err   *diag.Diagnostic
	below pos // of an include of a header above this one, where there is one
}

func (s *source) fail(p pos, format string, args ...any) {
	if s.err == nil {
		s.err = diag.Errorf(s.code, s.spell(p), format, args...)
	}
}

func (s *source) spell(p pos) string { return fmt.Sprintf("%s:%d:%d", s.file, p.line, p.col) }

const (
	beginMark = "// amkc:literals"
	endMark   = "// amkc:end"
)

// open skips what may stand before the literals, and cuts off what stands after them.
func (s *source) open() {
	s.at = pos{1, 1}
	if len(s.text) > maxSource {
		s.fail(s.at, "has %d bytes; want at most %d", len(s.text), maxSource)
		return
	}
	rest := s.text
	for {
		line, after, more := strings.Cut(rest, "\n")
		s.clean(line)
		if s.err != nil {
			return
		}
		s.i, s.at.line = s.i+len(line)+1, s.at.line+1
		of, below := strings.CutPrefix(line, `#include "../`)
		if below = below && includes[s.file] == `#include "`+of; below {
			s.below = pos{s.at.line - 1, 1}
		}
		switch {
		case !more:
			s.fail(pos{s.at.line - 1, 1}, "ends before the literals; want a line %s", beginMark)
			return
		case strings.HasPrefix(line, beginMark+" "):
			s.close()
			return
		case line != "" && line != "#pragma once" && !strings.HasPrefix(line, "//") && line != includes[s.file] &&
			!below:
			s.fail(pos{s.at.line - 1, 1}, "%s before the literals; want comments%s alone", clip(line), s.included())
			return
		}
		rest = after
	}
}

// includes has the one line by which a header includes another one before its literals: that of the types of its
// constants.
var includes = map[string]string{
	"model_config.h": `#include "amk/element.cuh"`,
	"pages.h":        `#include "amk/exchange.cuh"`,
	"schedule.h":     `#include "amk/weight_format.cuh"`,
	"stages.h":       `#include "amk/finish.cuh"`,
}

// included is what the file may include, as messages say it.
func (s *source) included() string {
	if includes[s.file] == "" {
		return ""
	}
	return " and " + includes[s.file]
}

// close finds the end mark. Everything up to it must be clean.
func (s *source) close() {
	line := s.at.line
	for at := s.i; ; line++ {
		text, _, more := strings.Cut(s.text[at:], "\n")
		start := s.at
		s.at = pos{line, 1}
		s.clean(text)
		s.at = start
		switch {
		case s.err != nil:
			return
		case text == endMark:
			s.text = s.text[:at]
			return
		case !more:
			s.fail(pos{line, 1}, "ends within the literals; want a line %s", endMark)
			return
		}
		at += len(text) + 1
	}
}

// clean refuses bytes that could make a compiler read the line otherwise than this package does: a backslash joins
// lines, in comments too.
func (s *source) clean(line string) {
	for i := range len(line) {
		if c := line[i]; c == '\\' || c < ' ' || c == 0x7f || strings.HasPrefix(line[i:], "??/") {
			s.fail(pos{s.at.line, i + 1}, "byte %q; want printable text without backslashes up to the end "+
				"of the literals", c)
			return
		}
	}
}

type tokenKind int

const (
	endOfText tokenKind = iota
	word
	number
	punctuation
	comment
)

type token struct {
	kind tokenKind
	text string // of a comment: what follows its slashes
	at   pos
}

func (t token) String() string {
	if t.kind == endOfText {
		return "the end of the literals"
	}
	return clip(t.text)
}

// next returns the next token, comments included.
func (s *source) next() token {
	for s.i < len(s.text) && (s.text[s.i] == ' ' || s.text[s.i] == '\n') {
		s.skip(1)
	}
	t := token{at: s.at}
	if s.i >= len(s.text) || s.err != nil {
		return t
	}
	rest := s.text[s.i:]
	n := 1
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "//"):
		if n = strings.IndexByte(rest, '\n'); n < 0 {
			n = len(rest)
		}
		t.kind, t.text = comment, rest[2:n]
		s.skip(n)
		return t
	case isLetter(c):
		t.kind, n = word, span(rest, func(c byte) bool { return isLetter(c) || isDigit(c) })
	case isDigit(c):
		t.kind, n = number, numberSpan(rest)
	case c == '#' && s.pairs != nil && s.at.col == 1: // a directive is a line
		t.kind = punctuation
		if n = strings.IndexByte(rest, '\n'); n < 0 {
			n = len(rest)
		}
	case strings.IndexByte(s.marks, c) >= 0:
		t.kind = punctuation
		if slices.Contains(s.pairs, rest[:min(2, len(rest))]) {
			n = 2
		}
	default:
		s.fail(s.at, "%q; want a declaration of a literal", c)
		return t
	}
	t.text = rest[:n]
	s.skip(n)
	return t
}

// skip moves on by n bytes.
func (s *source) skip(n int) {
	for range n {
		s.at.col++
		if s.text[s.i] == '\n' {
			s.at = pos{s.at.line + 1, 1}
		}
		s.i++
	}
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

func span(s string, in func(byte) bool) int {
	n := 0
	for n < len(s) && in(s[n]) {
		n++
	}
	return n
}

// numberSpan is the length of a number: letters, digits, points, and the sign of an exponent.
func numberSpan(s string) int {
	n := 0
	for n < len(s) && (isLetter(s[n]) || isDigit(s[n]) || s[n] == '.' || (s[n] == '+' || s[n] == '-') && n > 0 &&
		s[n-1]|0x20 == 'p') {
		n++
	}
	return n
}

// clip quotes text of a header for a message.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		return fmt.Sprintf("%q…", s[:most])
	}
	return fmt.Sprintf("%q", s)
}
