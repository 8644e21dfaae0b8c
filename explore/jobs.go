package explore

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"amkc/runtime/host"
)

// A Job is a way to decode with a build.
type Job struct {
	Name string
	Doc  string
	// Once: it runs only under the default schedule. Other jobs are compared with its results, which it decodes with
	// one token per launch.
	Once bool
	// Aborts: in each schedule but the first the host raises the abort word at a step of the machine.
	Aborts bool

	run func(a *attempt) error
}

// Sizes of what jobs decode. Launches of a few steps, on few positions, have every exchange that long ones have.
const (
	stepTokens   = 5  // decoded one by one
	textTokens   = 22 // of the text that prompts are of: two blocks of the cache, in passes of 8 tokens or more
	shortText    = 2  // of the other sequence
	chosenTokens = 3  // of a launch that goes on on its own
)

// otherFrom is where the text of the second sequence begins in the ids of the first.
const otherFrom = 100

// Names of texts whose continuation several jobs decode.
const (
	afterThree = "3 tokens"
	afterOther = "the other text"
)

// Names of the jobs that have a kernel of their own, with gpuJob.
const (
	abortJob     = "abort"
	endsJob      = "ends"
	measureJob   = "measure"
	referenceJob = "reference"
)

// Jobs returns the jobs of a build.
func Jobs(facts *host.Facts) []Job {
	jobs := []Job{
		{Name: "text", Doc: "decodes texts one token a launch, which the others are compared with", Once: true,
			run: (*attempt).text},
		{Name: "steps", Doc: "one token a launch, then several steps in a launch", run: (*attempt).steps},
		{Name: "launch", Doc: "two tokens in a launch, and one more in another", run: (*attempt).launch},
		{Name: "stops", Doc: "a launch that ends at a stop token", run: (*attempt).stops},
		{Name: "late-epochs", Doc: "the same near epoch 65535, which 1 follows", run: (*attempt).lateEpochs},
		{Name: abortJob, Doc: "the host ends a launch, and decodes the same again", Aborts: true,
			run: (*attempt).abort},
		{Name: "drawings", Doc: "drawn tokens, held to what the host draws from the same logits",
			run: (*attempt).drawings},
		{Name: endsJob, Doc: "held to the plain kernels, at the ends of variants", run: (*attempt).ends},
		{Name: measureJob, Doc: "the kernels that amkc bench and amkc profile measure", run: (*attempt).measure},
	}
	if facts.NumRanks() == 1 { // a trace of several GPUs is not taken
		jobs = append(jobs, Job{Name: referenceJob, Doc: "stage by stage held to the reference VM",
			run: (*attempt).reference})
	}
	for _, p := range facts.Passes {
		if p.NumSequences() > 1 {
			continue
		}
		jobs = append(jobs, Job{Name: p.Dir(), Doc: fmt.Sprint("passes of ", p),
			run: func(a *attempt) error { return a.rows(p.NumRows()) }})
	}
	if facts.Prompt > 0 && facts.Model.MaxSeq >= textTokens {
		for _, cut := range []int{textTokens - 2, 9, 3} {
			jobs = append(jobs, Job{Name: fmt.Sprintf("prompt-%d", cut),
				Doc: fmt.Sprintf("a prompt of %d tokens, cut after %d", textTokens-2, cut),
				run: func(a *attempt) error { return a.prompt(cut) }})
		}
	}
	for _, p := range facts.Passes {
		switch {
		case p.NumSequences() > 1 && p.NumRows() == 1:
			jobs = append(jobs, Job{Name: p.Dir(), Doc: fmt.Sprint("passes of ", p), run: (*attempt).sequences})
		case p.NumSequences() > 1:
			jobs = append(jobs, Job{Name: p.Dir(), Doc: fmt.Sprint("passes of ", p), run: (*attempt).drafts})
		}
	}
	return jobs
}

// tokensOf bounds how many tokens of a text a job decodes by the positions of the build.
func (a *attempt) tokensOf(n int) int { return min(n, a.facts.Model.MaxSeq) }

// one decodes ids, one token per launch, and records the logits and the tokens that are chosen after them.
func (a *attempt) one(s *host.Session, ids []int, text string) (next int, err error) {
	for i := range ids {
		if next, err = s.Feed(a.ctx, ids[i:i+1], a.sharedLogits(text)); err != nil {
			return 0, err
		}
		a.chosen(s, next, text)
	}
	return next, nil
}

// chosen notes the token that a text is continued by.
func (a *attempt) chosen(s *host.Session, id int, text string) {
	a.shared(fmt.Sprintf("token at position %d%s", s.Position(), text), fmt.Append(nil, id))
}

const otherText = " of the other text"

// other is the text of the second sequence.
func (a *attempt) other() []int { return a.ids(otherFrom, otherFrom+shortText) }

func (a *attempt) text() error {
	return a.open(host.Options{}, func(s *host.Session) error {
		n := stepTokens
		if a.facts.Prompt > 0 {
			n = textTokens
		}
		if _, err := a.one(s, a.ids(0, a.tokensOf(n)), ""); err != nil {
			return err
		}
		for _, t := range []struct {
			ids         []int
			text, after string
		}{{a.ids(0, 3), "", afterThree}, {a.other(), otherText, afterOther}} {
			if err := s.Rewind(0); err != nil {
				return err
			}
			next, err := a.one(s, t.ids, t.text)
			if err != nil {
				return err
			}
			chosen := []int{next}
			for range chosenTokens - 1 {
				if next, err = s.Feed(a.ctx, []int{next}, nil); err != nil {
					return err
				}
				chosen = append(chosen, next)
			}
			a.sharedTokens(t.after, chosen)
		}
		return nil
	})
}

func (a *attempt) steps() error { return a.stepwise(host.Options{}) }

// stepwise decodes a text one token a launch, and its continuation in launches of several steps.
func (a *attempt) stepwise(o host.Options) error {
	return a.open(o, func(s *host.Session) error {
		next, err := a.one(s, a.ids(0, 3), "")
		if err != nil {
			return err
		}
		more, err := s.Generate(a.ctx, next, chosenTokens-1, nil, nil)
		if err != nil {
			return err
		}
		a.sharedTokens(afterThree, append([]int{next}, more...))
		if err := s.Rewind(3); err != nil {
			return err
		}
		if _, err := a.one(s, a.ids(3, a.tokensOf(stepTokens)), ""); err != nil {
			return err
		}
		return a.cache(s, "all")
	})
}

// launch decodes two tokens in a launch, and one after them in another.
func (a *attempt) launch() error {
	return a.open(host.Options{}, func(s *host.Session) error {
		next, err := s.Decode(a.ctx, host.Input{IDs: a.ids(0, 2)}, a.outputs())
		if err != nil {
			return err
		}
		more, err := s.Generate(a.ctx, next, 1, nil, nil)
		a.own("tokens", fmt.Append(nil, next, more))
		return err
	})
}

// lateEpochs has the words of exchanges at the epoch after which the first one comes: of single tokens, the second of
// which may begin with it, and of passes.
func (a *attempt) lateEpochs() error {
	if err := a.stepwise(host.Options{LateEpochs: true}); err != nil {
		return err
	}
	tokens := []int{2}
	for _, p := range a.facts.Passes {
		if p.NumSequences() == 1 {
			tokens = append(tokens, 2*p.NumRows())
		}
	}
	for _, n := range tokens {
		err := a.open(host.Options{LateEpochs: true}, func(s *host.Session) error {
			_, err := s.Decode(a.ctx, host.Input{IDs: a.ids(0, a.tokensOf(n))}, a.outputs())
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stops generates, and once more with the second token that came as a stop.
func (a *attempt) stops() error {
	return a.open(host.Options{}, func(s *host.Session) error {
		ids := a.ids(0, 3)
		next, err := s.Feed(a.ctx, ids, nil)
		if err != nil {
			return err
		}
		all, err := s.Generate(a.ctx, next, chosenTokens, nil, nil)
		if err != nil {
			return err
		}
		a.own("tokens", fmt.Append(nil, all))
		if err := s.Rewind(len(ids)); err != nil {
			return err
		}
		stop := all[1]
		want := all[:slices.Index(all, stop)+1]
		var told []int
		got, err := s.Generate(a.ctx, next, chosenTokens, []int{stop}, func(id int) error {
			told = append(told, id)
			return nil
		})
		if err != nil {
			return err
		}
		if !slices.Equal(got, want) || !slices.Equal(told, want) {
			a.found("difference", "with token %d as a stop the launch gave %v and told the host %v; want %v", stop, got,
				told, want)
		}
		return nil
	})
}

// abort decodes a launch that the host may end, after a token whose row must stay, and then the same once more. What
// the launch has told the host until then must be right.
func (a *attempt) abort() error {
	a.dir = filepath.Join(a.dir, eagerDir)
	return a.open(host.Options{}, func(s *host.Session) error {
		var told []int
		next, err := s.Feed(a.ctx, a.ids(0, 1), nil)
		if err == nil {
			var begun *Run
			if begun, err = a.machine.result(); err != nil {
				return err
			}
			var got []int
			got, err = s.Generate(a.ctx, next, chosenTokens, nil, func(id int) error {
				told = append(told, id)
				return nil
			})
			if err == nil {
				a.own("tokens of a launch that was not ended", fmt.Append(nil, got))
				err = errors.Join(a.mayGoOn(begun.Steps), s.Rewind(1))
			}
		}
		if err := a.aborted(err, len(told)); err != nil {
			return err
		}
		if s.Position() == 0 { // the token was not decoded
			if next, err = s.Feed(a.ctx, a.ids(0, 1), nil); err != nil {
				return err
			}
		}
		got, err := s.Generate(a.ctx, next, chosenTokens, nil, nil)
		if err != nil {
			return err
		}
		a.own("tokens once more", fmt.Append(nil, got))
		if len(told) > len(got) || !slices.Equal(told, got[:len(told)]) {
			a.found("difference", "a launch that the host ended told it %v, and %v come when it does not", told, got)
		}
		return nil
	})
}

// mayGoOn says of a launch that the host did not end whether that is right. In the default order there are waits in
// vain until the end, so that one that the host ends in its first half, since a step of the machine, is aborted.
func (a *attempt) mayGoOn(since uint64) error {
	if a.schedule.Strategy != Replay || len(a.schedule.Deviations) > 0 {
		return nil
	}
	run, err := a.machine.result()
	if err != nil {
		return err
	}
	for _, h := range a.schedule.HostStores {
		if h.Step >= since && h.Step < since+(run.Steps-since)/2 {
			a.found("difference",
				"the host ended a launch at step %d of the machine, and it went on from step %d to %d", h.Step, since,
				run.Steps)
		}
	}
	return nil
}

// aborted takes a launch that the host has aborted for one that went as it should. Until then it told the host n
// tokens: SM 0 tells none of a step in which it cancelled a wait. The producer, whose waits are recorded in the first
// stage, is steps ahead.
func (a *attempt) aborted(err error, n int) error {
	var stall *host.StallError
	if !errors.As(err, &stall) || len(a.schedule.HostStores) == 0 {
		return err
	}
	for _, sm := range stall.Stalls {
		if !sm.Followed {
			return err
		}
		if sm.SM == 0 && n > sm.Step && sm.Stage != a.facts.Stages[0] {
			a.found("difference", "SM 0 cancelled a wait of step %d, and told the host %d tokens", sm.Step, n)
		}
	}
	return a.garbageUntilNow()
}

// measure launches the kernels that measurements launch, and decodes after them.
func (a *attempt) measure() error {
	a.dir = filepath.Join(a.dir, measuredDir)
	return a.open(host.Options{}, func(s *host.Session) error {
		if err := s.Rehearse(a.ctx, 2, a.garbageUntilNow); err != nil {
			return err
		}
		_, err := a.one(s, a.ids(0, 2), "")
		return err
	})
}
