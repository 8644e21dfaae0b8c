package serve

import (
	"context"
	"slices"
	"time"

	"amkc/text/sampling"
)

// A generation is one answer, from the queue to its last token, or the last hidden state after a prompt. The
// scheduler's goroutine alone touches what is below the line.
type generation struct {
	ctx     context.Context // ends when the client goes away
	asked   time.Time       // when it was asked for
	answer  int             // its number in the request
	again   bool            // an answer before it in the request has the same prompt
	prompt  []int
	state   bool          // the last hidden state is wanted, and nothing of what is below but record, out and metrics
	most    int           // tokens to decode
	ends    []int         // tokens after which a text ends
	least   int           // tokens before anything ends it
	going   sampling.Mask // all tokens but ends; nil: least is 0, or there are no ends
	choice  sampling.Options
	scorer  *scorer      // nil: no log-probabilities are wanted
	echo    bool         // they are wanted of the prompt too, which the answer begins with
	record  *record      // of the request
	out     *outbox      // of the request
	text    *writer      // of the tokens so far
	metrics *metrics     // of the server
	form    *maskWorker  // of the form that the text has to have; nil: it may have any
	until   answerReader // of the text too, which ends after its first call; nil: it may have any

	// ---
	sampler *sampling.Sampler // nil: what the engine chooses
	tokens  int               // so far
	unsent  []delta           // of this step
	held    bool              // it sits out steps, as the scorer is behind, or what the form takes is not found
	taken   Event             // that the form is working for
	last    time.Time
}

// options are what an engine has to know.
func (g *generation) options(e Engine) Options {
	if g.state {
		return Options{State: true}
	}
	o := Options{Logits: g.scorer != nil, Echo: g.echo, Most: max(1, g.most), Ends: g.ends}
	if !e.Chooses(&g.choice, g.masked(), o.Logits) {
		o.Logits = true
		return o
	}
	o.Sampling, o.Masked, o.Allowed = &g.choice, g.masked(), g.allowed()
	return o
}

// masked reports whether some tokens are chosen among others than all.
func (g *generation) masked() bool { return g.form != nil || g.going != nil }

// allowed are the tokens that the next one is chosen among; nil: all.
func (g *generation) allowed() sampling.Mask {
	switch {
	case g.form != nil:
		return g.form.mask
	case g.tokens < g.least:
		return g.going
	}
	return nil
}

// begin is called when the engine has taken the prompt, of which it has the rows of some tokens.
func (g *generation) begin(o Options, vocab, cached int, now time.Time) (err error) {
	if !g.again {
		g.record.begin(cached)
	}
	g.metrics.admitted(now.Sub(g.asked), len(g.prompt), cached)
	g.last = now
	if g.echo {
		g.put(g.text.give(&sampling.Choice{ID: g.prompt[0]}))
	}
	if !o.State && o.Sampling == nil {
		g.sampler, err = sampling.New(g.choice, vocab, g.prompt)
	}
	return err
}

// accept takes the next token, or the hidden state. It returns the one to go on with, or that the answer has ended. An
// answer that has a form is not told what comes of the token before [generation.formed] is called.
func (g *generation) accept(e Event, now time.Time) (token int, ended bool, err error) {
	if g.state {
		g.metrics.embedded()
		g.out.put(delta{state: slices.Clone(e.State)})
		return 0, true, nil
	}
	if e.Given {
		g.give(e)
		return 0, false, nil
	}
	if g.most == 0 {
		g.end(finishLength, delta{})
		return 0, true, nil
	}
	token = e.Token
	if g.sampler != nil {
		choice, err := g.sampler.Next(e.Logits, g.allowed())
		if err != nil {
			return 0, true, err
		}
		token = choice.ID
	}
	g.record.token()
	if g.tokens++; g.tokens == 1 {
		g.metrics.firstToken(now.Sub(g.asked))
	} else {
		g.metrics.nextToken(now.Sub(g.last))
	}
	g.last = now
	if slices.Contains(g.ends, token) {
		if g.echo { // whose lists have all tokens
			choice := &sampling.Choice{ID: token}
			g.text.last(choice)
			g.scorer.score(e.Logits, choice, len(g.prompt)+g.tokens-1, false)
		}
		g.end(finishStop, delta{})
		return token, true, nil
	}
	if g.form != nil {
		g.taken = Event{Token: token, Logits: e.Logits}
		g.form.take(token, g.tokens == g.most)
		return token, false, nil
	}
	return token, g.say(token, e.Logits), nil
}

// formed goes on where the form has been worked for.
func (g *generation) formed() (ended bool, err error) {
	if g.form.err != nil {
		return true, g.form.err
	}
	e := g.taken
	g.taken = Event{}
	return g.say(e.Token, e.Logits), nil
}

// say adds a token to the text, and reports whether that has ended.
func (g *generation) say(token int, logits []float32) (ended bool) {
	choice := &sampling.Choice{ID: token}
	d, found := g.text.push(choice, g.tokens > g.least)
	if g.scorer != nil { // from here on the choice is the scorer's, up to the delta that has it
		g.scorer.score(logits, choice, len(g.prompt)+g.tokens-1, false)
	}
	switch {
	case found:
		d.finish = finishStop
		g.finish(d)
		return true
	case g.form != nil && g.form.whole, g.called(d.text):
		g.end(finishStop, d)
		return true
	case g.tokens == g.most:
		g.end(finishLength, d)
		return true
	}
	if d.text != "" || len(d.tokens) > 0 {
		g.put(d)
	}
	return false
}

// give takes a token of the prompt.
func (g *generation) give(e Event) {
	choice := &sampling.Choice{ID: e.Token}
	d := g.text.give(choice)
	g.scorer.score(e.Logits, choice, g.text.given-1, true)
	g.put(d)
}

// waits reports whether the next step is to go without this answer.
func (g *generation) waits() bool {
	return g.scorer != nil && g.scorer.lagging() || g.form != nil && g.form.working
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
	d.text, d.stop = d.text+rest.text, rest.stop
	d.tokens = append(d.tokens, rest.tokens...)
	d.finish = reason
	g.finish(d)
}

func (g *generation) finish(d delta) {
	g.record.finish(d.finish)
	g.put(d)
}

// put gives a delta out: at [generation.flush], or when the log-probabilities in it are there.
func (g *generation) put(d delta) {
	d.answer, d.so = g.answer, g.tokens
	if g.scorer == nil {
		g.unsent = append(g.unsent, d)
		return
	}
	g.scorer.do(func() error {
		g.out.put(d)
		return nil
	})
}

// flush gives out the deltas of a step together: what each costs on its own, the next step would wait for.
func (g *generation) flush() {
	if len(g.unsent) > 0 {
		g.out.put(g.unsent...)
		clear(g.unsent)
		g.unsent = g.unsent[:0]
	}
}

// close ends what is given out, with an error at once.
func (g *generation) close(err error) {
	g.flush()
	switch {
	case g.scorer == nil:
		g.out.close(err)
	case err != nil:
		g.scorer.drop()
		g.out.close(err)
	default:
		g.scorer.do(func() error {
			g.out.close(nil)
			return nil
		})
	}
}
