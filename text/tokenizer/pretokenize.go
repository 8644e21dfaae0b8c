package tokenizer

import (
	"errors"
	"fmt"
	"strings"

	"amkc/text/tokenizer/chars"
	"amkc/text/tokenizer/regex"
)

// A piece is a stretch of text that merges never cross.
type piece struct {
	text  string
	first bool // starts where the text given to Encode starts
}

// A preTokenizer cuts a piece into smaller ones, rewriting them if it must. It gives them, which may be empty, to the
// next step, e.pre(step+1, piece). Matchers and the like are in the encoder, by step.
type preTokenizer interface {
	cut(e *encoder, step int, p piece)
}

// pre takes a piece through the steps from step on, and to the model.
func (e *encoder) pre(step int, p piece) {
	switch {
	case p.text == "" || e.full:
	case step < len(e.t.split):
		e.t.split[step].cut(e, step, p)
	default:
		if e.t.written {
			e.bytes, _ = appendStandIns(e.bytes[:0], p.text) // all of it: the steps after ByteLevel only cut
			p.text = string(e.bytes)
		}
		e.word(p.text)
	}
}

// word takes a word to the model, unless that has too many tokens in any case: merging a long one takes memory.
func (e *encoder) word(word string) {
	if left := e.most - len(e.ids); len(word) > left && e.t.model.least(word) > left {
		e.full = true
		return
	}
	e.ids = e.merger.tokenize(e.ids, word, e.most)
	e.full = len(e.ids) > e.most
}

func (t *Tokenizer) addPreTokenizer(c component) error {
	var step preTokenizer
	var err error
	switch c.kind {
	case "Split":
		step, err = loadSplit(c)
	case "Digits":
		step, err = loadDigits(c)
	case "Punctuation":
		step, err = loadPunctuation(c)
	case "Whitespace":
		step = split{find: regex.Runs(chars.PlainWord(), chars.Union(chars.PlainWord(), chars.Space).Not()),
			behavior: "Removed", invert: true}
	case "WhitespaceSplit":
		step = split{find: regex.Any(chars.Space), behavior: "Removed"}
	case "ByteLevel":
		if t.toBytes { // each time round, a byte outside ASCII becomes two
			return &UnsupportedError{c.where, "a second ByteLevel", "one"}
		}
		t.toBytes = true
		step, err = loadByteLevel(c)
	case "Metaspace":
		if t.toBytes { // its mark is not among the characters that bytes are written as
			return &UnsupportedError{c.where, "Metaspace after ByteLevel", "Split, Digits, Punctuation after it"}
		}
		step, err = t.loadMetaspacePre(c)
	default:
		return c.unsupported("null, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, ByteLevel, Metaspace and " +
			"Sequence of them")
	}
	if err != nil {
		return err
	}
	t.written = t.toBytes && c.kind != "ByteLevel"
	if s, ok := step.(split); ok && s.behavior == "Removed" {
		t.drops = true
	}
	t.split = append(t.split, step)
	return nil
}

// A split cuts around the matches of a pattern. What a behavior does with them is as the library names it. With invert
// it takes what lies between matches for the matches.
type split struct {
	find     *regex.Regexp
	behavior string
	invert   bool
}

var behaviors = map[string]bool{"Removed": true, "Isolated": true, "Contiguous": true, "MergedWithPrevious": true,
	"MergedWithNext": true}

// newSplit checks the name of the behavior.
func newSplit(c component, find *regex.Regexp, behavior string, invert bool) (preTokenizer, error) {
	if !behaviors[behavior] {
		return nil, &UnsupportedError{c.where + ".behavior", fmt.Sprintf("%q", behavior),
			"Removed, Isolated, Contiguous, MergedWithPrevious, MergedWithNext"}
	}
	return split{find, behavior, invert}, nil
}

func (s split) cut(e *encoder, step int, p piece) {
	c := cutter{e: e, step: step, p: p, split: s}
	m := e.matcher(step, s.find)
	m.Reset(p.text)
	end := 0
	for !e.full {
		start, next, ok := m.Next()
		if !ok {
			break
		}
		if end < start {
			c.add(end, start, s.invert)
		}
		c.add(start, next, !s.invert)
		end = next
	}
	if end < len(p.text) {
		c.add(end, len(p.text), s.invert)
	}
	c.flush()
}

// A cutter makes pieces of the matches and of what lies between them. A part waits in from and to while the next one may
// join it.
type cutter struct {
	e        *encoder
	step     int
	p        piece
	split    split
	from, to int
	match    bool // what the last part was
}

// add takes the next part of the text.
func (c *cutter) add(from, to int, match bool) {
	joins := false
	switch c.split.behavior {
	case "Removed":
		if match {
			return
		}
	case "Contiguous":
		joins = match == c.match
	case "MergedWithPrevious":
		joins = match && !c.match
	case "MergedWithNext":
		joins = !match && c.match
	}
	c.match = match
	if joins && c.from < c.to {
		c.to = to
		return
	}
	c.flush()
	c.from, c.to = from, to
}

func (c *cutter) flush() {
	c.e.pre(c.step+1, piece{c.p.text[c.from:c.to], c.p.first && c.from == 0})
}

func loadSplit(c component) (preTokenizer, error) {
	var f struct {
		Pattern  patternJSON `json:"pattern"`
		Behavior string      `json:"behavior"`
		Invert   bool        `json:"invert"`
	}
	if err := c.fields(&f); err != nil {
		return nil, err
	}
	find, err := f.Pattern.compile(c.where + ".pattern")
	if err != nil {
		return nil, err
	}
	return newSplit(c, find, f.Behavior, f.Invert)
}

// A patternJSON is the text that Split and Replace look for, or a regular expression.
type patternJSON struct{ String, Regex *string }

func (p patternJSON) compile(where string) (*regex.Regexp, error) {
	switch {
	case p.Regex != nil:
		re, err := regex.Compile(*p.Regex)
		var syntax *regex.SyntaxError
		if errors.As(err, &syntax) {
			return nil, &UnsupportedError{where, syntax.Error(), regex.Accepted}
		}
		return re, nil
	case p.String == nil:
		return nil, malformed(where, "has neither String nor Regex")
	case *p.String == "" || len(*p.String) > maxLiteral:
		return nil, &UnsupportedError{where, fmt.Sprintf("a String of %d bytes", len(*p.String)),
			fmt.Sprintf("1 to %d", maxLiteral)}
	}
	return regex.Literal(*p.String), nil
}

// maxLiteral bounds a pattern that is a text.
const maxLiteral = 256

// loadDigits cuts at numeric characters: each one alone, or runs of them together.
func loadDigits(c component) (preTokenizer, error) {
	var f struct {
		Individual bool `json:"individual_digits"`
	}
	if err := c.fields(&f); err != nil {
		return nil, err
	}
	behavior := "Contiguous"
	if f.Individual {
		behavior = "Isolated"
	}
	return newSplit(c, regex.Any(chars.Numeric()), behavior, false)
}

func loadPunctuation(c component) (preTokenizer, error) {
	f := struct {
		Behavior string `json:"behavior"`
	}{"Isolated"}
	if err := c.fields(&f); err != nil {
		return nil, err
	}
	return newSplit(c, regex.Any(chars.Punctuation()), f.Behavior, false)
}

// metaspace is SentencePiece's visible space, as a pre-tokenizer and as a decoder.
type metaspace struct {
	mark   string
	scheme string // "first", "always", "never": when a mark is put in front
	split  bool   // cut before every mark
}

func loadMetaspace(c component) (m metaspace, err error) {
	var f struct {
		Replacement    string `json:"replacement"`
		PrependScheme  string `json:"prepend_scheme"`
		AddPrefixSpace *bool  `json:"add_prefix_space"` // older spelling of prepend_scheme
		Split          *bool  `json:"split"`
	}
	if err := c.fields(&f); err != nil {
		return m, err
	}
	if _, ok := oneRune(f.Replacement); !ok {
		return m, malformed(c.where+".replacement", "%q is not one character", f.Replacement)
	}
	m = metaspace{f.Replacement, f.PrependScheme, f.Split == nil || *f.Split}
	legacyNever := f.AddPrefixSpace != nil && !*f.AddPrefixSpace
	switch m.scheme {
	case "":
		m.scheme = "always"
		if legacyNever {
			m.scheme = "never"
		}
	case "first", "always", "never":
		if legacyNever && m.scheme != "never" {
			return m, malformed(c.where, "add_prefix_space false contradicts prepend_scheme %q", m.scheme)
		}
	default:
		return m, &UnsupportedError{c.where + ".prepend_scheme", fmt.Sprintf("%q", m.scheme),
			`"first", "always", "never"`}
	}
	return m, nil
}

// loadMetaspacePre refuses the scheme "first" where a step before may insert or remove characters. To the library what
// begins the text is a piece whose first character has the place of the first one of the text as it was given: none has
// if that one is removed, and more than one may if others are inserted.
func (t *Tokenizer) loadMetaspacePre(c component) (preTokenizer, error) {
	m, err := loadMetaspace(c)
	if err != nil {
		return nil, err
	}
	if m.scheme == "first" && t.shifts {
		return nil, &UnsupportedError{c.where + ".prepend_scheme",
			`"first" after a normalizer or a Metaspace that inserts or removes characters`, `"always", "never"`}
	}
	t.shifts = t.shifts || m.scheme != "never"
	return m, nil
}

func (m metaspace) cut(e *encoder, step int, p piece) {
	p.text = strings.ReplaceAll(p.text, " ", m.mark)
	wanted := m.scheme == "always" || m.scheme == "first" && p.first
	if wanted && !strings.HasPrefix(p.text, m.mark) {
		p.text = m.mark + p.text
	}
	for m.split && !e.full {
		i := strings.Index(p.text[1:], m.mark)
		if i < 0 {
			break
		}
		e.pre(step+1, piece{p.text[:i+1], p.first})
		p = piece{text: p.text[i+1:]}
	}
	e.pre(step+1, p)
}
