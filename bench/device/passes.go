package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"amkc/runtime/host"
)

// passesResult is what passes prints: how much was decoded in other ways than token by token, and what differed.
type passesResult struct {
	Seed       uint64         `json:"seed"`
	Positions  int            `json:"positions"`   // of the longest text, from 0
	Cases      int            `json:"cases"`       // in all
	Kinds      map[string]int `json:"kinds"`       // of the cases, with the number of rows where it is given
	FromPrefix int            `json:"from_prefix"` // cases that began with a prefix of a file
	Drafts     int            `json:"drafts"`      // passes with drafts, of which some were right or none
	Parts      int            `json:"parts"`       // that texts were passed in
	Tokens     int            `json:"tokens"`      // read in parts
	Compared   int            `json:"compared"`    // positions whose logits, or chosen tokens, were compared
	Alongside  int            `json:"beside"`      // of these, in passes alongside other sequences
	Cancelled  map[string]int `json:"given_up"`    // launches that were cancelled, by kind
	Differing  int            `json:"differing"`   // of all
	Difference string         `json:"difference"`  // the first one, or empty
	Passed     bool           `json:"passed"`      // something was compared, and nothing differs
	Seconds    float64        `json:"seconds"`     // without the single tokens
}

// passesPlan says what passes compares.
type passesPlan struct {
	positions, cases int
	seed             uint64
	most             time.Duration // 0: as long as it takes
	kinds            []string      // none: all that the build has passes for
}

const passesUsage = "usage: device DIR passes [--cases N] [--kinds prompts,rows,drafts,sequences,mixed,aborts] " +
	"[--positions N] [--seed N] [--seconds N] [--spin-limit DURATION] [--gpu N]"

// passes decodes random texts token by token, and then again and again in other ways: by passes over prompts, by passes
// of several rows, with drafts, alongside other sequences, and with drafts of several of these; if that is asked for,
// some are aborted in their middle, at times that no seed says. Whatever is asked for its logits must give those of
// single tokens, to the bit, and whatever chooses tokens the same tokens. Exit code 1: something differs.
func passes(dir string, args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("passes", flag.ContinueOnError)
	set.SetOutput(stderr)
	var plan passesPlan
	set.IntVar(&plan.cases, "cases", 100, "compare `N` random cases")
	kinds := set.String("kinds", "",
		"`kinds` of cases, separated by commas (default: all that the build has passes for, but aborts)")
	set.IntVar(&plan.positions, "positions", 0, "positions of the longest text (default: all of the build)")
	set.Uint64Var(&plan.seed, "seed", 1, "of the texts and of what is random")
	seconds := set.Float64("seconds", 0, "stop after `N` seconds; 0: after all cases")
	limit := set.Duration("spin-limit", 0, "a wait on the GPU longer than this is a stall (default 5s)")
	gpu := set.Int("gpu", 0, "`N`umber of the GPU, from 0")
	err := set.Parse(args)
	if *kinds != "" {
		plan.kinds = strings.Split(*kinds, ",")
	}
	unknown := func(kind string) bool { return caseKinds[kind] == nil }
	if err != nil || set.NArg() > 0 || plan.cases < 1 || plan.positions < 0 || !(*seconds >= 0) ||
		slices.ContainsFunc(plan.kinds, unknown) {
		fmt.Fprintln(stderr, passesUsage)
		return 2
	}
	plan.most = time.Duration(*seconds * float64(time.Second))
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	s, err := host.Open(ctx, dir, host.Options{GPU: *gpu, SpinLimit: *limit})
	if err != nil {
		fmt.Fprintln(stderr, "device: error:", err)
		return 2
	}
	r, err := comparePasses(ctx, s, plan)
	return report(r, r != nil && r.Passed, errors.Join(err, s.Close()), stdout, stderr)
}

func comparePasses(ctx context.Context, s *host.Session, plan passesPlan) (_ *passesResult, err error) {
	if len(plan.kinds) == 0 {
		plan.kinds = kindsOf(s)
	}
	for _, kind := range plan.kinds {
		if kind != "aborts" && !slices.Contains(kindsOf(s), kind) {
			return nil, fmt.Errorf("the build has no passes for %s; it has those for %s", kind,
				strings.Join(kindsOf(s), ", "))
		}
	}
	most := s.Info().MaxSeq
	if plan.positions == 0 || plan.positions > most {
		plan.positions = most
	}
	c := &comparer{ctx: ctx, s: s, rng: rand.New(rand.NewPCG(plan.seed, 0)), in: -1,
		passesResult: passesResult{Seed: plan.seed, Positions: plan.positions, Kinds: map[string]int{},
			Cancelled: map[string]int{}}}
	if c.dir, err = os.MkdirTemp("", "amkc-prefixes"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	if err := c.readSingly(plan.positions); err != nil {
		return nil, err
	}
	start := time.Now()
	for c.Cases < plan.cases && (plan.most == 0 || time.Since(start) < plan.most) {
		c.left = plan.cases - c.Cases
		c.kind = plan.kinds[c.rng.IntN(len(plan.kinds))]
		if err := caseKinds[c.kind](c); err != nil {
			return nil, fmt.Errorf("case %d, %s: %w", c.Cases, c.kind, err)
		}
	}
	c.Seconds = time.Since(start).Seconds()
	c.Passed = c.Compared > 0 && c.Differing == 0
	return &c.passesResult, nil
}

// kindsOf are the kinds of cases that a build has passes for. Prompts are read in some way by any.
func kindsOf(s *host.Session) []string {
	kinds := []string{"prompts"}
	if s.PassRows() > 1 {
		kinds = append(kinds, "rows", "drafts")
	}
	if s.Sequences() > 1 {
		kinds = append(kinds, "sequences")
	}
	if facts := s.Facts(); facts.VerifiesDrafts(true) {
		kinds = append(kinds, "mixed")
	}
	return kinds
}
