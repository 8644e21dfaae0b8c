package serve

import (
	"context"
	"slices"
	"time"

	"amkc/runtime/grammar"
	"amkc/runtime/sampling"
)

// A generation is one answer, from the queue to its last token, or the last hidden state after a prompt. The
// scheduler's goroutine alone touches what is below the line.
type generation struct {
	ctx     context.Context // ends when the client goes away
	asked   time.Time       // when it was asked for
	prompt  []int
	state   bool  // the last hidden state is wanted, and nothing of what is below but record, out and metrics
	follows bool  // another generation of the same request
	most    int   // tokens to decode
	ends    []int // tokens after which a text ends
	choice  sampling.Options
	record  *record        // of the request
	out     *outbox        // the answer
	text    *writer        // of the tokens so far
	metrics *metrics       // of the server
	form    *grammar.State // how much there is of what the text has to be; nil: it may be anything
	until   answerReader   // of the text too, which ends behind its first call; nil: it may have any

	// ---
	sampler *sampling.Sampler // nil: what the engine chooses
	last    time.Time
}

// options are what an engine has to know.
func (g *generation) options(e Engine) Options {
	if g.state {
		return Options{State: true}
	}
	o := Options{Logits: !e.Chooses(&g.choice, g.form != nil), Most: g.most, Ends: g.ends, Sampling: &g.choice}
	if g.form != nil && !o.Logits {
		o.Allowed = sampling.Mask(g.form.Mask())
	}
	return o
}

// begin is called when the engine has taken the prompt, of which it has the rows of some tokens.
func (g *generation) begin(o Options, vocab, cached int, now time.Time) (err error) {
	g.record.begin(cached)
	g.metrics.admitted(now.Sub(g.asked), len(g.prompt), cached)
	g.last = now
	if o.Logits {
		g.sampler, err = sampling.New(g.choice, vocab, g.prompt)
	}
	return err
}

// accept takes the next token, or the hidden state. It returns the one to go on with, or that the answer has ended.
func (g *generation) accept(e Event, now time.Time) (token int, ended bool, err error) {
	if g.state {
		g.metrics.embedded()
		g.out.put(delta{state: slices.Clone(e.State)})
		return 0, true, nil
	}
	choice := sampling.Choice{ID: e.Token}
	if g.sampler != nil {
		var allowed sampling.Mask
		if g.form != nil {
			allowed = sampling.Mask(g.form.Mask())
		}
		if choice, err = g.sampler.Next(e.Logits, allowed); err != nil {
			return 0, true, err
		}
	}
	token = choice.ID
	if n := g.record.token(); n == 1 {
		g.metrics.firstToken(now.Sub(g.asked))
	} else {
		g.metrics.nextToken(now.Sub(g.last))
	}
	g.last = now
	if slices.Contains(g.ends, token) {
		g.end(finishStop, delta{})
		return token, true, nil
	}
	if g.form != nil {
		if err := g.form.Take(token); err != nil {
			return token, true, err
		}
	}
	d, found := g.text.push(choice)
	switch {
	case found:
		d.finish = finishStop
		g.finish(d)
		return token, true, nil
	case g.form != nil && g.form.MayEnd() && !g.form.MayGoOn(), g.called(d.text):
		g.end(finishStop, d)
		return token, true, nil
	case g.record.tokens() == g.most:
		g.end(finishLength, d)
		return token, true, nil
	}
	if d.text != "" || len(d.tokens) > 0 {
		g.put(d)
	}
	return token, false, nil
}

// called reports whether there is the one call that there may be.
func (g *generation) called(text string) bool {
	if g.until == nil {
		return false
	}
	g.until.Push(text)
	return g.until.Called()
}

// end is the end of a text without a stop string: what was held back goes out, unless it makes one after all.
func (g *generation) end(reason string, d delta) {
	rest, found := g.text.end()
	if found {
		reason = finishStop
	}
	d.text += rest.text
	d.tokens = append(d.tokens, rest.tokens...)
	d.finish = reason
	g.finish(d)
}

func (g *generation) finish(d delta) {
	g.record.finish(d.finish)
	g.put(d)
}

func (g *generation) put(d delta) {
	d.so = g.record.tokens()
	g.out.put(d)
}
