package codegen

import (
	"cmp"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
)

// A barrier of all SMs is two stages side by side: arrive signals a counter of its own, and join waits until all SMs
// have. The kernel has one counter for all of them: barriers come one after the other, so the n-th of a step is
// passed when each SM has arrived n times in it.

// A joinPlace says which barrier of a step a join is in the t-th iteration of its loop: first + by*t.
type joinPlace struct{ first, by int }

// placeBarriers numbers the barriers of each variant, and refuses stages that look like a barrier's and are not.
func (b *builder) placeBarriers() error {
	b.joins = map[*ir.Stage]joinPlace{}
	var inFirst []joinPlace
	for i := range b.p.Variants {
		v := &b.p.Variants[i]
		var all []joinPlace
		n := 0
		for _, s := range stretches(v) {
			joins, err := b.barriersOf(s.stages)
			if err != nil {
				return err
			}
			rounds, by := 1, 0
			if s.loop != nil {
				rounds, by = s.loop.Count, len(joins)
			}
			for k, j := range joins {
				b.joins[j] = joinPlace{n + k, by}
				all = append(all, b.joins[j])
			}
			n += rounds * len(joins)
		}
		if i == 0 {
			inFirst, b.barriers = all, n
		}
		if n != b.barriers || !slices.Equal(all, inFirst) {
			return diag.Errorf(codeStructure, "variant "+v.Name,
				"has %d barriers per step, and variant %s %d: want the same in all", n, b.p.Variants[0].Name,
				b.barriers)
		}
	}
	return nil
}

// A stretch is the body of a loop, or all stages between two loops.
type stretch struct {
	loop   *ir.Loop
	stages []*ir.Stage
}

func stretches(v *ir.Variant) []stretch {
	out := []stretch{{}}
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Loop:
			out = append(out, stretch{n, n.Body}, stretch{})
		case *ir.Stage:
			last := &out[len(out)-1]
			last.stages = append(last.stages, n)
		}
	}
	return out
}

// barriersOf returns the joins of a stretch.
func (b *builder) barriersOf(stages []*ir.Stage) ([]*ir.Stage, error) {
	var joins []*ir.Stage
	counters := map[string]bool{}
	for k, s := range stages {
		switch kind, err := b.classify(s); {
		case err != nil:
			return nil, err
		case kind == kernel.Arrive && (k+1 == len(stages) || !b.isJoinOf(stages[k+1], s)):
			return nil, diag.Errorf(codeStructure, "stage "+s.Name,
				"arrives at a barrier that the next stage does not wait for: want a join right after it")
		case kind == kernel.Join && (k == 0 || !b.isJoinOf(s, stages[k-1])):
			return nil, diag.Errorf(codeStructure, "stage "+s.Name,
				"waits for a barrier at which the stage before it does not arrive: want an arrive right before it")
		case (kind == kernel.Arrive || kind == kernel.Join) && s.Kind != 0:
			return nil, diag.Errorf(codeStructure, "stage "+s.Name,
				"is part of a barrier of layers of kind %d: want one of all layers", s.Kind)
		case kind == kernel.Arrive || kind == kernel.Join:
			if err := cmp.Or(b.checkPlace(s, kind), b.waitsForAll(s, b.p.Target.SMs)); err != nil {
				return nil, err
			}
			if kind == kernel.Arrive {
				counters[s.Signal] = true
			} else {
				joins = append(joins, s)
			}
		default:
			for _, w := range s.Waits {
				if counters[w.Counter] {
					return nil, diag.Errorf(codeStructure, "stage "+s.Name,
						"waits for %s, at which SMs arrive: want that of a join alone", w.Counter)
				}
			}
		}
	}
	return joins, nil
}

// isJoinOf reports whether a stage is the second half of a barrier.
func (b *builder) isJoinOf(s, arrive *ir.Stage) bool {
	first, err := b.classify(arrive)
	second, err2 := b.classify(s)
	return err == nil && err2 == nil && first == kernel.Arrive && second == kernel.Join && len(s.Waits) == 1 &&
		s.Waits[0].Counter == arrive.Signal && s.Signal == ""
}

// waitsForAll holds the wait of a stage to a number of SMs, which are all.
func (b *builder) waitsForAll(s *ir.Stage, sms int) error {
	for _, w := range s.Waits {
		if w.Threshold != sms {
			return diag.Errorf(codeStructure, "stage "+s.Name, "waits for %d SMs of %d: want all", w.Threshold, sms)
		}
	}
	return nil
}
