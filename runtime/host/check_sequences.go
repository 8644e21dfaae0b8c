package host

import (
	"context"
	"fmt"
	"slices"

	"amkc/runtime/shape"
)

const (
	checkRounds = 16 // of passes of several sequences
	checkSteps  = 3  // of each; the logits of all their tokens have room
)

// PassCheck is the result of checking passes of several sequences: rounds of a few steps from random positions, or of a
// step of several rows, some sequences absent.
type PassCheck struct {
	shape.Pass
	Rounds   int  `json:"rounds"`
	Compared int  `json:"compared"` // positions whose logits were compared with those of single tokens
	Equal    bool `json:"equal"`    // all of them to the bit
}

func (c *PassCheck) String() string {
	equal := "equal to those of single tokens to the bit"
	if !c.Equal {
		equal = "not equal to those of single tokens"
	}
	return fmt.Sprintf("passes of %v: logits of %d positions in %d rounds, %s", c.Pass, c.Compared,
		c.Rounds, equal)
}

// checkSequences compares passes of several sequences with single tokens, to the bit. Each sequence has made-up rows of
// its own in its region of the cache, a random position and a random token; some are absent from a pass. What single
// tokens give is asked before the pass, and of those that were absent once more after it: it must not have changed
// what they see. The first round is at the first positions, and the second one at the last.
func (s *Session) checkSequences(ctx context.Context, report *CheckReport) (err error) {
	defer func() { s.region, s.position = 0, 0 }()
	if err := s.FillCache(); err != nil {
		return err
	}
	for _, k := range s.several {
		c := &sequenceChecker{s: s, kernel: k, steps: checkSteps, report: report,
			found: &PassCheck{Pass: k.info.Written(), Rounds: checkRounds, Equal: true}}
		if rows := k.info.NumRows(); rows > 1 {
			c.steps = rows
		}
		if s.info.MaxSeq < c.steps {
			continue
		}
		report.Passes = append(report.Passes, c.found)
		if err := c.check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// A sequenceChecker compares passes of a kernel.
type sequenceChecker struct {
	s      *Session
	kernel *megakernel
	steps  int // tokens of each sequence
	report *CheckReport
	found  *PassCheck
}

func (c *sequenceChecker) check(ctx context.Context) error {
	s, n, last := c.s, c.kernel.info.NumSequences(), c.s.info.MaxSeq-c.steps
	for round := range checkRounds {
		at, positions, tokens := make([]int, n), make([]int, n), make([]int, n)
		some := round % n // is there
		for i := range n {
			r := mix(uint64(round*shape.MaxTokens+i) + 1<<32)
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
		if err := c.round(ctx, at, positions, tokens); err != nil {
			return err
		}
	}
	return nil
}

// round compares a few tokens of all sequences, of which some are absent from the pass, wherever they stand.
func (c *sequenceChecker) round(ctx context.Context, at, positions, tokens []int) error {
	n, rows, perStep := len(at), c.kernel.info.NumRows(), c.kernel.info.NumTokens()
	want := make([][][]float32, n)
	ids := make([][]int, n) // that single tokens are
	var err error
	for i := range n {
		var chosen []int
		if chosen, want[i], err = c.alone(ctx, i, at[i], tokens[i]); err != nil {
			return err
		}
		ids[i] = append([]int{tokens[i]}, chosen...)
	}
	// In steps of one row each the kernel chooses on its own; rows of a step are a token and drafts, some of them
	// wrong.
	forced := make([]int, c.steps*n)
	right := slices.Repeat([]int{c.steps}, n)
	for i := range n {
		for k := range c.steps {
			switch {
			case rows == 1 && k == 0:
				forced[i] = tokens[i]
			case rows == 1:
				forced[k*n+i] = -1
			default:
				forced[i*c.steps+k] = ids[i][k]
			}
		}
		if rows == 1 {
			continue
		}
		right[i] = 1 + int(mix(uint64(at[i]*n+i))%uint64(c.steps))
		for k := right[i]; k < c.steps; k++ {
			forced[i*c.steps+k] = (ids[i][k] + 1) % c.s.info.Vocab
		}
	}
	if _, err := c.s.run(ctx, burst{kernel: c.kernel, tokens: len(forced), forced: forced, logits: true,
		positions: positions}, nil); err != nil {
		return err
	}
	got, err := c.logits(len(forced))
	if err != nil {
		return err
	}
	for i := range n {
		of, what := make([][]float32, right[i]), "in a pass of several"
		if positions[i] == absent {
			what = "after a pass without it"
			if _, of, err = c.alone(ctx, i, at[i], tokens[i]); err != nil {
				return err
			}
		} else {
			for k := range of {
				of[k] = got[k/rows*perStep+i*rows+k%rows]
			}
		}
		for k := range of {
			c.found.Compared++
			if !slices.EqualFunc(of[k], want[i][k], sameBits) {
				c.found.Equal = false
				c.report.fail("position %d of sequence %d: the logits %s are others than those of single tokens",
					at[i]+k, i, what)
				break // what follows is of another token
			}
		}
	}
	return nil
}

// alone decodes a few tokens of a sequence on their own, the first of them given, and returns what was chosen after
// each, and its logits.
func (c *sequenceChecker) alone(ctx context.Context, sequence, position, token int) (chosen []int, all [][]float32,
	err error) {
	c.s.region, c.s.position = sequence, position
	chosen, err = c.s.run(ctx, burst{tokens: c.steps, token: token, logits: true}, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("sequence %d alone: %w", sequence, err)
	}
	all, err = c.logits(len(chosen))
	return chosen, all, err
}

// logits are those of the last launch.
func (c *sequenceChecker) logits(n int) (all [][]float32, err error) {
	err = c.s.readLogits(0, n, func(_ int, logits []float32) error {
		all = append(all, logits)
		return nil
	})
	return all, err
}
