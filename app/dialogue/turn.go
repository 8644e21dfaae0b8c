package dialogue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"amkc/text/jinja"
	"amkc/text/reply"
	"amkc/text/sampling"
	"amkc/text/tokenizer"
)

// stats of an answer.
type stats struct {
	kept, read       int           // tokens of the prompt: that the cache had, and that were decoded
	written          int           // tokens of the answer
	reading, writing time.Duration // up to the first token of the answer, and from there to the last
}

// String is without a rate where there is too little to have one.
func (s *stats) String() string {
	if s == nil {
		return "nothing has been answered yet"
	}
	text := fmt.Sprintf("%d tokens kept, %d read", s.kept, s.read)
	if s.reading > 0 {
		text += fmt.Sprintf(" at %.1f per second", float64(s.read)/s.reading.Seconds())
	}
	text += fmt.Sprintf(", %d written", s.written)
	if s.written > 1 && s.writing > 0 {
		text += fmt.Sprintf(" at %.1f per second", float64(s.written-1)/s.writing.Seconds())
	}
	return text
}

// turn answers a message. Both become part of the conversation, also where the answer was stopped.
func (d *Dialogue) turn(ctx context.Context, text string) error {
	messages, prompt, err := d.fit(append(slices.Clone(d.messages), message("user", text)))
	if err != nil {
		return d.fault("%v", err)
	}
	if len(prompt.ids) > d.maxSeq {
		return d.fault("the context is too small: the message takes %d tokens, and there are %d positions; shorten "+
			"it, or compile with a larger --max-seq", len(prompt.ids), d.maxSeq)
	}
	if i := slices.IndexFunc(prompt.ids, func(id int) bool { return id >= d.vocab }); i >= 0 {
		return d.fault("the message has token %d, and the model has ids 0 to %d", prompt.ids[i], d.vocab-1)
	}
	if n := len(d.messages) + 1 - len(messages); n > 0 {
		d.note(fmt.Sprintf("the context of %d positions is full: the oldest %d messages are no longer in it", d.maxSeq,
			n))
	}
	a := newAnswer(d, prompt)
	stopped, err := d.answer(ctx, a)
	d.last = &a.stats
	if endErr := a.end(); err == nil {
		err = endErr
	}
	if err != nil {
		return err
	}
	said := message("assistant", a.said)
	if d.Format == nil {
		said = message("assistant", a.text)
	}
	if a.thought != "" {
		said.Set("reasoning_content", a.thought)
	}
	d.messages = append(messages, said)
	switch full := len(prompt.ids)+a.written > d.maxSeq; {
	case stopped:
		d.note("stopped")
	case !a.ended && full:
		d.note(fmt.Sprintf("the answer was cut: the context of %d positions is full; /clear starts over", d.maxSeq))
	case !a.ended:
		d.note(fmt.Sprintf("the answer was cut after %d tokens (--max-tokens)", a.written))
	}
	if d.Stats {
		d.note(a.stats.String())
	}
	return nil
}

// A prompt is what messages become.
type prompt struct {
	text string
	ids  []int
}

// prompt returns what messages become.
func (d *Dialogue) prompt(messages []jinja.Value) (prompt, error) {
	text, err := d.render(messages)
	if err != nil {
		return prompt{}, fmt.Errorf("the chat template does not format the conversation: %w", err)
	}
	ids, err := d.Tokenizer.Encode(text, d.Format == nil) // a template writes the begin token itself
	if err != nil {
		return prompt{}, fmt.Errorf("the message cannot be encoded: %s", strings.TrimPrefix(err.Error(), "tokenizer: "))
	}
	return prompt{text, ids}, nil
}

// fit returns messages, and their prompt, without the oldest turns where all of them leave the answer less than a
// quarter of the context. Then half of it is made free, because a prompt with another beginning is decoded again. The
// system message stays, and so does the last message, whatever it takes.
func (d *Dialogue) fit(messages []jinja.Value) ([]jinja.Value, prompt, error) {
	room := d.maxSeq / 4
	if d.MaxTokens > 0 {
		room = min(room, d.MaxTokens)
	}
	whole, err := d.prompt(messages)
	if err != nil || len(whole.ids)+room <= d.maxSeq {
		return messages, whole, err
	}
	system := 0
	if d.System != "" {
		system = 1
	}
	without := func(turns int) []jinja.Value { // each is a message and its answer
		return append(slices.Clone(messages[:system]), messages[system+2*turns:]...)
	}
	turns := (len(messages) - system) / 2
	if turns == 0 {
		return messages, whole, nil
	}
	dropped := 1 + sort.Search(turns-1, func(n int) bool {
		var p prompt
		if p, err = d.prompt(without(n + 1)); err != nil {
			return true
		}
		return len(p.ids) <= min(d.maxSeq/2, d.maxSeq-room)
	})
	if err != nil {
		return messages, whole, err
	}
	kept := without(dropped)
	p, err := d.prompt(kept)
	return kept, p, err
}

// An answer is what the model has written so far.
type answer struct {
	d       *Dialogue
	ids     []int // the prompt, and what the decoder has chosen after it
	prompt  int   // how many of them are the prompt's
	text    string
	decoder *tokenizer.Decoder
	reader  *reply.Reader
	thought string // of the text, what stands in front of the answer
	said    string // and the answer
	ended   bool   // by a stop id

	began, first, newest time.Time
	stats
}

// newAnswer starts after the prompt, which goes through the decoder as well: what a token looks like may depend on the
// one before it.
func newAnswer(d *Dialogue, p prompt) *answer {
	a := &answer{d: d, ids: slices.Clone(p.ids), prompt: len(p.ids), began: time.Now(),
		decoder: d.Tokenizer.NewDecoder(true, d.marks...), reader: d.reply.Reader(p.text, nil)}
	for _, id := range p.ids {
		a.decoder.Push(id)
	}
	return a
}

// answer decodes what the cache lacks of the prompt, and what the model writes after it. It reports whether it was
// interrupted.
func (d *Dialogue) answer(ctx context.Context, a *answer) (stopped bool, err error) {
	for a.kept < min(len(d.held), a.prompt-1) && d.held[a.kept] == a.ids[a.kept] {
		a.kept++ // but for the last id, which the answer comes after
	}
	a.read = a.prompt - a.kept
	if err := d.decoder.Rewind(a.kept); err != nil {
		return false, err
	}
	turn, cancel := context.WithCancel(ctx)
	watching := make(chan bool)
	go func() {
		select {
		case <-d.Interrupts:
			cancel()
			watching <- true
		case watching <- false:
		}
	}()
	err = d.decode(turn, a, d.maxSeq-a.prompt+1)
	interrupted := <-watching
	cancel()
	d.held = a.ids[:min(len(a.ids), d.decoder.Position())]
	if interrupted && d.Interactive && ctx.Err() == nil && (err == nil || errors.Is(err, context.Canceled)) {
		return true, nil
	}
	if interrupted && err == nil {
		err = context.Canceled
	}
	return false, err
}

// decode chooses up to n tokens: on the device alone, where it can.
func (d *Dialogue) decode(ctx context.Context, a *answer, n int) error {
	if d.MaxTokens > 0 {
		n = min(n, d.MaxTokens)
	}
	fresh := slices.Clone(a.ids[a.kept:])
	if sampling.Delegate(d.decoder, &d.Sampling, sampling.Text{Prompt: a.ids}) {
		done, err := d.decoder.Complete(ctx, fresh, n, d.Stops, a.emit)
		if len(done.IDs) > a.written { // chosen after an interrupt, and decoded
			a.ids = append(a.ids[:a.prompt], done.IDs...)
		}
		return err
	}
	sampler, err := sampling.New(d.Sampling, d.vocab, a.ids)
	if err != nil {
		return err
	}
	_, err = sampling.Complete(ctx, d.decoder, sampler, fresh, n, d.Stops, func(c sampling.Choice) error {
		return a.emit(c.ID)
	})
	return err
}

// emit prints what a token completes. What ends an answer is not a part of its text.
func (a *answer) emit(id int) error {
	a.newest = time.Now()
	if a.written == 0 {
		a.first = a.newest
	}
	a.written++
	a.ids = append(a.ids, id)
	if a.ended = slices.Contains(a.d.Stops, id); a.ended {
		return nil
	}
	return a.put(a.decoder.Push(id))
}

func (a *answer) put(text string) error {
	if text == "" {
		return nil
	}
	a.text += text
	if err := a.add(a.reader.Push(text)); err != nil || a.d.shown {
		return err
	}
	return a.d.print(text)
}

// add takes what the reader has found. A terminal shows it without marks, thoughts faint and with a line after them.
func (a *answer) add(p reply.Piece) error {
	before := a.thought != "" && a.said == "" && p.Text != ""
	a.thought, a.said = a.thought+p.Thought, a.said+p.Text
	if !a.d.shown {
		return nil
	}
	if p.Thought != "" {
		if err := a.d.faint(p.Thought); err != nil {
			return err
		}
		before = p.Text != ""
	}
	if before {
		p.Text = "\n\n" + p.Text
	}
	return a.d.print(p.Text)
}

// end prints what was held back, and ends the line.
func (a *answer) end() error {
	if a.written > 0 {
		a.reading, a.writing = a.first.Sub(a.began), a.newest.Sub(a.first)
	}
	if err := a.put(a.decoder.Flush()); err != nil {
		return err
	}
	if err := a.add(a.reader.End()); err != nil {
		return err
	}
	if strings.HasSuffix(a.text, "\n") && (!a.d.shown || strings.HasSuffix(a.said, "\n")) {
		return nil
	}
	return a.d.print("\n")
}
