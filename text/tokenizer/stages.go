package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A stage is one step of the decoder: tokens go in one by one and come out rewritten, as soon as they are final.
type stage interface {
	push(token string, emit func(string))
	flush(emit func(string))
	clone() stage // in the same state
}

// A stageSpec makes a stage in its initial state.
type stageSpec func() stage

// loadDecoder reads the decoder. The library's Fuse and ByteLevel turn the list of tokens into one string, and what
// comes after works on that string; here it arrives in parts, cut between characters.
func (t *Tokenizer) loadDecoder(raw json.RawMessage) error {
	growth := 1
	if isNull(raw) {
		t.decode = []stageSpec{func() stage { return &spaced{} }}
		return nil
	}
	fused := false
	return flatten(raw, "decoder", "decoders", func(c component) error {
		if fused && c.kind != "Fuse" && c.kind != "Strip" {
			return &UnsupportedError{c.where, fmt.Sprintf("type %q after Fuse or ByteLevel", c.kind),
				"Strip or Fuse there"}
		}
		spec, err := loadStage(c, fused, &growth)
		if err != nil {
			return err
		}
		if growth > maxGrowth {
			return &UnsupportedError{c.where, fmt.Sprintf("text that may become %d times as long", growth),
				fmt.Sprintf("at most %d times", maxGrowth)}
		}
		if spec != nil {
			t.decode = append(t.decode, spec)
		}
		fused = fused || c.kind == "Fuse" || c.kind == "ByteLevel"
		return nil
	})
}

// loadStage returns nil for Fuse, which changes nothing but what the next stages see.
// It multiplies growth with how much longer the stage may make a token.
func loadStage(c component, fused bool, growth *int) (stageSpec, error) {
	switch c.kind {
	case "ByteLevel":
		return func() stage { return &byteLevel{} }, nil
	case "Replace":
		r, err := loadReplacement(c)
		*growth *= max(r.growth, 1)
		return func() stage { return replace{replacement: r} }, err
	case "ByteFallback":
		return func() stage { return &byteFallback{} }, nil
	case "Fuse":
		return nil, nil
	case "Strip":
		return loadStrip(c, fused)
	case "Metaspace":
		m, err := loadMetaspace(c)
		return func() stage { return &unmark{mark: m.mark, dropFirst: m.scheme != "never"} }, err
	}
	return nil, c.unsupported("null, ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace and Sequence of them")
}

// stateless stages have nothing to flush.
type stateless struct{}

func (stateless) flush(func(string)) {}

// spaced puts a space between tokens: what the library does without a decoder.
type spaced struct {
	stateless
	started bool
}

func (s *spaced) push(token string, emit func(string)) {
	if s.started {
		emit(" ")
	}
	s.started = true
	emit(token)
}

func (s *spaced) clone() stage {
	c := *s
	return &c
}

// byteLevel turns the stand-in characters back into bytes, and bytes into text.
type byteLevel struct {
	pending []byte // the start of a character
	scratch []byte
}

func (b *byteLevel) push(token string, emit func(string)) {
	bytes, ok := appendStandIns(b.scratch[:0], token)
	b.scratch = bytes
	if !ok { // an added token, which stands for its own text
		b.pushBytes(token, emit)
		return
	}
	b.pushBytes(string(bytes), emit)
}

// pushBytes takes the bytes that a token stands for.
func (b *byteLevel) pushBytes(token string, emit func(string)) {
	if len(b.pending) == 0 && utf8.ValidString(token) {
		emit(token)
		return
	}
	text, rest := appendLossy(nil, append(b.pending, token...), false)
	b.pending = rest
	emit(string(text))
}

func (b *byteLevel) flush(emit func(string)) {
	text, _ := appendLossy(nil, b.pending, true)
	emit(string(text))
}

func (b *byteLevel) clone() stage { return &byteLevel{pending: slices.Clone(b.pending)} }

// replace writes one text for another in each token.
type replace struct {
	stateless
	replacement
}

func (r replace) push(token string, emit func(string)) { emit(r.apply(token)) }

func (r replace) clone() stage { return r }

// byteFallback joins a run of <0xNN> tokens into text if the run as a whole is UTF-8, and else gives one U+FFFD a byte.
type byteFallback struct {
	run []byte
}

func (b *byteFallback) push(token string, emit func(string)) {
	if v, ok := byteToken(token); ok {
		b.run = append(b.run, v)
		return
	}
	b.flush(emit)
	emit(token)
}

func (b *byteFallback) flush(emit func(string)) {
	if len(b.run) == 0 {
		return
	}
	if utf8.Valid(b.run) {
		emit(string(b.run))
	} else {
		emit(strings.Repeat("\uFFFD", len(b.run)))
	}
	b.run = b.run[:0]
}

func (b *byteFallback) clone() stage { return &byteFallback{run: slices.Clone(b.run)} }

func byteToken(token string) (byte, bool) {
	if len(token) != 6 || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return 0, false
	}
	v, err := strconv.ParseUint(token[3:5], 16, 8)
	return byte(v), err == nil
}

// strip removes up to start leading characters equal to content: of every token, or of the whole text once fused.
type strip struct {
	stateless
	content string
	start   int
	left    int // how many more may go
	fused   bool
}

func (s *strip) clone() stage {
	c := *s
	return &c
}

func loadStrip(c component, fused bool) (stageSpec, error) {
	var f struct {
		Content string `json:"content"`
		Start   int    `json:"start"`
		Stop    int    `json:"stop"`
	}
	if err := c.fields(&f); err != nil {
		return nil, err
	}
	if _, ok := oneRune(f.Content); !ok {
		return nil, malformed(c.where+".content", "%q is not one character", f.Content)
	}
	if f.Start < 0 || f.Stop != 0 {
		return nil, &UnsupportedError{c.where, fmt.Sprintf("start %d, stop %d", f.Start, f.Stop),
			"stop 0 and a start that is not negative"}
	}
	return func() stage { return &strip{content: f.Content, start: f.Start, left: f.Start, fused: fused} }, nil
}

func (s *strip) push(token string, emit func(string)) {
	if !s.fused {
		s.left = s.start
	}
	for s.left > 0 && strings.HasPrefix(token, s.content) {
		token = token[len(s.content):]
		s.left--
	}
	if token != "" {
		s.left = 0
	}
	emit(token)
}

// unmark is the Metaspace decoder: marks become spaces, but those of the first token vanish if encoding put one there.
type unmark struct {
	stateless
	mark      string
	dropFirst bool
	started   bool
}

func (u *unmark) push(token string, emit func(string)) {
	space := " "
	if u.dropFirst && !u.started {
		space = ""
	}
	u.started = true
	emit(strings.ReplaceAll(token, u.mark, space))
}

func (u *unmark) clone() stage {
	c := *u
	return &c
}
