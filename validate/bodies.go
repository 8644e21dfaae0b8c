package validate

import "amkc/ir"

// bodies finds tasks that do the same to buffers of the same form, as those of a loop do from the second iteration
// on: ir.Unroll binds a stage's ops to each span once, so that the iterations share the memory of their views. What a
// rule concludes from a body alone (arities, parameters, bounds, shapes, dtypes, the addresses of views) holds for
// every task with the same body, so rules look at one, the root. It is only done where something is shared, and where
// no root has reported anything: a task whose root has findings is checked itself and reports its own.
type bodies struct {
	root  []int32               // of each task: the first one with its body, itself if there is none before
	class []int32               // of each buffer: buffers of one class are equal but for name and page
	clean []bool                // of roots: no rule has found anything yet
	roots map[*ir.Operand]int32 // by the first view of the first op
}

// worthSharing is the number of tasks from which looking for equal bodies pays.
const worthSharing = 1024

// find runs before indices are checked, and trusts none.
func (b *bodies) find(f *ir.Flat) {
	b.root, b.clean = b.root[:0], b.clean[:0]
	if len(f.Tasks) < worthSharing {
		return
	}
	b.root, b.clean = sized(b.root, len(f.Tasks)), sized(b.clean, len(f.Tasks))
	b.class = sized(b.class, len(f.Buffers))
	for i := 1; i < len(f.Buffers); i++ { // members of a family stand side by side
		if b.class[i] = b.class[i-1]; !sameForm(&f.Buffers[i-1], &f.Buffers[i]) {
			b.class[i]++
		}
	}
	if b.roots == nil {
		b.roots = map[*ir.Operand]int32{}
	}
	hint := -1 // tasks of an iteration stand as those of the one before
	for t := range f.Tasks {
		b.root[t] = int32(t)
		if hint++; hint > 0 && hint < t {
			if r := b.root[hint]; b.same(&f.Tasks[t], &f.Tasks[r]) {
				b.root[t] = r
				continue
			}
		}
		hint = -1
		view := firstView(&f.Tasks[t])
		if view == nil {
			continue
		}
		r, known := b.roots[view]
		if known && b.same(&f.Tasks[t], &f.Tasks[r]) {
			b.root[t] = r
			hint = int(r)
		} else if !known {
			b.roots[view] = int32(t)
		}
	}
}

// sameForm reports whether two buffers differ in name and page at most. Shapes count as equal if they are one slice.
func sameForm(a, b *ir.Buffer) bool {
	return a.Kind == b.Kind && a.DType == b.DType && a.Space == b.Space && a.Layout == b.Layout &&
		oneSlice(a.Shape, b.Shape) && len(a.Pages) == len(b.Pages)
}

func oneSlice[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

func firstView(t *ir.Task) *ir.Operand {
	if len(t.Ops) == 0 {
		return nil
	}
	if op := &t.Ops[0]; len(op.In) > 0 {
		return &op.In[0]
	} else if len(op.Out) > 0 {
		return &op.Out[0]
	}
	return nil
}

func (b *bodies) same(t, u *ir.Task) bool {
	if len(t.Ops) != len(u.Ops) || (t.Rank > 0) != (u.Rank > 0) {
		return false
	}
	for k := range t.Ops {
		x, y := &t.Ops[k], &u.Ops[k]
		if x.Code != y.Code || !oneSlice(x.In, y.In) || !oneSlice(x.Out, y.Out) || !oneSlice(x.Params, y.Params) ||
			!b.sameClass(x.InBuf, y.InBuf) || !b.sameClass(x.OutBuf, y.OutBuf) {
			return false
		}
	}
	return true
}

func (b *bodies) sameClass(x, y []int) bool {
	if len(x) != len(y) {
		return false
	}
	class := b.class
	for i, m := range x {
		if n := y[i]; m != n && (uint(m) >= uint(len(class)) || uint(n) >= uint(len(class)) || class[m] != class[n]) {
			return false
		}
	}
	return true
}

// rootOf returns the task whose body stands for that of t: t itself, or an earlier one that nothing was found in.
func (b *bodies) rootOf(t int) int {
	if len(b.root) == 0 {
		return t
	}
	if r := b.root[t]; b.clean[r] {
		return int(r)
	}
	return t
}

// Root is the task whose body stands for that of t: a rule about bodies looks at those that are their own roots.
func (p *Proof) Root(t int) int { return p.bodies.rootOf(t) }

// settle notes whether a rule found nothing in a task.
func (b *bodies) settle(t int, clean bool) {
	if len(b.clean) > 0 {
		b.clean[t] = clean
	}
}
