package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A piece is a stretch of text that merges never cross.
type piece struct {
	text  string
	first bool // starts where the text given to Encode starts
}

// A preTokenizer cuts a piece into smaller ones, rewriting them if it must. Empty ones may be emitted.
type preTokenizer func(p piece, emit func(piece))

func applyPreTokenizers(steps []preTokenizer, p piece) []piece {
	if p.text == "" {
		return nil
	}
	pieces := []piece{p}
	for _, step := range steps {
		var next []piece
		emit := func(p piece) {
			if p.text != "" {
				next = append(next, p)
			}
		}
		for _, p := range pieces {
			step(p, emit)
		}
		pieces = next
	}
	return pieces
}

func (t *Tokenizer) addPreTokenizer(c component) error {
	var step preTokenizer
	var err error
	switch c.kind {
	case "Split":
		step, err = loadSplit(c)
	case "Digits":
		step, err = loadDigits(c)
	case "ByteLevel":
		if t.toBytes { // each time round, a byte outside ASCII becomes two
			return &UnsupportedError{c.where, "a second ByteLevel", "one"}
		}
		t.toBytes = true
		step, err = loadByteLevel(c)
	case "Metaspace":
		step, err = loadMetaspacePre(c)
	default:
		return c.unsupported("null, Split, Digits, ByteLevel, Metaspace and Sequence of them")
	}
	if err != nil {
		return err
	}
	t.split = append(t.split, step)
	return nil
}

// loadSplit recognises the known patterns by exact match. Each of them matches at every position of any text, so
// Isolated (cut around matches) and Removed with invert (keep the matches only) do the same.
func loadSplit(c component) (preTokenizer, error) {
	var f struct {
		Pattern  struct{ Regex, String *string } `json:"pattern"`
		Behavior string                          `json:"behavior"`
		Invert   bool                            `json:"invert"`
	}
	if err := c.fields(&f); err != nil {
		return nil, err
	}
	const accepted = "the Regex of Llama-3, Qwen2 or GPT-2, character for character"
	if f.Pattern.Regex == nil {
		return nil, &UnsupportedError{c.where + ".pattern", "a pattern without Regex", accepted}
	}
	scan, ok := scanners[*f.Pattern.Regex]
	if !ok {
		return nil, &UnsupportedError{c.where + ".pattern", fmt.Sprintf("Regex %q", *f.Pattern.Regex), accepted}
	}
	isolated := f.Behavior == "Isolated" && !f.Invert
	keepMatches := f.Behavior == "Removed" && f.Invert
	if !isolated && !keepMatches {
		return nil, &UnsupportedError{c.where, fmt.Sprintf("behavior %q with invert %t", f.Behavior, f.Invert),
			"Isolated without invert, Removed with invert"}
	}
	return func(p piece, emit func(piece)) { scan.each(p, emit) }, nil
}

// each emits the pieces that the scanner finds, end to end.
func (scan scanner) each(p piece, emit func(piece)) {
	for rest := p.text; rest != ""; {
		n := scan(rest)
		emit(piece{rest[:n], p.first})
		p.first = false
		rest = rest[n:]
	}
}

// loadDigits cuts at numeric characters: each one alone, or runs of them together.
func loadDigits(c component) (preTokenizer, error) {
	var f struct {
		Individual bool `json:"individual_digits"`
	}
	if err := c.fields(&f); err != nil {
		return nil, err
	}
	scan := scanner(func(s string) int {
		r, size := utf8.DecodeRuneInString(s)
		digit := isNumeric(r)
		if digit && f.Individual {
			return size
		}
		return size + runLength(s[size:], func(r rune) bool { return isNumeric(r) == digit })
	})
	return func(p piece, emit func(piece)) { scan.each(p, emit) }, nil
}

// loadByteLevel maps every byte to its printable stand-in, after an optional space in front and the GPT-2 split.
func loadByteLevel(c component) (preTokenizer, error) {
	var f struct {
		AddPrefixSpace bool  `json:"add_prefix_space"`
		UseRegex       *bool `json:"use_regex"`
	}
	if err := c.fields(&f); err != nil {
		return nil, err
	}
	useRegex := f.UseRegex == nil || *f.UseRegex
	return func(p piece, emit func(piece)) {
		if f.AddPrefixSpace && !strings.HasPrefix(p.text, " ") {
			p.text = " " + p.text
		}
		toBytes := func(p piece) { emit(piece{byteLevelString(p.text), p.first}) }
		if useRegex {
			scanner(scanGPT2).each(p, toBytes)
		} else {
			toBytes(p)
		}
	}, nil
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

func loadMetaspacePre(c component) (preTokenizer, error) {
	m, err := loadMetaspace(c)
	if err != nil {
		return nil, err
	}
	cut := scanner(func(s string) int {
		if i := strings.Index(s[1:], m.mark); i >= 0 {
			return i + 1
		}
		return len(s)
	})
	return func(p piece, emit func(piece)) {
		p.text = strings.ReplaceAll(p.text, " ", m.mark)
		wanted := m.scheme == "always" || m.scheme == "first" && p.first
		if wanted && !strings.HasPrefix(p.text, m.mark) {
			p.text = m.mark + p.text
		}
		if m.split {
			cut.each(p, emit)
		} else {
			emit(p)
		}
	}, nil
}
