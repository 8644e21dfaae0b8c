package tokenizer

import "strings"

// A Decoder turns ids into text one at a time. The strings that Push and Flush return are whole characters, and
// joined they equal what Tokenizer.Decode gives for all ids at once. Text is held back only while a later id could
// change it: an unfinished UTF-8 character, or a run of <0xNN> tokens, which is valid or invalid as a whole.
type Decoder struct {
	t           *Tokenizer
	skipSpecial bool
	stages      []stage
	out         strings.Builder
}

// NewDecoder starts a text. With skipSpecial special tokens are left out.
func (t *Tokenizer) NewDecoder(skipSpecial bool) *Decoder {
	d := &Decoder{t: t, skipSpecial: skipSpecial}
	d.restart()
	return d
}

func (d *Decoder) restart() {
	d.stages = d.stages[:0]
	for _, spec := range d.t.decode {
		d.stages = append(d.stages, spec())
	}
}

// Push returns the text that id completes, which may be empty. An id that names no token is ignored.
func (d *Decoder) Push(id int) string {
	token, ok := d.t.text(id)
	if !ok || d.skipSpecial && d.t.IsSpecial(id) {
		return ""
	}
	d.feed(0, token)
	return d.take()
}

// Flush ends the text: it returns what was held back, with U+FFFD for what never became a character. The next Push
// starts a new text.
func (d *Decoder) Flush() string {
	for i, s := range d.stages {
		s.flush(func(token string) { d.feed(i+1, token) })
	}
	d.restart()
	return d.take()
}

// feed gives a token to stage i, or to the output after the last one.
func (d *Decoder) feed(i int, token string) {
	if i == len(d.stages) {
		d.out.WriteString(token)
		return
	}
	d.stages[i].push(token, func(token string) { d.feed(i+1, token) })
}

func (d *Decoder) take() string {
	s := d.out.String()
	d.out.Reset()
	return s
}
