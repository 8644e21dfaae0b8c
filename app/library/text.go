package library

import (
	"context"
	"errors"
	"slices"

	"amkc/runtime/host"
	"amkc/text/grammar"
	"amkc/text/sampling"
	"amkc/text/stopping"
	"amkc/text/tokenizer"
)

// Options configure the continuation of a prompt.
type Options struct {
	sampling.Options
	MaxTokens int              // 0: as many as there are positions for
	IgnoreEOS bool             // go on after a token that ends the text
	Stops     []string         // strings at which the text ends; none of them is empty
	Form      *grammar.Grammar // that the text has to be of; nil: any
}

// Reasons why a text ends, as in docs/serving.md.
const (
	Stop   = "stop"   // the model has ended it, or a stop string was found
	Length = "length" // as many tokens as asked for, or the last position
)

// A Token is one step of a text.
type Token struct {
	sampling.Choice
	Text   string // that this token completes: whole characters, perhaps none; of the last one also what was held back
	Finish string // Stop or Length of the last one, and empty of others
}

// A Text is a prompt that is continued token by token.
type Text struct {
	m        *Model
	o        Options
	seq      sequence // the prompt, and what was chosen
	prompt   int      // how much of that is the prompt
	left     int      // tokens that may follow
	ended    bool
	sampler  *sampling.Sampler
	form     *grammar.State     // how much there is of what the text has to be; nil: it may be anything
	decoder  *tokenizer.Decoder // nil without a tokenizer
	stop     stopping.Finder
	ahead    []int // tokens that the kernel has chosen on its own and that were not asked for yet
	launches int
}

// longestBurst is how many tokens the kernel chooses on its own at most, as a power of 2: that many wait for the last
// of them, and so much is decoded in vain after the end of a text.
const longestBurst = 3

// Begin starts a text after a prompt. It decodes nothing.
func (m *Model) Begin(prompt Prompt, o Options) (*Text, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	begun, err := m.sequence(prompt)
	if err != nil {
		return nil, err
	}
	room := m.parts.MaxSeq - len(begun.places) + 1
	switch {
	case o.MaxTokens < 0 || o.MaxTokens > room:
		return nil, inputf("%d tokens were asked for; want 1 to %d, as many as there are positions for after this "+
			"prompt, or 0 for all of them", o.MaxTokens, room)
	case o.MaxTokens == 0:
		o.MaxTokens = room
	}
	if len(o.Stops) > 0 && m.tokenizer == nil {
		return nil, m.noText
	}
	if slices.Contains(o.Stops, "") {
		return nil, inputf("a stop string is empty")
	}
	t := &Text{m: m, o: o, seq: begun, prompt: len(begun.places), left: o.MaxTokens,
		stop: stopping.Finder{Stops: o.Stops}}
	if o.Form != nil {
		if o.IgnoreEOS {
			return nil, inputf("a text of a schema ends where it is whole; want no ignore_eos with it")
		}
		t.form = o.Form.Begin(m.eos...)
	}
	if t.sampler, err = sampling.New(o.Options, m.parts.Vocab, t.IDs()); err != nil {
		return nil, err
	}
	if m.tokenizer != nil {
		t.decoder = m.tokenizer.NewDecoder(true)
		for _, p := range begun.places { // what a token looks like may depend on the one before it
			if p.id != Embedding {
				t.decoder.Push(p.id)
			}
		}
	}
	return t, nil
}

// IDs returns the prompt and the tokens chosen so far.
func (t *Text) IDs() []int {
	ids := make([]int, len(t.seq.places))
	for i, p := range t.seq.places {
		ids[i] = p.id
	}
	return ids
}

// Next chooses the next token: among the ids in allowed, or among all if that is nil. After an error of the input, as
// of a list that leaves no token, it can be called again. Errors: [InputError], [sampling.LogitsError], and those of
// the decoder.
func (t *Text) Next(allowed []int) (Token, error) {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	switch {
	case t.m.closed:
		return Token{}, errClosed
	case t.ended:
		return Token{}, inputf("the text has ended")
	}
	choice, err := t.choose(allowed)
	if err != nil {
		return Token{}, err
	}
	if t.form != nil && !slices.Contains(t.m.eos, choice.ID) {
		if err := t.form.Take(choice.ID); err != nil {
			return Token{}, err
		}
	}
	t.seq.places = append(t.seq.places, place{id: choice.ID})
	t.left--
	return t.token(choice), nil
}

func (t *Text) choose(allowed []int) (c sampling.Choice, err error) {
	m := t.m
	if allowed == nil && t.form == nil && sampling.Chooses(m.parts.Decoder, &t.o.Options, false) {
		if c.ID, err = t.chosen(); err == nil {
			t.sampler.Chose(c.ID)
		}
		return c, err
	}
	t.ahead = nil
	mask, err := t.mask(allowed)
	if err != nil {
		return c, err
	}
	if text := t.text(mask); sampling.Chooses(m.parts.Decoder, &t.o.Options, true) {
		if !sampling.Delegate(m.parts.Decoder, &t.o.Options, text) {
			return c, errChoice
		}
		if c.ID, err = m.reach(t.seq, 0, host.Outputs{}); err == nil {
			t.sampler.Chose(c.ID)
		}
		return c, err
	}
	if _, err := m.reach(t.seq, 1, host.Outputs{Logits: func(_ int, logits []float32) error {
		m.logits = append(m.logits[:0], logits...)
		return nil
	}}); err != nil {
		return c, err
	}
	return t.sampler.Next(m.logits, mask)
}

// errChoice is of a decoder that says one thing and does another.
var errChoice = errors.New("the decoder does not choose tokens by these options")

// text is what the choice of the next token depends on.
func (t *Text) text(allowed sampling.Mask) sampling.Text {
	ids := t.IDs()
	return sampling.Text{Prompt: ids[:t.prompt], Output: ids[t.prompt:], Allowed: allowed}
}

// mask is what may follow: of the ids in allowed, unless that is nil, what makes the text of its form.
func (t *Text) mask(allowed []int) (mask sampling.Mask, err error) {
	m := t.m
	if allowed != nil {
		if err := m.valid(allowed); err != nil {
			return nil, err
		}
		mask = sampling.NewMask(m.parts.Vocab, allowed...)
	}
	if t.form != nil {
		formed := sampling.Mask(t.form.Mask())
		for i := range mask {
			mask[i] &= formed[i]
		}
		if mask == nil {
			mask = formed
		}
	}
	return mask, nil
}

// chosen is the token that the kernel chooses. It may choose several in one launch, more from launch to launch: a
// launch costs time, and what the kernel decodes after a stop string is for nothing.
func (t *Text) chosen() (next int, err error) {
	if len(t.ahead) > 0 {
		next, t.ahead = t.ahead[0], t.ahead[1:]
		return next, nil
	}
	m, last := t.m, len(t.seq.places)-1
	if !sampling.Delegate(m.parts.Decoder, &t.o.Options, t.text(nil)) {
		return 0, errChoice
	}
	g, can := m.parts.Decoder.(generator)
	n := min(1<<t.launches, t.left)
	if !can || n == 1 || t.seq.places[last].id == Embedding || !m.knows(t.seq.places[:last]) {
		t.launches = min(t.launches+1, longestBurst)
		return m.reach(t.seq, 0, host.Outputs{})
	}
	t.launches = min(t.launches+1, longestBurst)
	if err := m.parts.Decoder.Rewind(last); err != nil {
		return 0, err
	}
	held := m.cached[:last]
	m.cached = nil
	var ends []int
	if !t.o.IgnoreEOS {
		ends = m.eos
	}
	chosen, err := g.Generate(context.Background(), t.seq.places[last].id, n, ends, nil)
	var none *sampling.LogitsError
	if len(chosen) == 0 || err != nil && !errors.As(err, &none) { // what came before logits without a token counts
		m.restart()
		return 0, err
	}
	m.cached = append(held, t.seq.places[last:]...)
	for _, id := range chosen[:len(chosen)-1] {
		m.cached = append(m.cached, place{id: id})
	}
	t.ahead = chosen[1:]
	return chosen[0], nil
}

// token is what a choice adds to the text.
func (t *Text) token(c sampling.Choice) Token {
	out, ended, found := Token{Choice: c}, !t.o.IgnoreEOS && slices.Contains(t.m.eos, c.ID), false
	if t.decoder != nil && !ended {
		out.Text, found = t.stop.Push(t.decoder.Push(c.ID))
	}
	ended = ended || t.form != nil && t.form.MayEnd() && !t.form.MayGoOn()
	if t.decoder != nil && !found && (ended || t.left == 0) {
		var rest string
		if rest, found = t.stop.Push(t.decoder.Flush()); !found {
			rest += t.stop.Flush()
		}
		out.Text += rest
	}
	switch {
	case ended || found:
		out.Finish = Stop
	case t.left == 0:
		out.Finish = Length
	}
	if t.ended = out.Finish != ""; t.ended {
		t.ahead = nil
	}
	return out
}
