package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os/signal"
	"syscall"
	"time"

	"amkc/runtime/host"
)

// sequencesResult is what sequences prints, after each minute and at the end: what has been decoded since the start.
type sequencesResult struct {
	Seed       uint64  `json:"seed"`
	Minutes    float64 `json:"minutes"`
	Sequences  int     `json:"sequences"`   // that passes of the build take
	Finished   int     `json:"finished"`    // texts that were decoded to their end
	Left       int     `json:"left"`        // texts that left before
	Sampled    int     `json:"sampled"`     // of both, texts whose tokens were drawn, logits compared
	Tokens     int     `json:"tokens"`      // compared with those of the text alone
	Cached     int     `json:"cached"`      // tokens of prompts that were in the cache already
	Alongside  int     `json:"beside"`      // tokens that came from steps of several sequences
	Aborts     int     `json:"aborts"`      // steps that were aborted
	AfterAbort int     `json:"after_abort"` // texts that were decoded on after one, to their end
	Differing  int     `json:"differing"`   // texts
	Difference string  `json:"difference"`  // the first one, or empty
	Goroutines int     `json:"goroutines"`  // between two rounds
	HeapMB     float64 `json:"heap_mb"`     // in use then, garbage collected
	ResidentMB float64 `json:"resident_mb"` // the most memory of the process so far
	Growth     string  `json:"growth"`      // what of these has grown since the first round, or empty
	Passed     bool    `json:"passed"`      // texts were decoded to their end, and all is as it should be
}

// sequencesPlan says what sequences decodes.
type sequencesPlan struct {
	time      time.Duration
	round     time.Duration // a line is printed after each
	seed      uint64
	positions int // that a text has at most
	texts     int // of a round
	aborts    int // one in n steps is aborted; 0: none
}

const sequencesUsage = "usage: device DIR sequences [--minutes N] [--seed N] [--positions N] [--texts N] " +
	"[--aborts N] [--spin-limit DURATION] [--gpu N]"

// sequencesMost is the longest time that sequences accepts, in minutes.
const sequencesMost = 24 * 60

// sequences decodes texts for some time, as many at once as the build takes: they join and leave at random, have random
// lengths, beginnings in common and other companions each time, are chosen greedily or drawn, and are aborted in the
// middle of passes. Each must be, to its end or as far as it comes, what the kernel of one token decodes of it alone.
// Exit code 1: one is not, or memory grows.
func sequences(dir string, args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("sequences", flag.ContinueOnError)
	set.SetOutput(stderr)
	var plan sequencesPlan
	minutes := set.Float64("minutes", 9, "decode for `N` minutes")
	set.Uint64Var(&plan.seed, "seed", 1, "of the texts and of what is random")
	set.IntVar(&plan.positions, "positions", 256, "a text has at most `N` tokens, its prompt included")
	set.IntVar(&plan.texts, "texts", 32, "make `N` new texts a minute, each decoded alone")
	set.IntVar(&plan.aborts, "aborts", 30, "give up one in `N` steps; 0: none")
	limit := set.Duration("spin-limit", 0, "a wait on the GPU longer than this is a stall (default 5s)")
	gpu := set.Int("gpu", 0, "`N`umber of the GPU, from 0")
	if err := set.Parse(args); err != nil || set.NArg() > 0 || !(*minutes > 0 && *minutes <= sequencesMost) ||
		plan.positions < 2 || plan.texts < 1 || plan.aborts < 0 {
		fmt.Fprintln(stderr, sequencesUsage)
		return 2
	}
	plan.time = time.Duration(*minutes * float64(time.Minute))
	plan.round = min(time.Minute, plan.time)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	s, err := host.Open(ctx, dir, host.Options{GPU: *gpu, SpinLimit: *limit})
	if err != nil {
		fmt.Fprintln(stderr, "device: error:", err)
		return 2
	}
	out := json.NewEncoder(stdout)
	r, err := soakSequences(ctx, s, plan, func(r *sequencesResult) error { return out.Encode(r) })
	if err := errors.Join(err, s.Close()); err != nil {
		fmt.Fprintln(stderr, "device: error:", err)
		return 2
	}
	if !r.Passed {
		return 1
	}
	return 0
}

// soakSequences decodes rounds of texts until the time is up. each gets what has been found after each of them; the
// last is the whole.
func soakSequences(ctx context.Context, s *host.Session, plan sequencesPlan,
	each func(*sequencesResult) error) (*sequencesResult, error) {
	if s.Sequences() < 2 {
		return nil, errors.New("the build has no passes of several sequences; compile it with --sequences N")
	}
	k := &sequencesSoak{ctx: ctx, s: s, plan: plan, rng: rand.New(rand.NewPCG(plan.seed, 2)),
		sequencesResult: sequencesResult{Seed: plan.seed, Sequences: s.Sequences()}}
	k.plan.positions = min(plan.positions, s.Info().MaxSeq)
	start := time.Now()
	var first footprint
	for round := 0; time.Since(start) < plan.time; round++ {
		until := start.Add(min(time.Duration(round+1)*plan.round, plan.time))
		if err := k.round(until); err != nil {
			return nil, fmt.Errorf("round %d: %w", round, err)
		}
		now := takeFootprint()
		if round == 0 {
			first = now
		}
		k.Minutes = time.Since(start).Minutes()
		k.Goroutines, k.HeapMB, k.ResidentMB = now.goroutines, now.heap, now.resident
		if k.Growth == "" {
			k.Growth = now.growth(&first)
		}
		k.Passed = k.Finished > 0 && k.Differing == 0 && k.Growth == ""
		if err := each(&k.sequencesResult); err != nil {
			return nil, err
		}
	}
	return &k.sequencesResult, nil
}
