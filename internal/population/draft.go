package population

import (
	"math/rand/v2"
	"slices"
	"strings"

	"amkc/ir"
)

// A draft is a case that an operator is changing: an unrolled program, or one variant of a native one. Lists are
// copied at the start; ops, which are most of a program and which tasks share, when they are about to change. The
// base stays as it is.
//
// What runs ops, waits and signals is called a unit: a task of an unrolled program, a stage of a native one.
type draft struct {
	r       *rand.Rand
	flat    *ir.Flat
	prog    *ir.Program
	variant *ir.Variant // of prog

	buffers  []ir.Buffer
	groups   []ir.Group // of prog
	pages    []ir.Page
	counters []ir.Counter
	stages   []*ir.Stage // of the variant, in program order
	loops    []*ir.Loop  // that each stage stands in, or nil
}

func newDraft(r *rand.Rand, c *Case) *draft {
	d := &draft{r: r}
	if c.Flat != nil {
		f := *c.Flat
		f.Tasks = slices.Clone(f.Tasks)
		d.flat = &f
		d.buffers, d.pages, d.counters = slices.Clone(f.Buffers), slices.Clone(f.Pages), slices.Clone(f.Counters)
		return d
	}
	p := *c.Program
	p.Variants = slices.Clone(p.Variants)
	d.prog, d.variant = &p, &p.Variants[r.IntN(len(p.Variants))]
	d.buffers, d.pages, d.counters = slices.Clone(p.Buffers), slices.Clone(p.Pages), slices.Clone(d.variant.Counters)
	d.groups = slices.Clone(p.Groups)
	d.variant.Body = slices.Clone(d.variant.Body)
	for i, n := range d.variant.Body {
		switch n := n.(type) {
		case *ir.Stage:
			s := *n
			d.variant.Body[i] = &s
			d.stages, d.loops = append(d.stages, &s), append(d.loops, nil)
		case *ir.Loop:
			l := *n
			d.variant.Body[i] = &l
			l.Body = slices.Clone(l.Body)
			for k := range l.Body {
				s := *l.Body[k]
				l.Body[k] = &s
				d.stages, d.loops = append(d.stages, &s), append(d.loops, &l)
			}
		}
	}
	return d
}

// into puts the changed program in the place of the one that the case had.
func (d *draft) into(c *Case) {
	if d.flat != nil {
		d.flat.Buffers, d.flat.Pages, d.flat.Counters = d.buffers, d.pages, d.counters
		c.Flat = d.flat
		return
	}
	d.prog.Buffers, d.prog.Groups, d.prog.Pages, d.variant.Counters = d.buffers, d.groups, d.pages, d.counters
	c.Program = d.prog
}

func (d *draft) units() int {
	if d.flat != nil {
		return len(d.flat.Tasks)
	}
	return len(d.stages)
}

// find returns a random index below n for which ok holds, or -1.
func (d *draft) find(n int, ok func(int) bool) int {
	if n == 0 {
		return -1
	}
	start := d.r.IntN(n)
	for k := range n {
		if i := (start + k) % n; ok(i) {
			return i
		}
	}
	return -1
}

// An opAt is the place of an op.
type opAt struct{ unit, op int }

func (d *draft) ops(unit int) int {
	if d.flat != nil {
		return len(d.flat.Tasks[unit].Ops)
	}
	return len(d.stages[unit].Ops)
}

// op is for reading only.
func (d *draft) op(at opAt) *ir.Op {
	if d.flat != nil {
		return &d.flat.Tasks[at.unit].Ops[at.op].Op
	}
	return &d.stages[at.unit].Ops[at.op]
}

// ownOps copies the list of ops of a unit, not what they hold.
func (d *draft) ownOps(unit int) {
	if d.flat != nil {
		d.flat.Tasks[unit].Ops = slices.Clone(d.flat.Tasks[unit].Ops)
	} else {
		d.stages[unit].Ops = slices.Clone(d.stages[unit].Ops)
	}
}

// own returns an op, copied with all it holds.
func (d *draft) own(at opAt) *ir.Op {
	d.ownOps(at.unit)
	o := d.op(at)
	o.In, o.Out, o.Params = cloneViews(o.In), cloneViews(o.Out), slices.Clone(o.Params)
	if d.flat != nil {
		f := &d.flat.Tasks[at.unit].Ops[at.op]
		f.InBuf, f.OutBuf = slices.Clone(f.InBuf), slices.Clone(f.OutBuf)
	}
	return o
}

func cloneViews(list []ir.Operand) []ir.Operand {
	list = slices.Clone(list)
	for i := range list {
		list[i].Dims = slices.Clone(list[i].Dims)
	}
	return list
}

// findOp returns a random op for which ok holds.
func (d *draft) findOp(ok func(*ir.Op) bool) (opAt, bool) {
	var found []opAt
	unit := d.find(d.units(), func(u int) bool {
		for k := range d.ops(u) {
			if ok(d.op(opAt{u, k})) {
				found = append(found, opAt{u, k})
			}
		}
		return len(found) > 0
	})
	if unit < 0 {
		return opAt{}, false
	}
	return found[d.r.IntN(len(found))], true
}

// A viewAt is the place of an operand.
type viewAt struct {
	opAt
	write bool
	arg   int
}

func (d *draft) view(at viewAt) *ir.Operand {
	o := d.op(at.opAt)
	if at.write {
		return &o.Out[at.arg]
	}
	return &o.In[at.arg]
}

// ownView returns a view for changing.
func (d *draft) ownView(at viewAt) *ir.Operand {
	d.own(at.opAt)
	return d.view(at)
}

// A use is a view with the buffer it is of.
type use struct {
	viewAt
	op   *ir.Op
	dims []ir.Range
	buf  *ir.Buffer
	of   int // index of buf
}

// findView returns a random view of a buffer for which ok holds.
func (d *draft) findView(ok func(use) bool) (use, bool) {
	var found []use
	unit := d.find(d.units(), func(u int) bool {
		for k := range d.ops(u) {
			at := opAt{u, k}
			o := d.op(at)
			for i := range len(o.In) + len(o.Out) {
				v := viewAt{at, i >= len(o.In), i}
				if v.write {
					v.arg -= len(o.In)
				}
				b := d.bufferOf(v)
				if b < 0 {
					continue
				}
				if x := (use{v, o, d.view(v).Dims, &d.buffers[b], b}); ok(x) {
					found = append(found, x)
				}
			}
		}
		return len(found) > 0
	})
	if unit < 0 {
		return use{}, false
	}
	return found[d.r.IntN(len(found))], true
}

// bufferOf returns the index of the buffer of a view; in a native program that of the family, or of a group's first
// member; -1 for a temporary.
func (d *draft) bufferOf(at viewAt) int {
	v := d.view(at)
	switch {
	case v.IsTemp():
		return -1
	case d.flat == nil:
		return d.bufferNamed(v.Buf)
	case at.write:
		return d.flat.Tasks[at.unit].Ops[at.op].OutBuf[at.arg]
	default:
		return d.flat.Tasks[at.unit].Ops[at.op].InBuf[at.arg]
	}
}

func (d *draft) bufferNamed(name string) int {
	if g := slices.IndexFunc(d.groups, func(g ir.Group) bool { return sameFamily(g.Name, name) }); g >= 0 {
		name = d.groups[g].Members[0]
	}
	return slices.IndexFunc(d.buffers, func(b ir.Buffer) bool { return sameFamily(b.Name, name) })
}

// retarget makes a view one of another buffer. Of a family it takes the member of the iteration.
func (d *draft) retarget(at viewAt, buf int) {
	v := d.ownView(at)
	if d.flat == nil {
		v.Buf = d.nameIn(at.unit, d.buffers[buf].Name, d.buffers[buf].First)
		return
	}
	v.Buf = d.buffers[buf].Name
	if o := &d.flat.Tasks[at.unit].Ops[at.op]; at.write {
		o.OutBuf[at.arg] = buf
	} else {
		o.InBuf[at.arg] = buf
	}
}

// nameIn is how a stage names a member of a family: by {i} in a loop, else the first.
func (d *draft) nameIn(unit int, name string, first int) string {
	if d.loops[unit] != nil || !ir.IsFamily(name) {
		return name
	}
	full, err := ir.Resolve(name, first)
	if err != nil {
		return name
	}
	return full
}

// sameFamily reports whether a name, with whatever index, is that of a member of a family, or the name itself.
func sameFamily(family, name string) bool {
	open, end := strings.IndexByte(family, '{'), strings.IndexByte(family, '}')
	if open < 0 || end < open {
		return family == name
	}
	head, tail := family[:open], family[end+1:]
	if !strings.HasPrefix(name, head) || !strings.HasSuffix(name, tail) || len(name) <= len(head)+len(tail) {
		return false
	}
	index := name[len(head) : len(name)-len(tail)]
	return index[0] == '{' || strings.Trim(index, "0123456789") == ""
}

// pick returns a random element of a list that is not empty.
func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// chance is true in one of n cases.
func chance(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }
