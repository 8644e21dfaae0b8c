package serve

import (
	"context"
	"slices"
	"time"
)

// A generation is one answer, from the queue to its last token. The scheduler's goroutine alone touches what is below
// the line.
type generation struct {
	ctx     context.Context // ends when the client goes away
	prompt  []int
	most    int      // tokens to decode
	ends    []int    // tokens after which a text ends
	sampler Sampler  // nil: what the engine chooses
	top     int      // alternatives to report with each token; -1: no logprobs
	record  *record  // of the request
	out     *outbox  // the answer
	text    *writer  // of the tokens so far
	metrics *metrics // of the server

	// ---
	history []int // the prompt and the tokens so far
	last    time.Time
}

// options are what the engine has to know.
func (g *generation) options() Options { return Options{Logits: g.sampler != nil || g.top >= 0} }

// begin is called when the engine has taken the prompt, of which it has the rows of some tokens.
func (g *generation) begin(cached int, now time.Time) {
	g.record.begin(cached)
	g.metrics.admitted(now.Sub(g.record.start), len(g.prompt), cached)
	g.last = now
	if g.sampler != nil {
		g.history = slices.Clone(g.prompt)
	}
}

// accept takes the next token. It returns the one to go on with, or that the answer has ended.
func (g *generation) accept(e Event, now time.Time) (token int, ended bool, err error) {
	var p *chosen
	token = e.Token
	var raw []float32
	if g.top >= 0 {
		raw = e.Logits
		if g.sampler != nil {
			raw = slices.Clone(raw) // the sampler changes them
		}
	}
	if g.sampler != nil {
		if token, err = g.sampler.Choose(e.Logits, g.history); err != nil {
			return 0, true, err
		}
		g.history = append(g.history, token)
	}
	if g.top >= 0 {
		c := logprobs(raw, token, g.top)
		p = &c
	}
	if n := g.record.token(); n == 1 {
		g.metrics.firstToken(now.Sub(g.record.start))
	} else {
		g.metrics.nextToken(now.Sub(g.last))
	}
	g.last = now
	if slices.Contains(g.ends, token) {
		g.end(finishStop, delta{})
		return token, true, nil
	}
	d, found := g.text.push(token, p)
	switch {
	case found:
		d.finish = finishStop
		g.finish(d)
		return token, true, nil
	case g.record.tokens() == g.most:
		g.end(finishLength, d)
		return token, true, nil
	}
	if d.text != "" || len(d.tokens) > 0 {
		g.out.put(d)
	}
	return token, false, nil
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
	g.out.put(d)
	g.out.close(nil)
}
