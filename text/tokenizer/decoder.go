package tokenizer

import (
	"slices"
	"strings"
)

// A Decoder turns ids into text one at a time. The strings that Push and Flush return are whole characters, and
// joined they equal what Tokenizer.Decode gives for all ids at once. Text is held back only while a later id could
// change it: an unfinished UTF-8 character, or a run of <0xNN> tokens, which is valid or invalid as a whole.
type Decoder struct {
	t           *Tokenizer
	skipSpecial bool
	shown       []int // special tokens that are there all the same
	stages      []stage
	next        []func(string) // gives a token to stage i, or to the output after the last one
	out         strings.Builder
}

// NewDecoder starts a text. With skipSpecial, special tokens are omitted, except those that are to be shown.
func (t *Tokenizer) NewDecoder(skipSpecial bool, shown ...int) *Decoder {
	d := &Decoder{t: t, skipSpecial: skipSpecial, shown: shown, stages: make([]stage, len(t.decode))}
	for i := range t.decode {
		d.next = append(d.next, func(token string) { d.stages[i].push(token, d.next[i+1]) })
	}
	d.next = append(d.next, func(token string) { d.out.WriteString(token) })
	d.restart()
	return d
}

// Clone returns a decoder of the same text so far.
func (d *Decoder) Clone() *Decoder {
	c := d.t.NewDecoder(d.skipSpecial, d.shown...)
	for i, s := range d.stages {
		c.stages[i] = s.clone()
	}
	return c
}

func (d *Decoder) restart() {
	for i, spec := range d.t.decode {
		d.stages[i] = spec()
	}
}

// Push returns the text that id completes, which may be empty. An id that names no token is ignored.
func (d *Decoder) Push(id int) string {
	d.feed(id)
	return d.take()
}

// Flush ends the text: it returns the text that was held back, with U+FFFD for incomplete characters. The next Push
// starts a new text.
func (d *Decoder) Flush() string {
	for i, s := range d.stages {
		s.flush(d.next[i+1])
	}
	d.restart()
	return d.take()
}

func (d *Decoder) feed(id int) {
	added, isAdded := d.t.added[id]
	switch {
	case isAdded:
		if !d.skipSpecial || !added.hidden || slices.Contains(d.shown, id) {
			d.next[0](added.pattern)
		}
		return
	case id < 0 || id >= len(d.t.model.kinds) || d.t.model.kinds[id] == absent:
		return
	}
	if d.t.model.kinds[id] == ofBytes && len(d.stages) > 0 {
		if b, ok := d.stages[0].(*byteLevel); ok {
			b.pushBytes(d.t.model.texts[id], d.next[1])
			return
		}
	}
	token, _ := d.t.model.text(id)
	d.next[0](token)
}

func (d *Decoder) take() string {
	s := d.out.String()
	d.out.Reset()
	return s
}

// Bytes returns the bytes of a token inside a text. They need not be whole characters, which may take several tokens.
// Spaces that a decoder drops at the beginning of a text are included. For an id without a token, the result is nil.
func (t *Tokenizer) Bytes(id int) []byte {
	token, ok := t.model.text(id)
	if a, isAdded := t.added[id]; isAdded {
		token = a.pattern
	} else if !ok {
		return nil
	}
	for _, spec := range t.decode {
		switch s := spec().(type) {
		case *byteLevel:
			if raw, ok := appendStandIns(nil, token); ok {
				token = string(raw)
			}
		case *byteFallback:
			if b, ok := byteToken(token); ok {
				return []byte{b}
			}
		case *strip:
			if !s.fused {
				s.push(token, func(text string) { token = text })
			}
		case *unmark:
			s.started = true
			s.push(token, func(text string) { token = text })
		case replace:
			s.push(token, func(text string) { token = text })
		case *spaced:
			token = " " + token
		}
	}
	return []byte(token)
}
