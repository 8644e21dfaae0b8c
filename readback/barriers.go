package readback

import (
	"amkc/ir"
	"amkc/kernel"
)

// barriersPerStep is a constant of kernels in which every layer ends at a barrier of all SMs.
const barriersPerStep = "kBarriersPerStep"

const joinCounter = "L{i}.join"

// barrier is arrive and join of barrier.cuh, which have no constants of their own: those of the layer of a stage, and
// of every layer if it stands in the loop.
func (b *builder) barrier(d *descriptor) []*ir.Stage {
	counter := b.outside(d, joinCounter)
	half := func(body *kernel.Body, name string) *ir.Stage {
		f, s := &b.facts.Facts, &kernel.Named
		return &ir.Stage{Name: name, Dist: body.Dist(f, s), Ops: body.Ops(f, s)}
	}
	arrive, join := half(kernel.Arrive, b.outside(d, "L{i}.arrive")), half(kernel.Join, counter)
	arrive.Signal, join.Waits = counter, []ir.Wait{{Counter: counter, Threshold: b.facts.SMs}}
	return []*ir.Stage{arrive, join}
}

// endsLayer reports whether a stage of a variant is the last one of its layer.
func (l *variantList) endsLayer(i int) bool {
	d := l.stages[i]
	if !d.inLayer() {
		return false
	}
	return i+1 == len(l.stages) || !l.stages[i+1].inLayer() || l.stages[i+1].layer != d.layer
}

// joinCounters are those of the barriers.
func (b *builder) joinCounters() []ir.Counter {
	if !b.barriers {
		return nil
	}
	family := ir.Counter{Name: joinCounter, Count: b.facts.layers, How: ir.ByCounter}
	if !b.unrolled {
		return []ir.Counter{family}
	}
	var out []ir.Counter
	for layer := range b.facts.layers {
		name, _ := ir.Resolve(joinCounter, layer)
		out = append(out, ir.Counter{Name: name, How: ir.ByCounter})
	}
	return out
}
