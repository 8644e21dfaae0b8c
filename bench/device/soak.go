package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"amkc/runtime/host"
)

// soakMost is the longest time that soak accepts.
const soakMost = 24 * time.Hour

// soakResult is what soak prints: how much was decoded in one session, and what did not repeat.
type soakResult struct {
	Positions   int    `json:"positions"`    // of a pass, from 0
	Passes      int    `json:"passes"`       // decoded freely
	Free        int    `json:"free"`         // tokens decoded with the kernel's own choices fed back
	Forced      int    `json:"forced"`       // tokens decoded teacher-forced, logits read
	Difference  string `json:"difference"`   // the first one, or empty
	Passed      bool   `json:"passed"`       // no pass differs from the first
	LogitsBytes int64  `json:"logits_bytes"` // compared

	Seconds float64      `json:"seconds,omitempty"`    // of free decoding, if it was to last for some time
	Latency *passLatency `json:"latency_us,omitempty"` // likewise: of the free passes
}

// A soakPlan says how much is decoded. Two passes of each kind are the least: one alone shows nothing.
type soakPlan struct {
	tokens    int           // of each kind, at least
	positions int           // of a pass; 0: all of the build
	time      time.Duration // of free decoding, at least
}

// soak decodes passes of the whole context, each from position 0, in one session: first freely, until there are
// enough tokens and the time is up, and then passes with enough tokens teacher-forced on those of the first. Every
// pass must choose the same tokens, and every teacher-forced one give the same logits to the bit.
func soak(dir string, args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("soak", flag.ContinueOnError)
	set.SetOutput(stderr)
	tokens := set.Int("tokens", 10_000, "decode at least `N` tokens of each kind")
	positions := set.Int("positions", 0, "positions of a pass (default: all of the build)")
	seconds := set.Float64("seconds", 0, "decode freely for at least `N` seconds, and say how long each pass took")
	limit := set.Duration("spin-limit", 0,
		"a wait on the GPU longer than this is a stall (default 5s); more under tools that slow it down")
	gpu := set.Int("gpu", 0, "`N`umber of the GPU, from 0")
	if err := set.Parse(args); err != nil || set.NArg() > 0 || *tokens < 1 || *positions < 0 ||
		!(*seconds >= 0 && *seconds <= soakMost.Seconds()) {
		fmt.Fprintln(stderr, "usage: device DIR soak [--tokens N] [--positions N] [--seconds N] [--spin-limit "+
			"DURATION] [--gpu N]")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	plan := soakPlan{*tokens, *positions, time.Duration(*seconds * float64(time.Second))}
	r, err := soakBuild(ctx, dir, plan, host.Options{GPU: *gpu, SpinLimit: *limit})
	return report(r, r != nil && r.Passed, err, stdout, stderr)
}

func soakBuild(ctx context.Context, dir string, plan soakPlan, o host.Options) (_ *soakResult, err error) {
	s, err := host.Open(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if most := s.Info().MaxSeq; plan.positions == 0 || plan.positions > most {
		plan.positions = most
	}
	r := &soakResult{Positions: plan.positions}
	passes := max(2, (plan.tokens+plan.positions-1)/plan.positions)
	ids, err := r.freely(ctx, s, passes, plan.time)
	if err == nil && r.Difference == "" {
		err = r.forced(ctx, s, ids, passes)
	}
	r.Passed = r.Difference == ""
	return r, err
}

// freely decodes passes with the kernel's own choices, as many as given and more until the time is up, and returns
// the tokens that the first one decoded.
func (r *soakResult) freely(ctx context.Context, s *host.Session, passes int, least time.Duration) ([]int, error) {
	const start = 0 // the token at position 0
	var first []int
	var clock passClock
	for r.Passes < passes || clock.elapsed() < least {
		s.Reset()
		clock.begin()
		chosen, err := s.Generate(ctx, start, r.Positions, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("pass %d: %w", r.Passes, err)
		}
		clock.end(len(chosen))
		r.Free += len(chosen)
		if r.Passes == 0 {
			first = chosen
		}
		for i := range chosen {
			if chosen[i] != first[i] {
				r.Difference = fmt.Sprintf("pass %d, position %d: token %d was chosen, and %d in pass 0", r.Passes, i,
					chosen[i], first[i])
				return nil, nil
			}
		}
		r.Passes++
	}
	if least > 0 {
		r.Seconds, r.Latency = clock.elapsed().Seconds(), clock.latency()
	}
	return slices.Insert(first[:r.Positions-1:r.Positions-1], 0, start), nil
}

// forced decodes passes on given ids, compares every logit, and demands that they say what was chosen freely.
func (r *soakResult) forced(ctx context.Context, s *host.Session, ids []int, passes int) error {
	digests := make([][sha256.Size]byte, r.Positions)
	for pass := range passes {
		s.Reset()
		_, err := s.Feed(ctx, ids, func(i int, logits []float32) error {
			r.Forced++
			r.LogitsBytes += int64(4 * len(logits))
			d := digest(logits)
			if pass == 0 {
				digests[i] = d
			}
			switch best := argmax(logits); {
			case r.Difference != "":
			case d != digests[i]:
				r.Difference = fmt.Sprintf("pass %d, position %d: the logits are not those of pass 0", pass, i)
			case i+1 < len(ids) && best != ids[i+1]:
				r.Difference = fmt.Sprintf("pass %d, position %d: the logits say %d, and %d was chosen freely", pass, i,
					best, ids[i+1])
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("teacher-forced pass %d: %w", pass, err)
		}
		if r.Difference != "" {
			return nil
		}
	}
	return nil
}

func digest(logits []float32) [sha256.Size]byte {
	raw := make([]byte, 0, 4*len(logits))
	for _, v := range logits {
		bits := math.Float32bits(v)
		raw = append(raw, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
	}
	return sha256.Sum256(raw)
}

// argmax returns the index of the largest value, the lowest among equals.
func argmax(v []float32) int {
	best := 0
	for i, x := range v {
		if x > v[best] {
			best = i
		}
	}
	return best
}
