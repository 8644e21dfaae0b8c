package codegen

import (
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/host"
)

// A step ends in four stages, which the kernel has as calls of ending.cuh in this order: every SM samples the next
// token and finds whether the run stops with it, the first SM emits the token, and every SM joins. Two calls follow
// that are the same in every kernel and belong to no stage: one stores the token for a host that polls, one ends the
// launch.
var endings = []body{bodySample, bodyStop, bodyEmit, bodyJoinStep}

// afterStep closes the walk of the consumers.
var afterStep = []string{"tell_host(c);", "if (stopped(c)) break;"}

// endsStep reports whether stages with the body are among those that end a step.
func (b body) endsStep() bool {
	return b == bodySample || b == bodyStop || b == bodyEmit || b == bodyJoinStep
}

// end looks at a stage that ends the step, or comes after one that does.
func (h *handovers) end(s *ir.Stage, kind body, at site, index int) error {
	if h.ended == len(endings) || kind != endings[h.ended] || at.loop != nil {
		return diag.Errorf(codeStructure, "stage "+s.Name, "is no stage that the kernel can end a step with here: "+
			"want %v in this order, in no loop, each once, and nothing behind them", endings)
	}
	if h.due != nil {
		return diag.Errorf(codeStructure, "stage "+s.Name, "ends the step before a stage reads the residual that "+
			"stage %s adds to: want one, for the kernel adds where it reads", h.due.Name)
	}
	if kind != bodyJoinStep && s.Signal != "" {
		return diag.Errorf(codeStructure, "stage "+s.Name, "signals %s, and the kernel's %s nothing: want that",
			s.Signal, kind)
	}
	h.ended++
	if kind == bodySample {
		return h.wait(s, kind, index)
	}
	if len(s.Waits) > 0 {
		return diag.Errorf(codeStructure, "stage "+s.Name,
			"waits for %s, and the kernel goes on with what its own SM has left: want no wait", s.Waits[0].Counter)
	}
	return nil
}

// counterName is a counter in a sentence.
func counterName(name string) string {
	if name == "" {
		return "nothing"
	}
	return name
}

// endingOps are what the functions of ending.cuh compute: sample and stop on every SM, emit on the first one.
func (b *builder) endingOps(s *ir.Stage, kind body) []ir.Op {
	sms := b.p.Target.SMs
	switch kind {
	case bodySample:
		a := op(s, ir.SAMPLE)
		return []ir.Op{{Code: ir.SAMPLE, Out: []ir.Operand{view(buf(a.Out, 0), taskRows)},
			In:     []ir.Operand{view(buf(a.In, 0), upTo(sms)), view(buf(a.In, 1), upTo(sms)), b.settings()},
			Params: []ir.Param{ir.IntParam("pos", position)}}}
	case bodyStop:
		o := op(s, ir.STOP)
		return []ir.Op{{Code: ir.STOP, Out: []ir.Operand{view(buf(o.Out, 0), taskRows)},
			In: []ir.Operand{view(b.token, taskRows), view(b.named(ir.RoleStopIDs), upTo(host.MaxStops)),
				view(b.named(ir.RoleStopLast), firstOnly)}}}
	case bodyEmit:
		return []ir.Op{{Code: ir.COPY, Out: []ir.Operand{view(b.named(ir.RoleNext), firstOnly)},
			In: []ir.Operand{view(b.token, firstOnly)}}}
	}
	return nil
}

// settings are those by which the kernel chooses: Launch::sampling.
func (b *builder) settings() ir.Operand {
	return view(b.named(ir.RoleSampling), upTo(ir.SamplingWords))
}

// named is the name of the buffer of a role; where there is none, the role.
func (b *builder) named(role string) string {
	for i := range b.p.Buffers {
		if b.p.Buffers[i].Role == role {
			return b.p.Buffers[i].Name
		}
	}
	return role
}

// checkEnding holds a stage that ends the step to the SMs that it is for, and its token to the one that was sampled.
func (b *builder) checkEnding(s *ir.Stage, kind body) error {
	if kind == bodySample {
		b.token = operand(op(s, ir.SAMPLE).Out, 0).Buf
	}
	if kind != bodyEmit {
		return b.onEverySM(s)
	}
	if d := &s.Dist; d.Kind != ir.Explicit || len(d.Spans) != 1 || d.Spans[0] != (ir.TaskSpan{SM: 0, A: 0, B: 1}) {
		return diag.Errorf(codeDist, "stage "+s.Name, "runs elsewhere than on SM 0, which emits the token: want the "+
			"one task sm=0 a=0 b=1")
	}
	return nil
}
