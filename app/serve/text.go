package serve

import (
	"unicode/utf8"

	"amkc/text/sampling"
	"amkc/text/stopping"
	"amkc/text/tokenizer"
)

// A delta is what a token, or the end, adds to an answer. text is whole characters.
type delta struct {
	answer int // of the request's, which it is of
	text   string
	tokens []located // whose text is out with this delta; only where logprobs are wanted
	so     int       // tokens of the answer so far
	finish string    // stop or length, in the last delta alone
	stop   string    // the stop string that was found, in that
	state  []float32 // the last hidden state, where that is the answer
}

// A located token is one with the place of its text. The text of a token that completes no character is empty.
type located struct {
	*sampling.Choice
	start, end int  // bytes of the answer
	offset     int  // of the start, in characters
	first      bool // of a prompt: nothing is known of it
}

// Reasons why an answer ends.
const (
	finishStop   = "stop"
	finishLength = "length"
)

// A writer makes text of tokens, up to a stop string.
type writer struct {
	decoder *tokenizer.Decoder
	stop    stopping.Finder
	given   int       // tokens of the prompt
	decoded int       // bytes that the decoder has given
	chars   int       // the same in characters
	out     int       // of which this many are out
	located bool      // logprobs are wanted
	waiting []located // tokens whose text is not all out
}

// decoder is what texts after a prompt are decoded by. The prompt goes through it as well: what a token looks like may
// depend on the one before it. Where its tokens are a part of the answer, they come later.
func (r *request) decoder(tok *tokenizer.Tokenizer, prompt []int) *tokenizer.Decoder {
	d := tok.NewDecoder(true, r.shown...)
	if r.echo && r.logprobs() {
		return d
	}
	for _, id := range prompt {
		d.Push(id)
	}
	return d
}

// newWriter starts where a decoder is, of which it takes a copy.
func newWriter(d *tokenizer.Decoder, r *request) *writer {
	return &writer{decoder: d.Clone(), stop: stopping.Finder{Stops: r.stops}, located: r.logprobs()}
}

// give takes a token of the prompt, which stop strings have nothing to do with.
func (w *writer) give(c *sampling.Choice) delta {
	part := w.decoder.Push(c.ID)
	t := located{Choice: c, start: w.decoded, end: w.decoded + len(part), offset: w.chars, first: w.given == 0}
	w.given++
	w.decoded += len(part)
	w.chars += utf8.RuneCountInString(part)
	w.out = w.decoded
	return delta{text: part, tokens: []located{t}}
}

// last takes the token that ends the text and is not part of it.
func (w *writer) last(c *sampling.Choice) {
	w.waiting = append(w.waiting, located{Choice: c, start: w.decoded, end: w.decoded, offset: w.chars})
}

// push takes a token. It returns what is certain, and whether a stop string was found: without stops none is looked for
// in its text.
func (w *writer) push(c *sampling.Choice, stops bool) (delta, bool) {
	part := w.decoder.Push(c.ID)
	if w.located {
		w.waiting = append(w.waiting, located{Choice: c, start: w.decoded, end: w.decoded + len(part),
			offset: w.chars})
	}
	return w.take(part, stops)
}

// end returns the rest of a text, and whether a stop string was found in that.
func (w *writer) end() (delta, bool) {
	d, found := w.take(w.decoder.Flush(), true)
	if !found {
		rest := w.stop.Flush()
		d.text += rest
		w.out += len(rest)
		d.tokens = append(d.tokens, w.waiting...)
		w.waiting = nil
	}
	return d, found
}

func (w *writer) take(part string, stops bool) (delta, bool) {
	w.decoded += len(part)
	w.chars += utf8.RuneCountInString(part)
	text, found := part, false
	if stops {
		text, found = w.stop.Push(part)
	}
	w.out += len(text)
	d := delta{text: text}
	for len(w.waiting) > 0 {
		t := w.waiting[0]
		if t.end > w.out && !(found && t.start < w.out) {
			break
		}
		d.tokens = append(d.tokens, t)
		w.waiting = w.waiting[1:]
	}
	if found {
		d.stop = w.stop.Found
		w.waiting = nil // their text is that of the stop string
	}
	return d, found
}
