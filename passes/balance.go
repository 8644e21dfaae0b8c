package passes

import (
	"cmp"
	"slices"

	"amkc/ir"
)

// balance chooses rotations so that the bytes each SM streams in a step even out. A stage of T grains leaves some SMs
// with one grain more than others; which SMs those are is what its rotation decides. Stages are taken in program order,
// attention last, so that stages of weights are placed alike in every variant. For each the step from layer to layer is
// chosen first, then the rotation of layer 0, so that the most loaded SM streams least, and the squares of the loads sum
// to least. Stages that keep the residual do not move.
func balance(p *ir.Program, v *ir.Variant, stages []*ir.Stage) map[string]turn {
	b := newBalancer(p, v)
	turns := map[string]turn{}
	var order []string
	byRole := map[string][]*ir.Stage{}
	for _, st := range stages {
		_, role := splitName(st.Name)
		if slices.Contains(residualRoles, role) {
			b.add(b.slots(st), 0)
			continue
		}
		if slices.Contains(rotatedRoles, role) {
			if byRole[role] == nil {
				order = append(order, role)
			}
			byRole[role] = append(byRole[role], st)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(attentionRoles[a], attentionRoles[b]) })
	for _, role := range order {
		turns[role] = b.choose(byRole[role])
	}
	return turns
}

var attentionRoles = map[string]int{"part": 1, "attn": 1}

// A balancer keeps the bytes each SM streams so far.
type balancer struct {
	buffers buffers
	pos     int // the position at which cache rows are counted
	loads   []int
}

func newBalancer(p *ir.Program, v *ir.Variant) balancer {
	return balancer{buffers: newBuffers(p), pos: v.Lo + (v.Hi-v.Lo)/2, loads: make([]int, p.Target.SMs)}
}

// slots returns the bytes that each slot of a stage streams when nothing is rotated.
func (b *balancer) slots(st *ir.Stage) []int {
	out := make([]int, len(b.loads))
	d := st.Dist
	d.Rot, d.Step = 0, 0
	for _, t := range d.Tasks(0) {
		out[t.SM] += b.bytes(st, t)
	}
	return out
}

// bytes is what a task reads from the weights and the cache.
func (b *balancer) bytes(st *ir.Stage, t ir.TaskSpan) int {
	total := 0
	for i := range st.Ops {
		op := &st.Ops[i]
		for _, o := range op.In {
			buf := b.buffers.find(o.Buf)
			if buf == nil || buf.Kind != ir.Weight && buf.Kind != ir.KVCache {
				continue
			}
			n := 1
			for d, r := range o.Dims {
				if op.Code == ir.EMBED && d == 0 {
					continue // one row of the table, whichever it is
				}
				n *= r.Bind(t).Len(b.pos)
			}
			total += buf.DType.Bytes(n)
		}
	}
	return total
}

func (b *balancer) add(slots []int, rot int) {
	for slot, n := range slots {
		b.loads[turned(slot, rot, len(slots))] += n
	}
}

// turned is the SM of a slot, as ir.Dist defines it.
func turned(slot, rot, sms int) int { return ((slot-rot)%sms + sms) % sms }

// choose finds the turn of the stages of one role, which are those of successive layers, and adds them to the loads.
func (b *balancer) choose(stages []*ir.Stage) turn {
	slots := b.slots(stages[0])
	sms := len(b.loads)
	uniform := !slices.ContainsFunc(slots, func(n int) bool { return n != slots[0] })
	var best turn
	if !uniform {
		best.step = b.search(slots, len(stages), func(n int) turn { return turn{0, n} }).step
		best = b.search(slots, len(stages), func(n int) turn { return turn{n, best.step} })
	}
	for layer := range stages {
		b.add(slots, (best.rot+best.step*layer)%sms)
	}
	return best
}

// search tries a turn for every number of SMs and returns the one with the most even loads, the first of equals.
func (b *balancer) search(slots []int, layers int, try func(n int) turn) turn {
	var best turn
	sms := len(b.loads)
	bestMax, bestSquares := -1, 0
	trial := balancer{loads: make([]int, sms)}
	for n := range sms {
		t := try(n)
		copy(trial.loads, b.loads)
		for layer := range layers {
			trial.add(slots, (t.rot+t.step*layer)%sms)
		}
		// Squares of what is above the least load, which keeps them small enough to be exact.
		most, least, squares := slices.Max(trial.loads), slices.Min(trial.loads), 0
		for _, load := range trial.loads {
			squares += (load - least) * (load - least)
		}
		if bestMax < 0 || most < bestMax || most == bestMax && squares < bestSquares {
			best, bestMax, bestSquares = t, most, squares
		}
	}
	return best
}
