package passes

import (
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
)

// Barrier is the pass that, with tiling.loop.barrier, ends every layer at a barrier of all SMs, as a kernel launched
// once per layer would: each SM arrives when it is done with the layer, and continues when all have arrived. A loop
// over layers within one kernel does not need this order; the knob measures the gain.
var Barrier = Pass{
	Name:  "barrier",
	Doc:   "end every layer at a barrier of all SMs, if tiling.loop.barrier asks for it",
	After: []string{"assign"},
	Run:   runBarrier,
}

func runBarrier(s *State) error {
	p := s.Program
	if !knobs.LayerBarrier.Of(&p.Config) {
		return nil
	}
	if p.Target == nil {
		return diag.Errorf(codeTarget, "pass barrier", "want a target")
	}
	for i := range p.Variants {
		v := &p.Variants[i]
		err := eachBody(v, func(stages []*ir.Stage, loop *ir.Loop) ([]*ir.Stage, error) {
			if loop == nil {
				return stages, nil
			}
			at := slices.IndexFunc(v.Counters, func(c ir.Counter) bool { return c.Role == ir.RoleStep })
			arrive, join := barrierOf(p.Target.SMs)
			v.Counters = slices.Insert(v.Counters, max(0, at), ir.Counter{Name: arrive.Signal, First: loop.First,
				Count: loop.Count, Step: loop.Step})
			return append(stages, arrive, join), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// barrierOf returns the two stages of a layer's barrier, one task per SM each.
func barrierOf(sms int) (arrive, join *ir.Stage) {
	everySM := ir.Dist{Kind: ir.Spread, Extent: sms, Grain: 1, SMs: sms}
	nothing := func() []ir.Op { return []ir.Op{{Code: ir.NOP}} }
	const arriveRole = "arrive"
	counter := ir.NameIn(thisLayer, joinRole)
	arrive = &ir.Stage{Name: ir.NameIn(thisLayer, arriveRole), Role: arriveRole, Layer: thisLayer, Dist: everySM,
		Ops: nothing(), Signal: counter}
	join = &ir.Stage{Name: ir.NameIn(thisLayer, joinRole), Role: joinRole, Layer: thisLayer, Dist: everySM,
		Ops:   nothing(),
		Waits: []ir.Wait{{Counter: counter, Threshold: sms}}}
	return arrive, join
}
