package readback

import "amkc/ir"

// barriersPerStep is a constant of kernels in which every layer ends at a barrier of all SMs.
const barriersPerStep = "kBarriersPerStep"

const joinCounter = "L{i}.join"

// barrier is arrive and join of barrier.cuh, which have no constants of their own: those of the layer of a stage, and
// of every layer if it stands in the loop.
func (b *builder) barrier(d *descriptor) []*ir.Stage {
	sms := b.facts.sms
	everySM := ir.Dist{Kind: ir.Spread, Extent: sms, Grain: 1, SMs: sms}
	counter := b.outside(d, joinCounter)
	return []*ir.Stage{
		{Name: b.outside(d, "L{i}.arrive"), Dist: everySM, Ops: []ir.Op{op(ir.NOP, nil, nil)}, Signal: counter},
		{Name: counter, Dist: everySM, Waits: []ir.Wait{{Counter: counter, Threshold: sms}},
			Ops: []ir.Op{op(ir.NOP, nil, nil)}},
	}
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
