package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os/signal"
	"slices"
	"syscall"

	"amkc/runtime/host"
)

// soakResult is what soak prints: how much was decoded in one session, and what did not repeat.
type soakResult struct {
	Positions   int    `json:"positions"`    // of a pass, from 0
	Passes      int    `json:"passes"`       // of each kind
	Free        int    `json:"free"`         // tokens decoded with the kernel's own choices fed back
	Forced      int    `json:"forced"`       // tokens decoded teacher-forced, logits read
	Difference  string `json:"difference"`   // the first one, or empty
	Passed      bool   `json:"passed"`       // no pass differs from the first
	LogitsBytes int64  `json:"logits_bytes"` // compared
}

// soak decodes passes of the whole context, each from position 0, in one session: first freely, until there are enough
// tokens, and then as many passes teacher-forced on the tokens of the first. Every pass must choose the same tokens, and
// every teacher-forced one give the same logits to the bit.
func soak(dir string, args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("soak", flag.ContinueOnError)
	set.SetOutput(stderr)
	tokens := set.Int("tokens", 10_000, "decode at least `N` tokens of each kind")
	positions := set.Int("positions", 0, "positions of a pass (default: all of the build)")
	limit := set.Duration("spin-limit", 0, "a wait on the GPU longer than this is a stall (default 5s); more under tools that slow it down")
	gpu := set.Int("gpu", 0, "`N`umber of the GPU, from 0")
	if err := set.Parse(args); err != nil || set.NArg() > 0 || *tokens < 1 || *positions < 0 {
		fmt.Fprintln(stderr, "usage: device DIR soak [--tokens N] [--positions N] [--spin-limit DURATION] [--gpu N]")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	r, err := soakBuild(ctx, dir, *tokens, *positions, host.Options{GPU: *gpu, SpinLimit: *limit})
	if err != nil {
		fmt.Fprintln(stderr, "device: error:", err)
		return 2
	}
	if err := json.NewEncoder(stdout).Encode(r); err != nil {
		fmt.Fprintln(stderr, "device: error:", err)
		return 2
	}
	if !r.Passed {
		return 1
	}
	return 0
}

func soakBuild(ctx context.Context, dir string, tokens, positions int, o host.Options) (_ *soakResult, err error) {
	s, err := host.Open(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if most := s.Info().MaxSeq; positions == 0 || positions > most {
		positions = most
	}
	r := &soakResult{Positions: positions, Passes: max(2, (tokens+positions-1)/positions)}
	ids, err := r.freely(ctx, s)
	if err == nil && r.Difference == "" {
		err = r.forced(ctx, s, ids)
	}
	r.Passed = r.Difference == ""
	return r, err
}

// freely decodes all passes with the kernel's own choices, and returns the tokens that the first one decoded.
func (r *soakResult) freely(ctx context.Context, s *host.Session) ([]int, error) {
	const start = 0 // the token at position 0
	var first []int
	for pass := range r.Passes {
		s.Reset()
		chosen, err := s.Generate(ctx, start, r.Positions, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("pass %d: %w", pass, err)
		}
		r.Free += len(chosen)
		if pass == 0 {
			first = chosen
		}
		for i := range chosen {
			if chosen[i] != first[i] {
				r.Difference = fmt.Sprintf("pass %d, position %d: token %d was chosen, and %d in pass 0", pass, i, chosen[i], first[i])
				return nil, nil
			}
		}
	}
	return slices.Insert(first[:r.Positions-1:r.Positions-1], 0, start), nil
}

// forced decodes all passes on given ids, compares every logit, and demands that they say what was chosen freely.
func (r *soakResult) forced(ctx context.Context, s *host.Session, ids []int) error {
	digests := make([][sha256.Size]byte, r.Positions)
	for pass := range r.Passes {
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
				r.Difference = fmt.Sprintf("pass %d, position %d: the logits say %d, and %d was chosen freely", pass, i, best, ids[i+1])
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
