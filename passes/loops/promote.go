package loops

import (
	"fmt"
	"slices"

	"amkc/ir"
	"amkc/passes/rewrite"
)

// promote moves chains on chip: what a call hands to the next one alone becomes a buffer in the shared memory of the
// SM that writes and reads it, on one page, or alternating between two where a call still reads its operand while it
// writes its result. What it needs is that no other SM touches the elements. Vectors of words are exchanged between
// SMs; they stay what they are, and pass pagecolor lays them onto pages.
func (r *roller) promote() {
	for i := range r.variants {
		g := &r.variants[i]
		for _, run := range g.runs {
			for _, in := range run.params {
				if in.usage.has(UsedIn | UsedLocal) {
					r.promoteChain(g, run, in)
				}
			}
		}
	}
	if len(r.promoted) == 0 {
		return
	}
	used := map[string]bool{}
	for i := range r.variants {
		g := &r.variants[i]
		lists := [][]*ir.Stage{g.stages}
		for _, run := range g.runs {
			lists = append(lists, run.before, run.after)
		}
		for _, stages := range lists {
			for _, pl := range places(stages) {
				used[pl.in(stages).Buf] = true
			}
		}
	}
	r.p.Buffers = slices.DeleteFunc(r.p.Buffers, func(b ir.Buffer) bool { return r.promoted[b.Name] && !used[b.Name] })
}

// A carrier is a chain that moves on chip.
type carrier struct {
	run     *run
	in, out *param
	reads   []timed
	writes  []timed
	values  []string       // the new buffers: that which the first call reads, and what each call writes
	ends    map[string]int // buffers that become the first or the last value as they are
}

// A timed view is what a task of the body touches, and when: SMs run the tasks of a stage in order, and a task its ops.
type timed struct {
	sm   int
	when [3]int // stage, task, op
	box  box
}

func (a timed) meets(b timed) bool { return a.box.overlaps(b.box) }

func (b box) overlaps(c box) bool {
	for d := range b {
		if max(b[d][0], c[d][0]) >= min(b[d][1], c[d][1]) {
			return false
		}
	}
	return true
}

// timedViews lists what the tasks touch at some places of the body. It reports false if a view depends on the
// position, a task has no SM, or the calls put it on different ones.
func (r *run) timedViews(pls []operandPlace) (out []timed, ok bool) {
	for _, pl := range pls {
		st := r.body()[pl.stage]
		for _, call := range r.calls {
			if !slices.Equal(st.Dist.Tasks(0), call[pl.stage].Dist.Tasks(0)) {
				return nil, false
			}
		}
		views, ok := timedView(&access{stage: pl.stage, op: pl.op, st: st, view: *pl.in(r.body())})
		if !ok {
			return nil, false
		}
		out = append(out, views...)
	}
	return out, true
}

// timedView lists what the tasks of a stage touch through one operand, under the same conditions.
func timedView(a *access) (out []timed, ok bool) {
	for n, t := range a.st.Dist.Tasks(0) {
		b, fixed := boxOf(&a.view, t)
		if !fixed || t.SM < 0 {
			return nil, false
		}
		out = append(out, timed{t.SM, [3]int{a.stage, n, a.op}, b})
	}
	return out, true
}

// promoteChain promotes the chain that a parameter reads, if it can be.
func (r *roller) promoteChain(g *rolling, run *run, in *param) {
	c := &carrier{run: run, in: in, out: in.partner, ends: map[string]int{}}
	if !c.apart() || !r.fits(c) {
		return
	}
	a := newAccesses(g.stages)
	enter, ok := r.enter(g, c, a)
	if !ok {
		return
	}
	leave, ok := r.leave(g, c, a)
	if !ok {
		return
	}
	c.name(r)
	rename(g.stages, func(name string) string {
		if k, ok := c.ends[name]; ok {
			return c.values[k]
		}
		return name
	})
	for k, call := range run.calls {
		for _, pl := range c.in.reads {
			pl.in(call).Buf = c.values[k]
		}
		for _, pl := range c.out.writes {
			pl.in(call).Buf = c.values[k+1]
		}
		if c.out.usage.has(UsedLive) {
			c.store(call, k)
		}
	}
	if enter != nil {
		r.copied[enter.Ops[0].In[0].Buf] = true
		enter.Name, enter.Ops[0].Out[0].Buf = c.values[0]+".load", c.values[0]
		run.before = append(run.before, enter)
	}
	if leave != nil {
		r.copied[leave.Ops[0].Out[0].Buf] = true
		leave.Name, leave.Ops[0].In[0].Buf = c.values[run.count]+".store", c.values[run.count]
		run.after = append(run.after, leave)
	}
	for _, name := range slices.Concat(c.in.args, c.out.args) {
		r.promoted[name] = true
	}
	r.place(c)
}

// carries reports whether a buffer can be a value of a chain on chip.
func (c *carrier) carries(b, first *ir.Buffer) bool {
	return b != nil && first != nil && b.Layout.Kind == ir.RowMajor && b.DType.Bits() >= 8 && b.DType == first.DType &&
		slices.Equal(b.Shape, first.Shape)
}

// apart reports whether the run touches the ends of the chain through it alone: what the first call reads nothing in
// the run writes, and what the last call writes nothing else reads or writes. Then it is all the same when they are
// copied.
func (c *carrier) apart() bool {
	first, last := c.in.args[0], c.out.args[len(c.out.args)-1]
	return !slices.ContainsFunc(c.run.params, func(p *param) bool {
		return len(p.writes) > 0 && slices.Contains(p.args, first) || p != c.out && slices.Contains(p.args, last)
	})
}

// fits reports whether the chain can be on chip: its buffers are not words, and all alike; every element is touched
// by one SM, and twice their size fits what the target has. A chain that is one buffer already, updated in place, has
// lost its names.
func (r *roller) fits(c *carrier) bool {
	buffers := rewrite.NewBuffers(r.p)
	first := buffers.Find(c.out.args[0], 0)
	for _, name := range c.out.args {
		if !c.carries(buffers.Find(name, 0), first) {
			return false
		}
	}
	if t := r.p.Target; t != nil && 2*first.Bytes() > t.SMemOptin {
		return false
	}
	var ok bool
	if c.reads, ok = c.run.timedViews(c.in.reads); !ok {
		return false
	}
	if c.writes, ok = c.run.timedViews(c.out.writes); !ok {
		return false
	}
	return len(c.reads)+len(c.writes) <= mostBoxes && c.owns(c.reads) && c.owns(c.writes)
}

// owns reports whether the elements that views touch are touched by no SM but theirs.
func (c *carrier) owns(views []timed) bool {
	for _, a := range views {
		foreign := func(b timed) bool { return a.sm != b.sm && a.meets(b) }
		if slices.ContainsFunc(c.reads, foreign) || slices.ContainsFunc(c.writes, foreign) {
			return false
		}
	}
	return true
}

// hazard reports whether a call may write an element of its result before it has read that element of its operand.
// Within one op reads and writes are in no order.
func (c *carrier) hazard() bool {
	for _, w := range c.writes {
		for _, rd := range c.reads {
			if w.sm == rd.sm && slices.Compare(w.when[:], rd.when[:]) <= 0 && w.meets(rd) {
				return true
			}
		}
	}
	return false
}

// name invents the names of the buffers on chip.
func (c *carrier) name(r *roller) {
	indices := make([]int, c.run.count+1)
	for k := range indices {
		indices[k] = k
	}
	family := fresh(stem(c.in.args[0])+".carry", nil, indices, r.taken)
	for k := range indices {
		c.values = append(c.values, resolved(family, k))
	}
}

// place declares the buffers of the chain and their pages.
func (r *roller) place(c *carrier) {
	b := *rewrite.NewBuffers(r.p).Find(c.out.args[0], 0)
	b.Kind, b.Space, b.Pieces, b.Pages = ir.Activation, ir.SMEM, nil, nil
	pages := 1
	if c.hazard() {
		pages = 2
	}
	for range pages {
		page := ir.Page{Name: fmt.Sprintf("carry%d", len(r.p.Pages)), Space: b.Space, Layout: b.Layout,
			Bytes: b.Bytes()}
		r.p.Pages = append(r.p.Pages, page)
		b.Pages = append(b.Pages, page.Name)
	}
	for _, name := range c.values {
		b.Name = name
		r.p.Buffers = append(r.p.Buffers, b)
	}
}

// store appends to the tasks of a call that write the chain copies into the buffers that it wrote before.
func (c *carrier) store(call []*ir.Stage, k int) {
	for _, pl := range c.out.writes {
		dims := pl.in(call).Dims
		st := call[pl.stage]
		st.Ops = append(st.Ops, ir.Op{Code: ir.COPY,
			Out: []ir.Operand{{Buf: c.out.args[k], Dims: slices.Clone(dims)}},
			In:  []ir.Operand{{Buf: c.values[k+1], Dims: slices.Clone(dims)}}})
	}
}
