package explore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"amkc/compiler"
	"amkc/runtime/draft"
	"amkc/runtime/host"
	"amkc/runtime/sampling"
)

// A Job is a way to decode something with a build.
type Job struct {
	Name string
	Doc  string
	// Once: it is run under the default schedule alone. Others are compared with what it decodes one token a launch.
	Once bool
	// Aborts: in each schedule but the first the host raises the abort word at a step of the machine.
	Aborts bool

	run func(a *attempt) error
}

// Sizes of what jobs decode. Launches of a few steps, on few positions, have every hand-over that long ones have.
const (
	stepTokens   = 5  // decoded one by one
	textTokens   = 14 // of the text that prompts are of: passes over prompts begin at 8 known tokens
	shortText    = 2  // of the other sequence
	chosenTokens = 3  // of a launch that goes on by itself
)

// otherFrom is where the text of the second sequence begins in the ids of the first.
const otherFrom = 100

// Names of texts whose continuation several jobs decode.
const (
	behindThree = "3 tokens"
	behindOther = "the other text"
)

// Jobs are those of a build.
func Jobs(facts *host.Facts) []Job {
	jobs := []Job{
		{Name: "text", Doc: "decodes texts one token a launch, which the others are compared with", Once: true,
			run: (*attempt).text},
		{Name: "steps", Doc: "one token a launch, then several steps in a launch", run: (*attempt).steps},
		{Name: "stops", Doc: "a launch that ends at a stop token", run: (*attempt).stops},
		{Name: "late-epochs", Doc: "the same near epoch 65535, behind which 1 comes", run: (*attempt).lateEpochs},
		{Name: "abort", Doc: "the host ends a launch, and decodes the same again", Aborts: true, run: (*attempt).abort},
		{Name: "drawings", Doc: "drawn tokens, held to what the host draws from the same logits",
			run: (*attempt).drawings},
		{Name: "ends", Doc: "held to the plain kernels, at the ends of variants", run: (*attempt).ends},
		{Name: "reference", Doc: "stage by stage held to the reference VM", run: (*attempt).reference},
	}
	for _, p := range facts.Passes {
		if p.Sequences > 0 {
			continue
		}
		jobs = append(jobs, Job{Name: p.Dir(), Doc: fmt.Sprintf("passes of %v", p),
			run: func(a *attempt) error { return a.rows(p.Rows) }})
	}
	if facts.Prompt > 0 && facts.Model.MaxSeq >= textTokens {
		for _, cut := range []int{textTokens - 2, 9, 3} {
			jobs = append(jobs, Job{Name: fmt.Sprintf("prompt-%d", cut),
				Doc: fmt.Sprintf("a prompt of %d tokens, cut behind %d", textTokens-2, cut),
				run: func(a *attempt) error { return a.prompt(cut) }})
		}
	}
	for _, p := range facts.Passes {
		switch {
		case p.Sequences > 0 && p.Rows == 1:
			jobs = append(jobs, Job{Name: p.Dir(), Doc: fmt.Sprintf("passes of %v", p), run: (*attempt).sequences})
		case p.Sequences > 0:
			jobs = append(jobs, Job{Name: p.Dir(), Doc: fmt.Sprintf("passes of %v", p), run: (*attempt).drafts})
		}
	}
	return jobs
}

// tokensOf bounds how many tokens of a text a job decodes by the positions of the build.
func (a *attempt) tokensOf(n int) int { return min(n, a.facts.Model.MaxSeq) }

// one decodes ids one token a launch, and notes the logits as those of a text.
func (a *attempt) one(s *host.Session, ids []int, text string) (next int, err error) {
	for i := range ids {
		if next, err = s.Feed(a.ctx, ids[i:i+1], a.sharedLogits(text)); err != nil {
			return 0, err
		}
	}
	return next, nil
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
			ids          []int
			text, behind string
		}{{a.ids(0, 3), "", behindThree}, {a.other(), otherText, behindOther}} {
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
			a.sharedTokens(t.behind, chosen)
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
		a.sharedTokens(behindThree, append([]int{next}, more...))
		if err := s.Rewind(3); err != nil {
			return err
		}
		if _, err := a.one(s, a.ids(3, a.tokensOf(stepTokens)), ""); err != nil {
			return err
		}
		return a.cache(s, "all")
	})
}

// lateEpochs has the words of exchanges at the epoch behind which the first one comes, of single tokens and of passes.
func (a *attempt) lateEpochs() error {
	if err := a.stepwise(host.Options{LateEpochs: true}); err != nil {
		return err
	}
	for _, p := range a.facts.Passes {
		if p.Sequences > 0 {
			continue
		}
		err := a.open(host.Options{LateEpochs: true}, func(s *host.Session) error {
			_, err := s.Feed(a.ctx, a.ids(0, a.tokensOf(2*p.Rows)), a.sharedLogits(""))
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

// abort decodes a launch that the host may end, behind a token whose row must stay, and then the same once more.
func (a *attempt) abort() error {
	a.dir = filepath.Join(a.dir, eagerDir)
	return a.open(host.Options{}, func(s *host.Session) error {
		next, err := s.Feed(a.ctx, a.ids(0, 1), nil)
		if err == nil {
			var got []int
			got, err = s.Generate(a.ctx, next, chosenTokens, nil, nil)
			if err == nil {
				a.own("tokens of a launch that was not ended", fmt.Append(nil, got))
				err = s.Rewind(1)
			}
		}
		if err := a.aborted(err); err != nil {
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
		return nil
	})
}

// aborted takes a launch for one that went as it should which was given up because the host ended it.
func (a *attempt) aborted(err error) error {
	var stall *host.StallError
	if !errors.As(err, &stall) || len(a.schedule.HostStores) == 0 {
		return err
	}
	for _, sm := range stall.Stalls {
		if !sm.Followed {
			return err
		}
	}
	return a.gaveUp()
}

// drawn are the settings by which the kernel draws: a temperature alone, and each filter.
func drawn() map[string]sampling.Options {
	with := func(edit func(o *sampling.Options)) sampling.Options {
		o := sampling.Greedy()
		o.Temperature, o.Seed = 0.8, 7
		edit(&o)
		return o
	}
	return map[string]sampling.Options{
		"a temperature": with(func(*sampling.Options) {}),
		"top-k":         with(func(o *sampling.Options) { o.TopK = 5 }),
		"top-p":         with(func(o *sampling.Options) { o.TopP = 0.7 }),
		"min-p and a penalty": with(func(o *sampling.Options) {
			o.MinP, o.RepetitionPenalty = 0.1, 1.2
		}),
	}
}

// drawings has the kernel draw tokens, and the host from the logits of the same text.
func (a *attempt) drawings() error {
	prompt := a.ids(0, 2)
	settings := drawn()
	for _, name := range sorted(settings) {
		o := settings[name]
		err := a.open(host.Options{}, func(s *host.Session) error {
			s.Choose(&o, sampling.Text{Prompt: prompt})
			got, err := s.Complete(a.ctx, prompt, 2, nil, nil)
			if err != nil {
				return err
			}
			a.own("tokens drawn by "+name, fmt.Append(nil, got.IDs))
			want, err := a.drawOnHost(s, &o, prompt, len(got.IDs))
			if err != nil {
				return err
			}
			if !slices.Equal(got.IDs, want) {
				a.found("difference", "by %s the kernel drew %v, and the host draws %v from the same logits", name,
					got.IDs, want)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// drawOnHost draws what follows a prompt.
func (a *attempt) drawOnHost(s *host.Session, o *sampling.Options, prompt []int, n int) (all []int, err error) {
	greedy := sampling.Greedy()
	s.Choose(&greedy, sampling.Text{})
	sampler, err := sampling.New(*o, a.facts.Model.Vocab, prompt)
	if err != nil {
		return nil, err
	}
	if err := s.Rewind(0); err != nil {
		return nil, err
	}
	_, err = sampling.Complete(a.ctx, s, sampler, prompt, n, nil, func(c sampling.Choice) error {
		all = append(all, c.ID)
		return nil
	})
	return all, err
}

// ends compares with the plain kernels of reference.cu: at the first positions, and around those where the variant
// changes.
func (a *attempt) ends() error {
	return a.open(host.Options{}, func(s *host.Session) error {
		first := []int{0}
		for _, end := range s.Info().VariantEnds {
			first = append(first, max(0, min(end-1, s.Info().MaxSeq-2)))
		}
		for _, at := range slices.Compact(first) {
			report, err := s.CheckFrom(a.ctx, at, min(2, s.Info().MaxSeq-at))
			if err != nil {
				return err
			}
			for _, failure := range report.Failures {
				a.found("bound", "against the plain kernels: %s", failure)
			}
		}
		return nil
	})
}

// referencePositions are those at which stages are held to the reference VM.
var referencePositions = []int{0, 2}

// reference holds what stages hand over to the reference VM, and notes it.
func (a *attempt) reference() error {
	b, err := a.packed()
	if err != nil {
		return err
	}
	return a.open(host.Options{}, func(s *host.Session) error {
		report, err := compiler.BisectAt(a.ctx, b, &noting{a, s}, referencePositions, nil)
		if err != nil {
			return err
		}
		if report.First != nil {
			a.found("bound", "against the reference VM: %v", report.First)
		}
		return nil
	})
}

// noting is a session whose traces are noted.
type noting struct {
	a *attempt
	s *host.Session
}

// Trace implements [compiler.Tracer].
func (n *noting) Trace(ctx context.Context, ids []int) (*host.Trace, error) {
	t, err := n.s.Trace(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, v := range t.Vectors {
		n.a.own(fmt.Sprintf("%s at position %d", v.Stage, t.Position), bitsOf(v.Values))
	}
	return t, nil
}

// rows decodes a text by passes of so many rows, by passes that leave one of them unused, and in one call.
func (a *attempt) rows(rows int) error {
	for _, part := range slices.Compact([]int{rows, max(2, rows-1), stepTokens}) {
		err := a.open(host.Options{}, func(s *host.Session) error {
			for ids := range slices.Chunk(a.ids(0, a.tokensOf(stepTokens)), part) {
				if _, err := s.Feed(a.ctx, ids, a.sharedLogits("")); err != nil {
					return err
				}
			}
			return a.cache(s, fmt.Sprintf("parts of %d", part))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// prompt decodes a prompt in two parts, without logits, and the tokens behind it with theirs.
func (a *attempt) prompt(cut int) error {
	return a.open(host.Options{}, func(s *host.Session) error {
		ids := a.ids(0, textTokens)
		known, rest := ids[:textTokens-2], ids[textTokens-2:]
		for _, part := range [][]int{known[:cut], known[cut:]} {
			if len(part) == 0 {
				continue
			}
			if _, err := s.Feed(a.ctx, part, nil); err != nil {
				return err
			}
		}
		if _, err := a.one(s, rest, ""); err != nil {
			return err
		}
		return a.cache(s, "all")
	})
}

// sequences decodes two texts side by side: with logits, by given tokens, and then on their own, in launches of several
// steps.
func (a *attempt) sequences() error {
	return a.open(host.Options{}, func(s *host.Session) error {
		texts := [][]int{a.ids(0, stepTokens), a.other()}
		b := s.NewBatch(host.BatchOptions{})
		given := make([]int, len(texts)) // tokens of each that have been decoded
		ids := make([]int, len(texts))
		for i, text := range texts {
			var err error
			ids[i], _, err = b.Admit(text[:len(text)-1], host.SequenceOptions{Logits: true, Most: 2})
			if err != nil {
				return err
			}
			given[i] = len(text) - 1
		}
		for range 2 {
			tokens, err := b.Step(a.ctx)
			if err != nil {
				return err
			}
			for _, t := range tokens {
				i := slices.Index(ids, t.Sequence)
				name := [...]string{"", otherText}[i]
				a.shared(fmt.Sprintf("logits at position %d%s", given[i]-1, name), bitsOf(t.Logits))
				if given[i] < len(texts[i]) {
					if err := b.Replace(t.Sequence, texts[i][given[i]]); err != nil {
						return err
					}
				}
				given[i]++
			}
		}
		for _, id := range ids {
			b.Retire(id)
		}
		_, err := a.goOn(s, host.BatchOptions{Steps: chosenTokens}, chosenTokens)
		return errors.Join(err, a.cache(s, "all"))
	})
}

// continued are the texts that are continued side by side, and what they are called.
func (a *attempt) continued() (texts [][]int, names []string) {
	return [][]int{a.ids(0, 3), a.other()}, []string{behindThree, behindOther}
}

// goOn continues two texts side by side for so many steps of a batch at most, and returns what was chosen for each.
func (a *attempt) goOn(s *host.Session, o host.BatchOptions, steps int) ([][]int, error) {
	b := s.NewBatch(o)
	texts, names := a.continued()
	ids, chosen := make([]int, len(texts)), make([][]int, len(texts))
	for i, text := range texts {
		var err error
		if ids[i], _, err = b.Admit(text, host.SequenceOptions{Most: chosenTokens}); err != nil {
			return nil, err
		}
	}
	for ended := 0; ended < len(ids) && steps > 0; {
		tokens, err := b.Step(a.ctx)
		if err != nil {
			return nil, err
		}
		if len(tokens) > 0 { // and not a step that has read prompts alone
			steps--
		}
		for _, t := range tokens {
			if t.Err != nil {
				return nil, t.Err
			}
			i := slices.Index(ids, t.Sequence)
			if chosen[i] = append(chosen[i], t.ID); t.Ended {
				ended++
			}
		}
	}
	for i, name := range names {
		a.sharedTokens(name, chosen[i])
	}
	return chosen, nil
}

// drafts continues two texts, and then by a pass that verifies drafts of which the first is right and the last wrong.
// One such pass: whether more are worth it depends on how long they take.
func (a *attempt) drafts() error {
	return a.open(host.Options{}, func(s *host.Session) error {
		chosen, err := a.goOn(s, host.BatchOptions{}, chosenTokens)
		if err != nil {
			return err
		}
		texts, _ := a.continued()
		g := guesses{vocab: a.facts.Model.Vocab}
		for i := range texts {
			g.texts = append(g.texts, slices.Concat(texts[i], chosen[i]))
		}
		_, err = a.goOn(s, host.BatchOptions{Drafter: g}, 1)
		return errors.Join(err, a.cache(s, "all"))
	})
}

// guesses are drafts that know how texts go on, but for the last token of each draft.
type guesses struct {
	texts [][]int
	vocab int
}

var _ draft.Drafter = guesses{}

// Draft implements [draft.Drafter].
func (g guesses) Draft(text []int, n int) []int {
	for _, known := range g.texts {
		if len(known) <= len(text) || !slices.Equal(known[:len(text)], text) {
			continue
		}
		ids := slices.Clone(known[len(text):min(len(known), len(text)+n)])
		ids[len(ids)-1] = (ids[len(ids)-1] + 1) % g.vocab
		return ids
	}
	return nil
}
