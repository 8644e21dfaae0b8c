package readback

import (
	"amkc/ir"
	"amkc/kernel"
)

// ending is what step.cuh does where a step ends: sample, stop and join_step on every SM, and emit on the first one.
// It has no constants of its own; endingCalls compares the calls with it. best announces the best logits.
func (b *builder) ending(best ir.Wait) []ir.Node {
	var out []ir.Node
	for i, body := range kernel.Endings {
		s := &ir.Stage{Name: []string{"sample", "stop", "emit", "join"}[i],
			Dist: body.Dist(&b.facts.Facts, &kernel.Named), Ops: body.Ops(&b.facts.Facts, &kernel.Named)}
		switch body {
		case kernel.Sample:
			s.Waits = []ir.Wait{best}
		case kernel.JoinStep:
			s.Signal = stepCounter
		}
		out = append(out, s)
	}
	return out
}

// endingCalls are the calls that do that, behind the one that leaves the best logit of the SM. tell_host hands on what
// emit has written, and stopped ends the launch where stop has found so.
func (d *descriptor) endingCalls() []kernelCall {
	best := kernelCall{what: "publish_best", of: d.scope.name, args: []place{{name: "best"}}}
	calls := []kernelCall{best}
	for _, body := range kernel.Endings {
		c := kernelCall{what: body.Name}
		for _, a := range body.Args {
			c.args = append(c.args, place{name: constantOf(*a.At(&d.Stage))})
		}
		calls[0].args = append(calls[0].args, c.args...)
		calls = append(calls, c)
	}
	calls = append(calls, kernelCall{what: "tell_host"}, kernelCall{what: "stopped"})
	for i := range calls {
		calls[i].layer = -1
	}
	return calls
}

// endingBuffers are those that it alone uses.
func (b *builder) endingBuffers() []ir.Buffer {
	number := func(name string, kind ir.BufferKind, space ir.Space, n int) ir.Buffer {
		return ir.Buffer{Name: name, Kind: kind, DType: ir.I32, Shape: []int{n}, Space: space}
	}
	return []ir.Buffer{
		number(b.facts.Next, ir.Output, ir.HBM, 1),
		number(b.facts.StopIDs, ir.Input, ir.HBM, ir.MaxStopIDs),
		number(b.facts.StopLast, ir.Input, ir.HBM, 1),
		number(b.facts.Sampling, ir.Input, ir.HBM, ir.SamplingWords),
		number(kernel.Named.NextOnSM, ir.Activation, ir.SMEM, b.facts.SMs),
		number(kernel.Named.StopSM, ir.Activation, ir.SMEM, b.facts.SMs),
	}
}
