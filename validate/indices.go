package validate

import (
	"cmp"
	"fmt"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
)

// EMBED takes rows of its table, and SELECTED_TILE matrices of a family, by numbers that are only known when the step
// runs. checkIndices proves that they are there: it walks the tasks in a legal order and keeps, for every I32 buffer
// and temporary, how far the indices in it can reach.
//
//   - TOPK of n values yields 0 to n-1, whatever the values are.
//   - SAMPLE and SAMPLE_ARGMAX over n values yield 0 to n-1; with partial=1 and first=f they yield f to f+n-1, or no
//     index, which they do where there is no value, or none that can be chosen; with indices as the second operand
//     they yield one of those, or 0 if none of them is an index.
//   - COPY hands on what it copies, and STOP yields 0 or 1.
//   - An input is the host's. The host gives it rows of the tables that it selects from, or the number after them
//     where EMBED has a third operand; that is assumed, and refvm and the launcher see to it. The token is the host's
//     in the first step only: what the step leaves in next is a row of every table that the token of some variant
//     selects from (checkTokens).
//   - Nothing bounds what weights, constants and caches hold. It is refused as an index. (No other op has results of
//     type I32: shapes.go.)
//
// A buffer counts as a whole. Memory has been proved before: a read sees a write that comes earlier in every legal
// order.

// reach says how far the indices in a buffer or temporary can reach.
type reach struct {
	hi       int    // the largest of them; -1: there is none
	by       int32  // the task that chooses it
	first, n int    // among n values, counted from first
	none     bool   // it may be no index
	token    bool   // it may be the token of the step
	input    string // another input that it may come from; "": none
	loose    string // what it comes from that bounds nothing; "": nothing of the kind
}

var noReach = reach{hi: -1}

// join adds what else a buffer may hold.
func (r *reach) join(o *reach) {
	if o.hi > r.hi {
		r.hi, r.by, r.first, r.n = o.hi, o.by, o.first, o.n
	}
	r.none, r.token = r.none || o.none, r.token || o.token
	if r.input == "" {
		r.input = o.input
	}
	if r.loose == "" {
		r.loose = o.loose
	}
}

// choice is how many values an op chooses among.
type choice struct {
	task, op int32
	n        int
}

// indices is what checkIndices works on, and what it leaves to checkTokens.
type indices struct {
	carry   []bool   // tasks with an op that makes, moves or uses an index
	choices []choice // of their SAMPLE and SAMPLE_ARGMAX, in order
	buffers map[int]*reach
	temps   map[string]*reach // of the current task

	rows  int         // the token is a row of n; -1: of nothing
	table *ir.Operand // which table that is
	who   int32       // the task that selects from it
	next  reach       // what the step leaves to the next one
}

// noteIndices notes what checkIndices will ask about an op, while its views are known.
func (p *Proof) noteIndices(t int32, k int, op *ir.FlatOp, in, out []view) {
	switch op.Code {
	case ir.EMBED, ir.SELECTED, ir.TOPK, ir.ArgMax, ir.SAMPLE, ir.STOP:
	case ir.COPY:
		counts := func(v view) bool { return v.buf >= 0 && v.dtype == ir.I32 }
		if !slices.ContainsFunc(in, counts) && !slices.ContainsFunc(out, counts) {
			return
		}
	default:
		return
	}
	if len(p.index.carry) == 0 {
		p.index.carry = sized(p.index.carry, len(p.flat.Tasks))
	}
	p.index.carry[t] = true
	if op.Code.Chooses() || op.Code == ir.TOPK {
		n := in[0].last
		if in[0].n() == 0 {
			n = 0
		}
		p.index.choices = append(p.index.choices, choice{t, int32(k), n})
	}
}

// checkIndices: what selects a row of a table is one of its rows.
func (p *Proof) checkIndices() {
	x := &p.index
	x.rows, x.next = -1, noReach
	if len(x.carry) == 0 {
		return
	}
	if x.buffers == nil {
		x.buffers, x.temps = map[int]*reach{}, map[string]*reach{}
	}
	clear(x.buffers)
	for _, t := range p.schedule.order {
		if root := p.Root(int(t)); x.carry[root] {
			p.indexTask(t, int32(root))
		}
		if p.Full() {
			return
		}
	}
	for b, r := range x.buffers {
		if buf := &p.flat.Buffers[b]; buf.HasRole(ir.RoleNext) {
			x.next = *r
		}
	}
}

// indexTask walks the ops of a task. root is the task whose body stands for its own.
func (p *Proof) indexTask(t, root int32) {
	x := &p.index
	clear(x.temps)
	ops := p.flat.Tasks[t].Ops
	for k := range ops {
		op := &ops[k]
		out := noReach
		switch {
		case op.Code == ir.EMBED:
			p.checkSelected(t, op, 0, 1)
		case op.Code == ir.SELECTED:
			p.checkSelected(t, op, 2, 1)
		case op.Code == ir.TOPK:
			n := x.among(root, int32(k))
			out = reach{hi: n - 1, by: t, n: n}
		case op.Code.Chooses():
			out = p.chosen(t, root, k, op)
		case op.Code == ir.COPY:
			out = p.reachOf(&op.In[0], op.InBuf[0])
		case op.Code == ir.STOP:
			out = reach{hi: 1, by: t, n: 2}
		}
		for i, b := range op.OutBuf {
			if b < 0 {
				r := out
				x.temps[op.Out[i].Buf] = &r
			} else if p.flat.Buffers[b].DType == ir.I32 {
				if x.buffers[b] == nil {
					r := noReach
					x.buffers[b] = &r
				}
				x.buffers[b].join(&out)
			}
		}
	}
}

// reachOf returns how far what an operand holds can reach.
func (p *Proof) reachOf(o *ir.Operand, b int) reach {
	out := noReach
	if b < 0 {
		if r := p.index.temps[o.Buf]; r != nil {
			return *r
		}
		return out
	}
	buf := &p.flat.Buffers[b]
	switch {
	case buf.HasRole(ir.RoleToken):
		out.token = true
	case buf.Kind == ir.Input:
		out.input = buf.Name
	case buf.Kind != ir.Activation && buf.Kind != ir.Output:
		out.loose = fmt.Sprintf("%s, a %s", buf.Name, buf.Kind)
	case p.index.buffers[b] != nil:
		out = *p.index.buffers[b]
	}
	return out
}

// chosen returns what a SAMPLE or a SAMPLE_ARGMAX can yield, and refuses one that has nothing to choose from.
func (p *Proof) chosen(t, root int32, k int, op *ir.FlatOp) reach {
	among := p.index.among(root, int32(k))
	if op.IntAt("partial", p.flat.Lo, 0) != 0 {
		first := op.IntAt("first", p.flat.Lo, 0)
		if among == 0 {
			return reach{hi: -1, none: true}
		}
		return reach{hi: first + among - 1, by: t, first: first, n: among, none: true}
	}
	if len(op.In) == 1 || op.Code == ir.SAMPLE && len(op.In) == 2 {
		return reach{hi: among - 1, by: t, n: among}
	}
	out := p.reachOf(&op.In[1], op.InBuf[1])
	if out == (reach{hi: -1, none: true}) {
		p.Errorf(CodeIndex, p.Task(t), "%s chooses among the indices in %s, and none of them is one: they come "+
			"from empty views", op.Code, op.In[1]).
			Suggest("give a %s that writes them a view that is not empty", op.Code)
	}
	out.none = false
	return out
}

// among returns how many values an op of a task chooses among.
func (x *indices) among(task, op int32) int {
	i, ok := slices.BinarySearchFunc(x.choices, choice{task: task, op: op}, func(a, b choice) int {
		if a.task != b.task {
			return int(a.task - b.task)
		}
		return int(a.op - b.op)
	})
	if !ok {
		return 0
	}
	return x.choices[i].n
}

// checkSelected: the indices in input `ids` are rows of input `of`, a table or a family of matrices.
func (p *Proof) checkSelected(t int32, op *ir.FlatOp, ids, of int) {
	if op.InBuf[of] < 0 {
		return // refused by checkShapes
	}
	r, which, table := p.reachOf(&op.In[ids], op.InBuf[ids]), op.In[ids], op.In[of]
	rows := table.Dims[0].Len(p.flat.Lo)
	switch {
	case r.loose != "":
		p.Errorf(CodeIndex, p.Task(t), "takes %s for a row of %s, and nothing bounds it: it is %s", which, table,
			r.loose).
			Suggest("take it from SAMPLE, from an input, or from a COPY of one")
	case r.none:
		p.Errorf(CodeIndex, p.Task(t), "takes %s for a row of %s, and it may be no index: %s with partial=1 has "+
			"none where no value is a number", which, table, ir.ArgMax).
			Suggest("choose among the partial results with a %s of values and indices", ir.SAMPLE)
	case r.hi >= rows:
		p.Errorf(CodeIndex, p.Task(t), "takes %s for a row of %s, which has %d rows, and it can be %d: %s chooses "+
			"among %d values from %d on", which, table, rows, r.hi, p.Who(r.by), r.n, r.first).
			Suggest("give the table %d rows, or choose among fewer", r.hi+1)
	}
	if x := &p.index; r.token && (x.rows < 0 || rows < x.rows) {
		x.rows, x.table, x.who = rows, &op.In[of], t
	}
}

// checkTokens: what a step leaves in next is a row of every table that the next step selects from by its token, in
// whichever variant that is; and where a step hands its token on, of those of the steps after that. A program of the
// AMK profile is one step, and its token is the host's.
func checkTokens(proofs []*Proof) diag.List {
	var diags diag.List
	byLo := slices.SortedFunc(slices.Values(proofs), func(a, b *Proof) int { return cmp.Compare(a.flat.Lo, b.flat.Lo) })
	// by variant: the proof with the smallest table of those that the variant's token, or a copy of it, selects from
	own := make([]*Proof, len(byLo))
	for i := len(byLo) - 1; i >= 0; i-- {
		p := byLo[i]
		var after *Proof // the same over all later variants that the next step may run in
		for k := i + 1; k < len(byLo) && byLo[k].flat.Lo <= p.flat.Hi+p.flat.Pass.NumRows(); k++ {
			after = fewest(own[k], after)
		}
		own[i] = fewest(p, nil)
		if p.index.next.token {
			own[i] = fewest(p, after)
		}
		least := after
		if p.flat.Lo < p.flat.Hi {
			least = fewest(own[i], after)
		}
		if d := p.checkNext(least); d != nil {
			locate(d)
			if len(proofs) > 1 {
				name(diag.List{d}, p.flat.Name)
			}
			diags.Add(d)
		}
	}
	slices.Reverse(diags)
	return diags
}

// fewest returns the proof of the two whose token selects from the table with fewer rows; nil if neither selects
// anything.
func fewest(a, b *Proof) *Proof {
	if a == nil || a.index.rows < 0 {
		a = nil
	}
	if a == nil || b != nil && b.index.rows >= 0 && b.index.rows < a.index.rows {
		return b
	}
	return a
}

// checkNext: what a step leaves to the next one is a row of its table.
func (p *Proof) checkNext(least *Proof) *diag.Diagnostic {
	if least == nil {
		return nil
	}
	rows, r := least.index.rows, &p.index.next
	where := "output of role " + ir.RoleNext
	for i := range p.flat.Buffers {
		if b := &p.flat.Buffers[i]; b.HasRole(ir.RoleNext) {
			where = "buffer " + b.Name
		}
	}
	takes := fmt.Sprintf("%s of the next step takes it for a row of %s", least.flat.Tasks[least.index.who].Name,
		*least.index.table)
	switch {
	case r.loose != "" || r.input != "":
		return diag.Errorf(CodeIndex, where, "%s, and nothing bounds it: it is %s", takes,
			r.loose+r.input).
			Suggest("let %s choose it, or copy the token", ir.SAMPLE)
	case r.none:
		return diag.Errorf(CodeIndex, where,
			"%s, and it may be no index: %s with partial=1 has none where no value is a number", takes, ir.ArgMax).
			Suggest("choose among the partial results with a %s of values and indices", ir.SAMPLE)
	case r.hi >= rows:
		return diag.Errorf(CodeIndex, where,
			"can be %d, and %s, which has %d: %s chooses among %d values from %d on", r.hi, takes, rows, p.Who(r.by),
			r.n, r.first).
			Suggest("give the table %d rows, or choose among fewer", r.hi+1)
	}
	return nil
}
