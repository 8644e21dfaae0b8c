package host

import (
	"context"
	"fmt"
	"slices"
)

const (
	checkRounds = 16 // of passes of several sequences
	checkSteps  = 3  // of each; the logits of all their tokens have room
)

// SequenceCheck is what was found about passes of several sequences: rounds of a few steps from random positions, some
// sequences absent.
type SequenceCheck struct {
	Sequences int  `json:"sequences"`
	Rounds    int  `json:"rounds"`
	Compared  int  `json:"compared"` // positions whose logits were compared with those of single tokens
	Equal     bool `json:"equal"`    // all of them to the bit
}

func (c *SequenceCheck) String() string {
	equal := "equal to those of single tokens to the bit"
	if !c.Equal {
		equal = "not equal to those of single tokens"
	}
	return fmt.Sprintf("passes of %d sequences: logits of %d positions in %d rounds, %s", c.Sequences, c.Compared,
		c.Rounds, equal)
}

// checkSequences compares passes of several sequences with single tokens, to the bit. Each sequence has made-up rows of
// its own in its region of the cache, a random position and a random token; some are absent from a pass. What single
// tokens give is asked before the pass, and of those that were absent once more after it: it must not have changed
// what they see. The first round is at the first positions, and the second one at the last.
func (s *Session) checkSequences(ctx context.Context, report *CheckReport) (err error) {
	n, last := s.Sequences(), s.info.MaxSeq-checkSteps
	if last < 0 {
		return nil
	}
	defer func() { s.region, s.position = 0, 0 }()
	for s.region = range n {
		if err := s.setCache(s.info.MaxSeq); err != nil {
			return err
		}
	}
	check := &SequenceCheck{Sequences: n, Rounds: checkRounds, Equal: true}
	report.Sequences = check
	for round := range checkRounds {
		at, positions, tokens := make([]int, n), make([]int, n), make([]int, n)
		some := round % n // is there
		for i := range n {
			r := mix(uint64(round*MaxSequences+i) + 1<<32)
			at[i], tokens[i] = int(r%uint64(last+1)), int(mix(r)%uint64(s.info.Vocab))
			switch round {
			case 0:
				at[i] = 0
			case 1:
				at[i] = last
			}
			if positions[i] = at[i]; i != some && mix(r+1)%3 == 0 {
				positions[i] = absent
			}
		}
		if err := s.checkRound(ctx, at, positions, tokens, report); err != nil {
			return err
		}
	}
	return nil
}

// checkRound compares a few steps of all sequences, of which some are absent from the passes, wherever they stand.
func (s *Session) checkRound(ctx context.Context, at, positions, tokens []int, report *CheckReport) error {
	n := len(at)
	want := make([][][]float32, n)
	var err error
	for i := range n {
		if want[i], err = s.steps(ctx, i, at[i], tokens[i]); err != nil {
			return err
		}
	}
	forced := make([]int, checkSteps*n)
	for i := range forced {
		forced[i] = -1
	}
	copy(forced, tokens)
	if _, err := s.run(ctx, burst{kernel: s.batch, tokens: len(forced), forced: forced, logits: true,
		positions: positions}, nil); err != nil {
		return err
	}
	var got [][]float32
	if err := s.readLogits(len(forced), func(_ int, logits []float32) error {
		got = append(got, logits)
		return nil
	}); err != nil {
		return err
	}
	for i := range n {
		of, what := make([][]float32, checkSteps), "in a pass of several"
		if positions[i] == absent {
			what = "after a pass without it"
			if of, err = s.steps(ctx, i, at[i], tokens[i]); err != nil {
				return err
			}
		} else {
			for k := range of {
				of[k] = got[k*n+i]
			}
		}
		for k := range of {
			report.Sequences.Compared++
			if !slices.EqualFunc(of[k], want[i][k], sameBits) {
				report.Sequences.Equal = false
				report.fail("position %d of sequence %d: the logits %s are others than those of single tokens", at[i]+k,
					i, what)
				break // what follows is of another token
			}
		}
	}
	return nil
}

// steps decodes a few tokens of a sequence by themselves, the first of them given, and returns the logits of each.
func (s *Session) steps(ctx context.Context, sequence, position, token int) (all [][]float32, err error) {
	s.region, s.position = sequence, position
	tokens, err := s.run(ctx, burst{tokens: checkSteps, token: token, logits: true}, nil)
	if err != nil {
		return nil, fmt.Errorf("sequence %d by itself: %w", sequence, err)
	}
	err = s.readLogits(len(tokens), func(_ int, logits []float32) error {
		all = append(all, logits)
		return nil
	})
	return all, err
}
