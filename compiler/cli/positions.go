package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"amkc/app/front"
	"amkc/ir"
	"amkc/ir/diag"
)

// passPositions is the value of a flag that takes positions of passes with commas: 7, of all sequences, or 0/7, of each
// one. A repeated flag adds to them.
type passPositions struct{ values *[][]int }

func (p *passPositions) String() string { return strings.Join(spellPasses(*p.values), ",") }
func (p *passPositions) Type() string   { return "ints" }

func (p *passPositions) Set(s string) error {
	var list [][]int
	for i, pass := range strings.Split(s, ",") {
		var at []int
		for _, word := range strings.Split(pass, "/") {
			n, err := front.ParseCount(word, 0, math.MaxInt)
			if err != nil {
				err = errors.New(front.CountWant(0, math.MaxInt) + "; 0/7 names a position of each of two sequences")
				return fmt.Errorf("number %d of the list is %q; %w", i+1, pass, err)
			}
			at = append(at, n)
		}
		list = append(list, at)
	}
	*p.values = append(*p.values, list...)
	return nil
}

// checkPasses refuses positions that no pass of a program has.
func checkPasses(p *ir.Program, list [][]int) error {
	for _, at := range list {
		if n := p.Pass.NumSequences(); len(at) != 1 && len(at) != n {
			want := "want 1"
			if n > 1 {
				want = fmt.Sprintf("want 1 for all of its %d sequences, or %d with / between them", n, n)
			}
			return diag.Errorf(codePosition, "--position", "%s names %d positions of a pass; %s", spellPass(at),
				len(at), want)
		}
		first := 0
		for s, pos := range at {
			variant, err := variantAt(p, "--position", pos)
			if err != nil {
				return err
			}
			if s > 0 && variant != first {
				v := &p.Variants[first]
				return diag.Errorf(codePosition, "--position", "%s is of two variants; want all of a pass in one, "+
					"which is positions %d to %d for %d", spellPass(at), v.Lo, v.Hi, at[0])
			}
			first = variant
		}
	}
	return nil
}

// spellPass prints the positions of a pass as --position takes them.
func spellPass(at []int) string {
	words := make([]string, len(at))
	for i, pos := range at {
		words[i] = fmt.Sprint(pos)
	}
	return strings.Join(words, "/")
}

func spellPasses(list [][]int) []string {
	words := make([]string, len(list))
	for i, at := range list {
		words[i] = spellPass(at)
	}
	return words
}

// positionsText tells the positions of passes in a sentence.
func positionsText(list [][]int) string {
	words := spellPasses(list)
	if len(words) == 1 {
		return "position " + words[0]
	}
	return "positions " + strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// firstPositions lists the positions of the first sequence of passes in a row.
func firstPositions(list [][]int) []int {
	out := make([]int, len(list))
	for i, at := range list {
		out[i] = at[0]
	}
	return out
}

// severalSequences is a list of the positions of passes, if they have several sequences.
func severalSequences(list [][]int) [][]int {
	if slices.ContainsFunc(list, func(at []int) bool { return len(at) > 1 }) {
		return list
	}
	return nil
}
