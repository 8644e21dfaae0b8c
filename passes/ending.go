package passes

import (
	"amkc/ir"

	"amkc/passes/rewrite"
)

// A step ends in stages that know each other by their buffers alone: sample computes the next token from the logits,
// stop finds whether the run ends with it, and join says that the step has ended. Lower makes them, of one task each;
// assign gives each SM its own, so that every SM knows what comes next without asking.

// Names that are given to what ends a step.
const (
	next, stop         = "next", "stop"
	nextOnSM           = "next.sm"
	sampling           = "sampling"
	stopIDs, stopLast  = "stop.ids", "stop.last"
	sampleRole         = "sample"
	emitRole           = "emit"
	hiddenRole         = "hidden"
	stopRole, joinRole = "stop", "join"
)

// end lowers what no node of the graph says: what stops, and the join.
func (l *lowerer) end() {
	all := upTo(l.tokens.NumTokens())
	l.buffer(stopIDs, ir.Input, ir.I32, ir.HBM, ir.MaxStopIDs).Role = ir.RoleStopIDs
	l.buffer(stopLast, ir.Input, ir.I32, ir.HBM, 1).Role = ir.RoleStopLast
	l.buffer(stop, ir.Activation, ir.I32, ir.GlobalScratch, l.tokens.NumTokens())
	l.ending(stopRole, next, stop, ir.Op{Code: ir.STOP, Out: []ir.Operand{view(stop, all)},
		In: []ir.Operand{view(next, all), view(stopIDs, upTo(ir.MaxStopIDs)),
			view(stopLast, ir.Index(ir.Int(0)))}})
	l.ending(joinRole, stop, stepCounter, ir.Op{Code: ir.NOP})
	join := l.stages[len(l.stages)-1]
	join.Waits = append(join.Waits, ir.Wait{Counter: hidden})
}

// settings are what tokens are chosen by, of all sequences.
func (l *lowerer) settings() ir.Operand {
	shape := l.tokens.caches([]int{ir.SamplingWords})
	l.buffer(sampling, ir.Input, ir.I32, ir.HBM, shape...).Role = ir.RoleSampling
	dims := make([]ir.Range, len(shape))
	for i, n := range shape {
		dims[i] = upTo(n)
	}
	return view(sampling, dims...)
}

// ending appends a stage that no node of the graph stands for.
func (l *lowerer) ending(role, wait, signal string, op ir.Op) {
	l.stages = append(l.stages, &ir.Stage{Name: role, Role: role, Dist: whole(1), Ops: []ir.Op{op},
		Waits: []ir.Wait{{Counter: wait}}, Signal: signal})
}

// endOnEverySM makes the head leave one best value per SM, and every SM choose among them, find whether the run ends,
// and join. These stages read what their own SM has written, apart from the best values: so sample alone waits, and the
// join alone signals. The first SM writes the token out, and the last hidden state. Even an SM without rows of the head
// takes part.
func endOnEverySM(p *ir.Program, stages []*ir.Stage) []*ir.Stage {
	of, sms := tokensOf(p.Pass), p.Target.SMs
	everySM := upTo(p.NumRanks() * sms)
	var out []*ir.Stage
	var emitted []ir.Operand
	for _, st := range stages {
		out = append(out, st)
		last := lastOp(st)
		if st.Role == hiddenRole {
			st.Dist, st.Signal = onFirstSM(), ""
			continue
		}
		if st.Dist.Kind != ir.Whole {
			if findsBest(st) {
				st.Dist.Empty = true
				best := ir.Index(onSM)
				if p.NumRanks() > 1 {
					best = ir.Index(rank.Mul(sms).Add(onSM))
				}
				last.Out = []ir.Operand{of.view(last.Out[0].Buf, best), of.view(last.Out[1].Buf, best)}
			}
			continue
		}
		st.Dist = ir.Dist{Kind: ir.Spread, Extent: sms, Grain: 1, SMs: sms}
		switch last.Code {
		case ir.SAMPLE:
			emitted = last.Out
			last.Out, last.In = []ir.Operand{of.perSM(nextOnSM, task)},
				[]ir.Operand{of.view(last.In[0].Buf, everySM), of.view(last.In[1].Buf, everySM), last.In[2]}
			st.Signal = ""
		case ir.STOP:
			last.Out, last.In[0] = []ir.Operand{of.perSM(last.Out[0].Buf, task)}, of.perSM(nextOnSM, task)
			st.Waits, st.Signal = nil, ""
			out = append(out, &ir.Stage{Name: emitRole, Role: emitRole, Dist: onFirstSM(),
				Ops: []ir.Op{{Code: ir.COPY, Out: emitted,
					In: []ir.Operand{of.perSM(nextOnSM, ir.Index(ir.Int(0)))}}}})
		case ir.NOP:
			st.Waits = nil
		}
	}
	return out
}

// onFirstSM is one task, of what the host is to find once.
func onFirstSM() ir.Dist {
	return ir.Dist{Kind: ir.Explicit, Spans: []ir.TaskSpan{{SM: 0, A: 0, B: 1}}}
}

// placeEnding puts what an SM leaves to itself into its shared memory.
func placeEnding(p *ir.Program) {
	own := func(name string) ir.Buffer {
		return ir.Buffer{Name: name, Kind: ir.Activation, DType: ir.I32,
			Shape: tokensOf(p.Pass).shapePerSM(p.Target.SMs), Space: ir.SMEM}
	}
	buffers := rewrite.NewBuffers(p)
	for i := range p.Variants {
		rewrite.EachStage(&p.Variants[i], func(st *ir.Stage, _ *ir.Loop) {
			if last := lastOp(st); last.Code == ir.STOP {
				found := buffers.Find(last.Out[0].Buf, 0)
				*found = own(found.Name)
			}
		})
	}
	p.Buffers = append(p.Buffers, own(nextOnSM))
}

// isWhole reports whether a stage is one task for one element.
func isWhole(st *ir.Stage) bool { return st.Dist.Kind == ir.Whole && st.Dist.Extent == 1 }
