package readback

import (
	"slices"

	"amkc/ir"
	"amkc/kernel"
)

// ranks reads how many GPUs run the kernel at once.
func (b *builder) ranks() {
	const ranks = "kGPUs"
	r, s := &b.schedule, b.schedule.scope
	if s.byName[ranks] == nil {
		return
	}
	n := r.positive(s, ranks)
	if n < 2 || n > ir.MaxRanks {
		r.wrong(s, ranks, "%d; want 2 to %d, and none of it for one GPU", n, ir.MaxRanks)
		return
	}
	b.p.Ranks, b.facts.Ranks = n, n
}

// pushed reports whether ranks push a vector: sums that each has a part of, which others add up, and best logits.
func (b *builder) pushed(vector string) bool {
	if b.facts.NumRanks() == 1 || vector == "" {
		return false
	}
	if vector == bestVectors || vector == kernel.Named.BestValue || vector == kernel.Named.BestIndex {
		return true
	}
	if _, rest, member := layerOf(vector); member {
		vector = "L{i}" + rest
	}
	return slices.ContainsFunc(b.stages, func(d *descriptor) bool {
		return d.body == kernel.AddSums && d.In == vector
	})
}

// signallers are the tasks that a stage waits for, of those that signal on each rank: on all ranks where they push.
func (b *builder) signallers(vector string, tasks int) int {
	if b.pushed(vector) {
		return tasks * b.facts.NumRanks()
	}
	return tasks
}

// scope is that of the counter of a vector.
func (b *builder) scope(vector string) ir.Scope {
	if b.pushed(vector) {
		return ir.ScopeSystem
	}
	return ir.ScopeGPU
}
