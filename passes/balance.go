package passes

import (
	"slices"

	"amkc/ir"
	"amkc/ir/op"
	"amkc/passes/rewrite"
)

// balance chooses rotations so that the bytes each SM streams in a step even out. A stage of T grains leaves some SMs
// with one grain more than others; which SMs those are is what its rotation decides. Stages are taken in program
// order, attention last, so that stages of weights are placed alike in every variant. For each the step from layer to
// layer is chosen first, then the rotation of layer 0, so that the most loaded SM streams least, and the squares of
// the loads sum to least. Stages that keep the residual do not move.
func balance(p *ir.Program, v *ir.Variant) map[*ir.Stage]turn {
	b := newBalancer(p, v)
	return b.turns(v)
}

func (b *balancer) turns(v *ir.Variant) map[*ir.Stage]turn {
	type rotated struct {
		st     *ir.Stage
		layers []int
	}
	turns := map[*ir.Stage]turn{}
	var order []rotated
	rewrite.EachStage(v, func(st *ir.Stage, loop *ir.Loop) {
		switch {
		case b.keeps(st, loop):
			layers := rewrite.Indices(st, loop)
			slots := b.slots(st, layers[0])
			for range layers {
				b.addTurned(b.loads, slots, 0)
			}
		case movable(st):
			order = append(order, rotated{st, rewrite.Indices(st, loop)})
		}
	})
	slices.SortStableFunc(order, func(a, b rotated) int {
		switch {
		case attends(a.st) == attends(b.st):
			return 0
		case attends(a.st):
			return 1
		}
		return -1
	})
	for _, r := range order {
		turns[r.st] = b.choose(r.st, r.layers)
	}
	return turns
}

// A balancer keeps the bytes each SM streams so far.
type balancer struct {
	buffers rewrite.Buffers
	keepers
	pos   int // the position at which cache rows are counted
	loads []int
	work  int // loads touched so far; a test holds it to be linear in the tasks
}

func newBalancer(p *ir.Program, v *ir.Variant) balancer {
	buffers := rewrite.NewBuffers(p)
	return balancer{buffers: buffers, keepers: keepersOf(buffers), pos: v.Lo + (v.Hi-v.Lo)/2,
		loads: make([]int, p.Target.SMs)}
}

// slots returns the bytes that each slot of a stage streams in layer i when nothing is rotated.
func (b *balancer) slots(st *ir.Stage, i int) []int {
	out := make([]int, len(b.loads))
	d := st.Dist
	d.Rot, d.Step = 0, 0
	for _, t := range d.Tasks(0) {
		out[t.SM] += b.bytes(st, t, i)
	}
	return out
}

// bytes is what a task reads from the weights and the cache in a layer.
func (b *balancer) bytes(st *ir.Stage, t ir.TaskSpan, layer int) int {
	total := 0
	for i := range st.Ops {
		spec := ir.Ops[st.Ops[i].Code]
		for k, o := range st.Ops[i].In {
			buf := b.buffers.Find(o.Buf, layer)
			if buf == nil || buf.Kind != ir.Weight && buf.Kind != ir.KVCache {
				continue
			}
			n := 1
			for d, r := range o.Dims {
				if spec.Role(k) == op.Table && d == 0 {
					continue // one row of the table, whichever it is
				}
				n *= r.Bind(t).Len(b.pos)
			}
			total += buf.DType.Bytes(n)
		}
	}
	return total
}

// addTurned adds the bytes of slots to the SMs that a rotation gives them: ir.Dist runs slot (sm + rot) mod SMs on an
// SM.
func (b *balancer) addTurned(loads, slots []int, rot int) {
	rot %= len(slots)
	for i, n := range slots[rot:] {
		loads[i] += n
	}
	for i, n := range slots[:rot] {
		loads[len(slots)-rot+i] += n
	}
	b.work += len(slots)
}

// layered returns the bytes that slots stream in layers, each rotated by a step more than the one before it.
func (b *balancer) layered(slots, layers []int, step int) []int {
	sum := make([]int, len(slots))
	for _, layer := range layers {
		b.addTurned(sum, slots, step*layer)
	}
	return sum
}

// choose finds the turn of a stage that runs in the given layers, and adds it to the loads.
func (b *balancer) choose(st *ir.Stage, layers []int) turn {
	slots := b.slots(st, layers[0])
	uniform := !slices.ContainsFunc(slots, func(n int) bool { return n != slots[0] })
	var best turn
	if !uniform {
		best.step = b.search(func(loads []int, step int) {
			for _, layer := range layers {
				b.addTurned(loads, slots, step*layer)
			}
		})
	}
	all := b.layered(slots, layers, best.step)
	if !uniform {
		best.rot = b.search(func(loads []int, rot int) { b.addTurned(loads, all, rot) })
	}
	b.addTurned(b.loads, all, best.rot)
	return best
}

// maxTurns is how many turns a search tries at most: all there are on any GPU of today, and as many evenly spaced ones
// where there are more SMs. It keeps the work linear in the number of SMs.
const maxTurns = 256

// search tries turns by up to the number of SMs and returns the one with the most even loads, the first of equals.
// try adds what the turn gives to the loads.
func (b *balancer) search(try func(loads []int, n int)) int {
	sms := len(b.loads)
	turns := min(sms, maxTurns)
	best, bestMax, bestSquares := 0, -1, 0
	trial := make([]int, sms)
	for k := range turns {
		n := k * sms / turns
		copy(trial, b.loads)
		try(trial, n)
		// Squares of what is above the least load, which keeps them small enough to be exact.
		most, least, squares := slices.Max(trial), slices.Min(trial), 0
		for _, load := range trial {
			squares += (load - least) * (load - least)
		}
		if bestMax < 0 || most < bestMax || most == bestMax && squares < bestSquares {
			best, bestMax, bestSquares = n, most, squares
		}
	}
	b.work += 2 * turns * sms
	return best
}
