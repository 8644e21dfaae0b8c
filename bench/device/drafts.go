package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"amkc/runtime/host"
	"amkc/text/draft"
	"amkc/text/sampling"
)

// draftsResult is what drafts prints: how fast texts are decoded with drafts and without them.
type draftsResult struct {
	Scripted   bool              `json:"scripted"` // the texts are written as they are committed
	Rows       int               `json:"rows"`     // of the passes that verify drafts
	Rounds     int               `json:"rounds"`   // of each text, with drafts and without, by turns
	Check      *host.CheckReport `json:"check"`    // of the passes too, before anything is timed
	Texts      []draftTimes      `json:"texts"`
	Kinds      []draftKind       `json:"kinds"`
	Difference string            `json:"difference"` // the first text that drafts have changed, or empty
	Passed     bool              `json:"passed"`     // the check has passed, and drafts have changed nothing
}

// draftCounts say what drafts were good for. A step decodes one token, and a pass up to as many as it has rows; both
// read the weights once.
type draftCounts struct {
	Tokens         int     `json:"tokens"` // after the first of the answer, which the prompt brings
	Passes         int     `json:"passes"` // that verified drafts
	Drafted        int     `json:"drafted"`
	Accepted       int     `json:"accepted"`
	Acceptance     float64 `json:"acceptance"`      // of what was drafted
	TokensPerPass  float64 `json:"tokens_per_pass"` // of those that verified drafts
	TokensPerRead  float64 `json:"tokens_per_read"` // of passes and steps
	Ratio          float64 `json:"ratio"`           // of the tokens per second with drafts and without
	TokensPerS     float64 `json:"tokens_per_s"`
	PlainPerS      float64 `json:"plain_tokens_per_s"`
	plain, drafted float64 // seconds, medians of the rounds
}

type draftTimes struct {
	Name   string  `json:"name"`
	Kind   string  `json:"kind"`
	Prompt int     `json:"prompt"` // tokens
	Cut    int     `json:"cut"`    // tokens of the prompt that there are no positions for, in front of it
	Lowest float64 `json:"lowest"` // ratio of a round
	Most   float64 `json:"highest"`
	Same   bool    `json:"same"` // with drafts the text is the one without
	draftCounts
}

// draftKind is what the texts of a kind take together.
type draftKind struct {
	Kind   string  `json:"kind"`
	Texts  int     `json:"texts"`
	Lowest float64 `json:"lowest"` // ratio of a text
	Most   float64 `json:"highest"`
	draftCounts
}

// draftsPlan says what drafts measures.
type draftsPlan struct {
	texts, tokenizer string
	scripted         bool
	rounds           int
}

const draftsUsage = "usage: device DIR drafts [--scripted] [--texts DIR] [--tokenizer DIR] [--rounds N] [--gpu N]"

// drafts measures what run --draft ngram gains on committed texts: each prompt is continued with drafts and without, by
// turns, for as many tokens as the committed answer has. The time is that from the first token of the answer to the
// last. The model writes on its own, or, scripted, what is committed: then a draft is right where the committed text
// has it. Exit code 1: the check has failed, or drafts have changed a text.
func drafts(dir string, args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("drafts", flag.ContinueOnError)
	set.SetOutput(stderr)
	var plan draftsPlan
	set.BoolVar(&plan.scripted, "scripted", false, "take the committed answers for what the kernel chooses")
	set.StringVar(&plan.texts, "texts", "testdata/drafts", "`DIR` with the texts")
	set.StringVar(&plan.tokenizer, "tokenizer", "testdata/models/pycoder-5m", "`DIR` with the tokenizer of the ids")
	set.IntVar(&plan.rounds, "rounds", 5, "decode each text `N` times, with drafts and without")
	gpu := set.Int("gpu", 0, "`N`umber of the GPU, from 0")
	if err := set.Parse(args); err != nil || set.NArg() > 0 || plan.rounds < 1 {
		fmt.Fprintln(stderr, draftsUsage)
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	r, err := measureDrafts(ctx, dir, plan, host.Options{GPU: *gpu})
	return report(r, r != nil && r.Passed, err, stdout, stderr)
}

func measureDrafts(ctx context.Context, dir string, plan draftsPlan, o host.Options) (_ *draftsResult, err error) {
	texts, err := readDraftTexts(plan.texts, plan.tokenizer)
	if err != nil {
		return nil, err
	}
	s, err := host.Open(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if !s.SetDrafter(nil) {
		return nil, fmt.Errorf("%s: the build has no passes of several rows to verify drafts by", dir)
	}
	r := &draftsResult{Scripted: plan.scripted, Rows: s.PassRows(), Rounds: plan.rounds}
	if r.Check, err = s.Check(ctx, nil); err != nil || !r.Check.Passed {
		return r, err
	}
	for _, t := range texts {
		cut := t.fit(s.Info().MaxSeq)
		for _, id := range slices.Concat(t.prompt, t.answer) {
			if id >= s.Info().Vocab {
				return nil, fmt.Errorf("text %s has token %d, and the model has %d", t.name, id, s.Info().Vocab)
			}
		}
		times, err := r.time(ctx, s, &t)
		if err != nil {
			return nil, fmt.Errorf("text %s: %w", t.name, err)
		}
		times.Cut = cut
		r.Texts = append(r.Texts, *times)
	}
	r.Kinds = kindsOfDrafts(r.Texts)
	r.Passed = r.Difference == ""
	return r, nil
}

// A continuation is a text that was decoded after a prompt.
type continuation struct {
	ids   []int
	took  time.Duration // from the first of them to the last
	stats draft.Stats
}

// time decodes a text, with drafts and without, by turns; the first text once more before, which does not count.
func (r *draftsResult) time(ctx context.Context, s *host.Session, t *draftText) (*draftTimes, error) {
	d := &draftTimes{Name: t.name, Kind: t.kind, Prompt: len(t.prompt), Same: true}
	var plain, drafted, ratios []float64
	first := 0
	if len(r.Texts) == 0 {
		first = -1
	}
	for round := first; round < r.Rounds; round++ {
		order := []draft.Drafter{nil, draft.NGrams{}}
		if round%2 != 0 {
			slices.Reverse(order)
		}
		var with, without *continuation
		for _, drafter := range order {
			c, err := r.decode(ctx, s, t, drafter)
			switch {
			case err != nil:
				return nil, err
			case drafter == nil:
				without = c
			default:
				with = c
			}
		}
		if d.Same = d.Same && r.same(t, with.ids, without.ids); !d.Same && r.Difference == "" {
			r.Difference = fmt.Sprintf("text %s, round %d: %v with drafts, and %v without", t.name, round, with.ids,
				without.ids)
		}
		if round < 0 {
			continue
		}
		plain, drafted = append(plain, without.took.Seconds()), append(drafted, with.took.Seconds())
		ratios = append(ratios, without.took.Seconds()/with.took.Seconds())
		d.Passes, d.Drafted, d.Accepted = with.stats.Passes, with.stats.Drafted, with.stats.Accepted
	}
	d.Tokens, d.plain, d.drafted = len(t.answer)-1, median(plain), median(drafted)
	d.sum()
	d.Lowest, d.Most = slices.Min(ratios), slices.Max(ratios)
	return d, nil
}

// same reports whether a text was written as it should be, with drafts and without.
func (r *draftsResult) same(t *draftText, with, without []int) bool {
	return slices.Equal(with, without) && len(with) == len(t.answer) && (!r.Scripted || slices.Equal(with, t.answer))
}

// decode continues a prompt as run does with greedy options.
func (r *draftsResult) decode(ctx context.Context, s *host.Session, t *draftText, d draft.Drafter) (*continuation,
	error) {
	s.Reset()
	s.SetDrafter(d)
	if r.Scripted {
		s.SetScript(slices.Concat(t.prompt, t.answer))
		defer s.SetScript(nil)
	}
	o := sampling.Greedy()
	s.Choose(&o, sampling.Text{Prompt: t.prompt})
	before, first := s.Drafts(), time.Time{}
	done, err := s.Complete(ctx, t.prompt, len(t.answer), nil, func(int) error {
		if first.IsZero() {
			first = time.Now()
		}
		return nil
	})
	took, after := time.Since(first), s.Drafts()
	return &continuation{done.IDs, took, draft.Stats{Passes: after.Passes - before.Passes,
		Drafted: after.Drafted - before.Drafted, Accepted: after.Accepted - before.Accepted}}, err
}

// sum calculates what follows from counts and times.
func (c *draftCounts) sum() {
	if c.Drafted > 0 {
		c.Acceptance = float64(c.Accepted) / float64(c.Drafted)
		c.TokensPerPass = float64(c.Accepted+c.Passes) / float64(c.Passes)
	}
	c.TokensPerRead = float64(c.Tokens) / float64(c.Tokens-c.Accepted)
	c.Ratio, c.TokensPerS, c.PlainPerS = c.plain/c.drafted, float64(c.Tokens)/c.drafted, float64(c.Tokens)/c.plain
}

// kindsOfDrafts adds texts up, by kind: a kind takes the time of all its texts.
func kindsOfDrafts(texts []draftTimes) (all []draftKind) {
	for _, t := range texts {
		i := slices.IndexFunc(all, func(k draftKind) bool { return k.Kind == t.Kind })
		if i < 0 {
			i, all = len(all), append(all, draftKind{Kind: t.Kind, Lowest: t.Ratio})
		}
		k := &all[i]
		k.Texts++
		k.Lowest, k.Most = min(k.Lowest, t.Ratio), max(k.Most, t.Ratio)
		k.Tokens += t.Tokens
		k.Passes += t.Passes
		k.Drafted += t.Drafted
		k.Accepted += t.Accepted
		k.plain += t.plain
		k.drafted += t.drafted
	}
	for i := range all {
		all[i].sum()
	}
	return all
}
