package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"math/rand/v2"
	"os/signal"
	"syscall"
	"time"

	"amkc/runtime/host"
)

// passesResult is what passes prints: how much was decoded in other ways than token by token, and what differed.
type passesResult struct {
	Positions  int     `json:"positions"` // of the text, from 0
	Cases      int     `json:"cases"`     // texts that were read in random parts
	Parts      int     `json:"parts"`
	Tokens     int     `json:"tokens"`     // read in parts
	Compared   int     `json:"compared"`   // positions whose logits were compared
	Difference string  `json:"difference"` // the first one, or empty
	Passed     bool    `json:"passed"`
	Seconds    float64 `json:"seconds"`
}

// passes decodes a random text token by token, and then again and again in random parts: each case goes back to a
// random position, writes random tokens into the cache behind it, and reads the text on from there in parts of random
// lengths. The logits of every position that they are asked for must be those of single tokens, to the bit.
func passes(dir string, args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("passes", flag.ContinueOnError)
	set.SetOutput(stderr)
	cases := set.Int("cases", 100, "read the text in `N` random ways")
	positions := set.Int("positions", 0, "positions of the text (default: all of the build)")
	seed := set.Uint64("seed", 1, "of the text and of what is random")
	seconds := set.Float64("seconds", 0, "stop after `N` seconds; 0: after all cases")
	limit := set.Duration("spin-limit", 0, "a wait on the GPU longer than this is a stall (default 5s)")
	gpu := set.Int("gpu", 0, "`N`umber of the GPU, from 0")
	if err := set.Parse(args); err != nil || set.NArg() > 0 || *cases < 1 || *positions < 0 || *seconds < 0 {
		fmt.Fprintln(stderr, "usage: device DIR passes [--cases N] [--positions N] [--seed N] [--seconds N] "+
			"[--spin-limit DURATION] [--gpu N]")
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	s, err := host.Open(ctx, dir, host.Options{GPU: *gpu, SpinLimit: *limit})
	if err != nil {
		fmt.Fprintln(stderr, "device: error:", err)
		return 2
	}
	r, err := comparePasses(ctx, s, *positions, *cases, time.Duration(*seconds*float64(time.Second)), *seed)
	if err := errors.Join(err, s.Close()); err != nil {
		fmt.Fprintln(stderr, "device: error:", err)
		return 2
	}
	text, err := json.Marshal(r)
	if err != nil {
		fmt.Fprintln(stderr, "device: error:", err)
		return 2
	}
	fmt.Fprintln(stdout, string(text))
	if !r.Passed {
		return 1
	}
	return 0
}

func comparePasses(ctx context.Context, s *host.Session, positions, cases int, most time.Duration,
	seed uint64) (*passesResult, error) {
	info := s.Info()
	if positions == 0 || positions > info.MaxSeq {
		positions = info.MaxSeq
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	text := randomIDs(rng, positions, info.Vocab)
	key := maphash.MakeSeed()
	singly := make([]uint64, positions)
	for i, id := range text {
		if _, err := s.Feed(ctx, []int{id}, func(_ int, logits []float32) error {
			singly[i] = hashOf(key, logits)
			return nil
		}); err != nil {
			return nil, err
		}
	}
	r := &passesResult{Positions: positions}
	start := time.Now()
	for ; r.Cases < cases && (most == 0 || time.Since(start) < most); r.Cases++ {
		if err := s.Rewind(rng.IntN(1 + min(s.Position(), positions-1))); err != nil {
			return nil, err
		}
		if rng.IntN(3) == 0 {
			s.Reset()
		}
		first := s.Position()
		if n := partOf(rng, positions-first); rng.IntN(2) == 0 { // a draft that comes to nothing
			if _, err := s.Feed(ctx, randomIDs(rng, n, info.Vocab), nil); err != nil {
				return nil, err
			}
			if err := s.Rewind(first); err != nil {
				return nil, err
			}
		}
		for at := first; at < positions; {
			n := partOf(rng, positions-at)
			var each func(int, []float32) error
			if rng.IntN(3) > 0 || at+n == positions {
				each = func(position int, logits []float32) error {
					r.Compared++
					if hashOf(key, logits) != singly[position] && r.Difference == "" {
						r.Difference = fmt.Sprintf("case %d: position %d, in a part of %d tokens from %d on",
							r.Cases, position, n, at)
					}
					return nil
				}
			}
			if _, err := s.Feed(ctx, text[at:at+n], each); err != nil {
				return nil, err
			}
			at += n
			r.Parts++
			r.Tokens += n
		}
	}
	r.Seconds = time.Since(start).Seconds()
	r.Passed = r.Difference == ""
	return r, nil
}

// partOf is a length of 1 to n: often short, sometimes all.
func partOf(rng *rand.Rand, n int) int {
	switch rng.IntN(4) {
	case 0:
		return 1 + rng.IntN(min(n, 9))
	case 1:
		return 1 + rng.IntN(min(n, 100))
	case 2:
		return 1 + rng.IntN(n)
	}
	return n
}

func randomIDs(rng *rand.Rand, n, vocab int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = rng.IntN(vocab)
	}
	return ids
}

// hashOf tells logits apart by their bits.
func hashOf(seed maphash.Seed, logits []float32) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	raw := make([]byte, 0, 4*len(logits))
	for _, v := range logits {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	h.Write(raw)
	return h.Sum64()
}
