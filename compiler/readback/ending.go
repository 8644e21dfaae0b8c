package readback

import "amkc/ir"

// ending is what step.cuh does where a step ends: sample, stop and join_step on every SM, and emit on the first one.
// It has no constants of its own; the calls are held to it by endingCalls. best announces the best logits.
func (b *builder) ending(best ir.Wait) []ir.Node {
	sms, onEverySM := b.facts.sms, b.onEverySM()
	onFirst := ir.Dist{Kind: ir.Explicit, Spans: []ir.TaskSpan{{SM: 0, A: 0, B: 1}}}
	return []ir.Node{
		&ir.Stage{Name: "sample", Dist: onEverySM, Waits: []ir.Wait{best}, Ops: []ir.Op{op(ir.SAMPLE,
			views(view(nextOnSM, task)), views(view(bestValue, upTo(sms)), view(bestIndex, upTo(sms)), settings),
			ir.IntParam("pos", position))}},
		&ir.Stage{Name: "stop", Dist: onEverySM, Ops: []ir.Op{op(ir.STOP, views(view(stopOnSM, task)),
			views(view(nextOnSM, task), view(stopTokens, upTo(ir.MaxStopIDs)), view(stopLast, first)))}},
		&ir.Stage{Name: "emit", Dist: onFirst,
			Ops: []ir.Op{op(ir.COPY, views(view(nextToken, first)), views(view(nextOnSM, first)))}},
		&ir.Stage{Name: "join", Dist: onEverySM, Ops: []ir.Op{op(ir.NOP, nil, nil)}, Signal: stepCounter},
	}
}

// onEverySM is the distribution of a stage with one task on each SM.
func (b *builder) onEverySM() ir.Dist {
	return ir.Dist{Kind: ir.Spread, Extent: b.facts.sms, Grain: 1, SMs: b.facts.sms}
}

// endingCalls are the calls that do that, behind the one that leaves the best logit of the SM. tell_host hands on what
// emit has written, and stopped ends the launch where stop has found so.
func (d *descriptor) endingCalls() []kernelCall {
	values := []place{{name: "kBestValue"}, {name: "kBestIndex"}}
	calls := []kernelCall{{what: "publish_best", of: d.scope.name, args: append([]place{{name: "best"}}, values...)},
		{what: "sample", args: values}, {what: "stop"}, {what: "emit"}, {what: "join_step"}, {what: "tell_host"},
		{what: "stopped"}}
	for i := range calls {
		calls[i].layer = -1
	}
	return calls
}

// settings are those by which tokens are chosen: Launch::sampling.
var settings = view(sampling, upTo(ir.SamplingWords))

// endingBuffers are those that it alone uses.
func (b *builder) endingBuffers() []ir.Buffer {
	number := func(name string, kind ir.BufferKind, space ir.Space, n int) ir.Buffer {
		return ir.Buffer{Name: name, Kind: kind, DType: ir.I32, Shape: []int{n}, Space: space}
	}
	return []ir.Buffer{
		number(nextToken, ir.Output, ir.HBM, 1),
		number(stopTokens, ir.Input, ir.HBM, ir.MaxStopIDs),
		number(stopLast, ir.Input, ir.HBM, 1),
		number(sampling, ir.Input, ir.HBM, ir.SamplingWords),
		number(nextOnSM, ir.Activation, ir.SMEM, b.facts.sms),
		number(stopOnSM, ir.Activation, ir.SMEM, b.facts.sms),
	}
}
