package prompts

import (
	"strings"

	"amkc/text/stopping"
	"amkc/text/tokenizer"
)

// A Text decodes the tokens after a prompt, up to a stop string.
type Text struct {
	Prompt  string // as the decoder shows it
	Written string // so far

	decoder *tokenizer.Decoder
	stop    stopping.Finder
}

// NewText begins after a prompt, which goes through the decoder as well: what a token looks like may depend on the one
// before it. stops are not empty.
func NewText(tok *tokenizer.Tokenizer, prompt []int, stops []string) *Text {
	t := &Text{decoder: tok.NewDecoder(true), stop: stopping.Finder{Stops: stops}}
	var b strings.Builder
	for _, id := range prompt {
		b.WriteString(t.decoder.Push(id))
	}
	t.Prompt = b.String()
	return t
}

// Push takes a token. It returns the text that is certainly before any stop string, in whole characters, and whether
// one was found, which ends the text.
func (t *Text) Push(id int) (part string, found bool) { return t.take(t.decoder.Push(id)) }

// End ends a text in which no stop string was found. It returns what was held back, and whether that completes one.
func (t *Text) End() (rest string, found bool) {
	rest, found = t.take(t.decoder.Flush())
	if !found {
		held := t.stop.Flush()
		rest += held
		t.Written += held
	}
	return rest, found
}

func (t *Text) take(part string) (text string, found bool) {
	text, found = t.stop.Push(part)
	t.Written += text
	return text, found
}
