package loops

import (
	"cmp"
	"slices"

	"amkc/ir"
	"amkc/passes/rewrite"
)

// inPlace finds chains of buffers that can be one buffer, updated in place: every link is a pointwise op that is the
// only reader of one and the only writer of the next, on exactly the elements it reads, each in one task, which the
// SM that runs it wrote itself. It returns for each buffer of such a chain the name that all of them get: that of its
// role, unless a name in taken or another chain has it. A link must be one in every variant.
func inPlace(p *ir.Program, variants [][]*ir.Stage, taken map[string]bool) map[string]string {
	found := make([]map[string]string, len(variants))
	used := make([]map[string]bool, len(variants))
	buffers := rewrite.NewBuffers(p)
	for i, stages := range variants {
		a := newAccesses(stages)
		found[i], used[i] = a.links(buffers), a.used()
	}
	next, linked := map[string]string{}, map[string]bool{}
	for i := range found {
		for from, to := range found[i] {
			everywhere := true
			for k := range found {
				everywhere = everywhere && (found[k][from] == to || !used[k][from] && !used[k][to])
			}
			if everywhere {
				next[from], linked[to] = to, true
			}
		}
	}
	names, given := map[string]string{}, map[string]bool{}
	for i := range p.Buffers {
		head := p.Buffers[i].Name
		if next[head] == "" || linked[head] {
			continue
		}
		name := head
		if _, role := splitName(head); !taken[role] && !given[role] {
			name = role
		}
		given[name] = true
		for b := head; b != ""; b = next[b] {
			names[b] = name
		}
	}
	return names
}

// An access is an operand of an op of a flat variant.
type access struct {
	stage, op int
	st        *ir.Stage
	view      ir.Operand
}

func (a *access) before(b *access) bool {
	return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(a.op, b.op)) < 0
}

// accesses are those of every buffer of a flat variant, in order.
type accesses struct {
	stages        []*ir.Stage
	reads, writes map[string][]access
}

func newAccesses(stages []*ir.Stage) *accesses {
	a := &accesses{stages, map[string][]access{}, map[string][]access{}}
	for s, st := range stages {
		for o := range st.Ops {
			for _, in := range st.Ops[o].In {
				if !in.IsTemp() {
					a.reads[in.Buf] = append(a.reads[in.Buf], access{s, o, st, in})
				}
			}
			for _, out := range st.Ops[o].Out {
				if !out.IsTemp() {
					a.writes[out.Buf] = append(a.writes[out.Buf], access{s, o, st, out})
				}
			}
		}
	}
	return a
}

func (a *accesses) used() map[string]bool {
	used := map[string]bool{}
	for name := range a.reads {
		used[name] = true
	}
	for name := range a.writes {
		used[name] = true
	}
	return used
}

// links returns which buffer can take the place of which.
func (a *accesses) links(buffers rewrite.Buffers) map[string]string {
	links := map[string]string{}
	for s, st := range a.stages {
		for o := range st.Ops {
			op := &st.Ops[o]
			if !ir.Ops[op.Code].Pointwise {
				continue
			}
			if from, to := a.link(buffers, s, o); from != "" {
				links[from] = to
			}
		}
	}
	return links
}

// link returns an operand and a result of the op that can be one buffer, or nothing.
func (a *accesses) link(buffers rewrite.Buffers, s, o int) (from, to string) {
	st := a.stages[s]
	op := &st.Ops[o]
	for _, in := range op.In {
		for _, out := range op.Out {
			if in.IsTemp() || out.IsTemp() || in.Buf == out.Buf || !equalDims(in.Dims, out.Dims) ||
				!interchangeable(buffers.Find(in.Buf, 0), buffers.Find(out.Buf, 0)) {
				continue
			}
			here := access{stage: s, op: o, st: st}
			only := len(a.reads[in.Buf]) == 1 && len(a.writes[in.Buf]) == 1 && len(a.writes[out.Buf]) == 1
			if only && a.writes[in.Buf][0].hands(&here, in) && oneTaskEach(st, &in) &&
				!slices.ContainsFunc(a.reads[out.Buf], func(r access) bool { return !here.before(&r) }) {
				return in.Buf, out.Buf
			}
		}
	}
	return "", ""
}

// hands reports whether each task of a writes the view that the same SM's task of b reads, earlier.
func (a *access) hands(b *access, view ir.Operand) bool {
	return a.before(b) && equalDims(a.view.Dims, view.Dims) && sameSpans(&a.st.Dist, &b.st.Dist)
}

// oneTaskEach reports whether no two tasks of a stage touch the same element through an operand. What a second one
// finds in place is no longer what was there.
func oneTaskEach(st *ir.Stage, o *ir.Operand) bool {
	apart := func(r ir.Range) bool {
		return r.Lo.Equal(ir.Symbol(ir.SpanA)) && r.Hi.Equal(ir.Symbol(ir.SpanB)) && !r.Shared()
	}
	if st.Dist.Kind != ir.Explicit && slices.ContainsFunc(o.Dims, apart) {
		return true // spans of one axis
	}
	tasks := st.Dist.Tasks(0)
	boxes := make([]box, len(tasks))
	for i, t := range tasks {
		fixed := false
		if boxes[i], fixed = boxOf(o, t); !fixed || len(tasks) > mostBoxes ||
			slices.ContainsFunc(boxes[:i], boxes[i].overlaps) {
			return len(tasks) == 1
		}
	}
	return true
}

// sameSpans reports whether two distributions give the same spans to the same SMs.
func sameSpans(a, b *ir.Dist) bool {
	if a.Kind == ir.Whole || a.Kind == ir.Tiled {
		return false // to no SM
	}
	if a.Kind == b.Kind && a.Extent == b.Extent && a.Grain == b.Grain && a.SMs == b.SMs && a.Rot == b.Rot &&
		a.Empty == b.Empty && a.Kind != ir.Explicit {
		return true
	}
	tasks := a.Tasks(0)
	return slices.Equal(tasks, b.Tasks(0)) && !slices.ContainsFunc(tasks, func(t ir.TaskSpan) bool { return t.SM < 0 })
}

// interchangeable reports whether two buffers are alike activations that nothing has placed yet. Words that carry their
// epoch are written once per step, so that they never are.
func interchangeable(a, b *ir.Buffer) bool {
	return a != nil && b != nil && a.Kind == ir.Activation && !a.Layout.Words() && len(a.Pages)+len(b.Pages) == 0 &&
		alike(a, b)
}

// alike reports whether two buffers differ in their names and in where their rows come from alone.
func alike(a, b *ir.Buffer) bool {
	return a.Kind == b.Kind && a.DType == b.DType && a.Space == b.Space && a.Layout == b.Layout &&
		slices.Equal(a.Shape, b.Shape) && slices.Equal(a.Pages, b.Pages)
}

func equalDims(a, b []ir.Range) bool {
	return slices.EqualFunc(a, b, func(x, y ir.Range) bool {
		return x.Lo.Equal(y.Lo) && x.Hi.Equal(y.Hi) && x.Block == y.Block && x.Parts == y.Parts && x.Part.Equal(y.Part)
	})
}
