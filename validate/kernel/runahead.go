package kernel

import (
	"fmt"
	"slices"

	"amkc/ir"
	"amkc/ir/op"
	"amkc/validate/views"
)

// The kernel reads some operands ahead of every wait of the step: its producer streams matrices and cache rows into
// the ring, and small constants come through the read-only path of the memory system. No edge orders those reads, so
// that the licence for them is the absence of writes:
//
//   - operands of some roles (op.Role.Ahead) are read even ahead of the end of the step before. They are WEIGHT or
//     CONST, which no task of any step writes (operands.go).
//   - keys and values are read from the step-end edge on: the producer waits for it before the first row of a step.
//     No task of this step writes what is read, be it a cache or any other memory, of whatever rank and in whatever
//     space: an edge that orders such a write before the task that attends does not order it before the copy. The
//     cache layouts keep 16 rows in a block, and blocks are copied whole. Rows of them that the view has not, such as
//     those from pos on, may be written meanwhile: the kernel takes nothing of what it copies of them
//     (docs/memory-model.md). It does not tell parts apart within a block.
//
// That the rows of a cache are those of the steps before is what step.go and appends.go prove: everything of a step
// is happens-before its end, which every SM waits for, and every step appends the rows that later ones read.

// cacheBlock is the number of rows that lie and are copied together in the cache layouts.
const cacheBlock = 16

// CheckReads: what the kernel reads ahead of the waits, no task of the step writes.
func (p *contract) CheckReads() {
	streams := make([]*traffic, len(p.flat.Buffers))
	for t := range p.flat.Tasks {
		if p.Full() {
			return
		}
		for k := range p.flat.Tasks[t].Ops {
			o := &p.flat.Tasks[t].Ops[k]
			spec := ir.Ops[o.Code]
			for i, b := range o.InBuf {
				switch role := spec.Role(i); {
				case role.Ahead():
					p.checkFixed(int32(t), o, i)
				case role == op.Cache: // not a temporary: checkShapes
					if streams[b] == nil {
						streams[b] = &traffic{}
					}
					streams[b].reads = append(streams[b].reads,
						streamedView{task: int32(t), op: o.Code, operand: i, dims: o.In[i].Dims})
				}
			}
		}
	}
	for t := range p.flat.Tasks {
		for k := range p.flat.Tasks[t].Ops {
			op := &p.flat.Tasks[t].Ops[k]
			for i, b := range op.OutBuf {
				if b >= 0 && streams[b] != nil {
					streams[b].writes = append(streams[b].writes, streamedView{task: int32(t), dims: op.Out[i].Dims})
				}
			}
		}
	}
	p.checkSelected()
	var proved *traffic // of the buffer before: the next layer's is mostly the same
	var like *ir.Buffer
	for b, c := range streams {
		if c == nil || p.Full() {
			continue
		}
		buf, before := &p.flat.Buffers[b], p.Errors()
		if proved != nil && like.Layout == buf.Layout && slices.Equal(like.Shape, buf.Shape) && c.same(proved) {
			continue
		}
		if p.checkStreamed(buf, c); p.Errors() == before {
			proved, like = c, buf
		}
	}
}

// checkFixed: an operand that is read ahead of the step before is the same in every step.
func (p *contract) checkFixed(t int32, op *ir.FlatOp, i int) {
	name, kind := "temporary "+op.In[i].Buf, "of this task"
	if b := op.InBuf[i]; b >= 0 {
		buf := &p.flat.Buffers[b]
		if buf.Kind == ir.Weight || buf.Kind == ir.Const {
			return
		}
		name, kind = buf.Name, fmt.Sprintf("is %s", buf.Kind)
		if w := p.firstWriter(b); w >= 0 {
			kind += ", written by " + p.Who(w)
		}
	}
	d := p.Errorf(CodeRunAhead, p.Task(t),
		"the kernel reads %s, operand %d of %s, ahead of every wait and of the end of the last step, and it %s", name,
		i+1, op.Code, kind)
	if b := op.InBuf[i]; b >= 0 {
		d.Buffer = p.flat.Buffers[b].Name
	}
	d.Suggest("make it a WEIGHT or CONST, which no step writes")
}

func (p *contract) firstWriter(b int) int32 {
	for t := range p.flat.Tasks {
		for k := range p.flat.Tasks[t].Ops {
			for _, out := range p.flat.Tasks[t].Ops[k].OutBuf {
				if out == b {
					return int32(t)
				}
			}
		}
	}
	return -1
}

// traffic is what tasks stream from a buffer and what they write to it.
type traffic struct{ reads, writes []streamedView }

type streamedView struct {
	task    int32
	op      ir.Opcode // that reads it
	operand int       // of that op, from 0
	dims    []ir.Range
	form    []views.Range // of a write, once it is compared
}

// same reports whether two buffers are used alike: by tasks as far from each other, through the very same views,
// which the iterations of a loop share.
func (c *traffic) same(o *traffic) bool {
	if len(c.reads) != len(o.reads) || len(c.writes) != len(o.writes) {
		return false
	}
	shift := c.reads[0].task - o.reads[0].task
	alike := func(a, b streamedView) bool {
		return a.task-b.task == shift && len(a.dims) > 0 && len(a.dims) == len(b.dims) && &a.dims[0] == &b.dims[0]
	}
	return slices.EqualFunc(c.reads, o.reads, alike) && slices.EqualFunc(c.writes, o.writes, alike)
}

// checkStreamed compares what is streamed with what is written. Heads and shares split both into groups that cannot
// meet, so that few pairs are left.
func (p *contract) checkStreamed(b *ir.Buffer, c *traffic) {
	rows := views.RowsDim(b) // a buffer of less than three dimensions has none for rows
	if b.Layout.Kind == ir.KVBlock16 || b.Layout.Kind == ir.KVRows16 {
		for i := range c.reads {
			if r := &c.reads[i]; r.dims[rows].Shared() && r.dims[rows].Block%cacheBlock != 0 {
				d := p.Errorf(CodeRunAhead, p.Task(r.task), "the kernel copies %s%s, operand %d of %s, in blocks "+
					"of %d rows, which hold rows of other parts too", b.Name, views.String(r.dims), r.operand+1, r.op,
					cacheBlock)
				d.Buffer = b.Name
				d.Suggest("deal rows out in multiples of %d", cacheBlock)
				return
			}
		}
	}
	key := groupBy(c, rows)
	writes := map[views.Key][]*streamedView{}
	for i := range c.writes {
		w := &c.writes[i]
		w.form = p.Positions().Append(nil, w.dims)
		writes[key(w)] = append(writes[key(w)], w)
	}
	var read []views.Range
	for i := range c.reads {
		r := &c.reads[i]
		read = p.Positions().Append(read[:0], r.dims)
		for _, w := range writes[key(r)] {
			if !p.SpendPairs(1, r.task) || p.Full() {
				return
			}
			if views.Disjoint(read, w.form) {
				continue
			}
			if pos, meet := p.meet(r, w); meet {
				p.reportStreamed(b, r, w, pos)
				break // one finding a view
			}
		}
	}
}

func (p *contract) reportStreamed(b *ir.Buffer, r, w *streamedView, pos int) {
	at, when := pos, ""
	if p.flat.Lo != p.flat.Hi {
		when = fmt.Sprintf("at pos %d ", pos)
	}
	copied := fmt.Sprintf("%s%s, operand %d of %s", b.Name, views.String(r.dims), r.operand+1, r.op)
	d := p.Errorf(CodeRunAhead, p.Task(r.task),
		"the kernel copies %s, ahead of every wait of the step, and %s%s writes %s%s in the same step", copied, when,
		p.Who(w.task), b.Name, views.String(w.dims))
	d.Buffer, d.Other, d.Position = b.Name, p.flat.Tasks[w.task].Name, &at
	switch {
	case b.Kind != ir.KVCache:
		d.Suggest("keep keys and values in a KV_CACHE, read the rows of earlier steps, and hand the row of this " +
			"step over as k_row and v_row")
	default:
		d.Suggest("read the rows below pos, and hand the row of this step over as k_row and v_row")
	}
}

// meet looks for a position at which a streamed view shares an element with another.
func (p *contract) meet(r, w *streamedView) (int, bool) {
	for pos := p.flat.Lo; pos <= p.flat.Hi; pos++ {
		if !p.SpendEvals(1, r.task) {
			return 0, false // refused by the budget
		}
		if p.meetAt(r, w, pos) {
			return pos, true
		}
	}
	return 0, false
}

func (p *contract) meetAt(r, w *streamedView, pos int) bool {
	for d := range r.dims {
		a, b := &r.dims[d], &w.dims[d]
		lo, hi := max(a.Lo.At(pos), b.Lo.At(pos)), min(a.Hi.At(pos), b.Hi.At(pos))
		for lo < hi && !(views.Holds(a, lo, pos) && views.Holds(b, lo, pos)) {
			if !p.SpendEvals(1, r.task) {
				return false
			}
			lo++
		}
		if lo >= hi {
			return false
		}
	}
	return true
}

// groupBy numbers views so that those with different numbers share no element: by components of overlap in each
// dimension but the rows (rows is below 0 where there are none), and by part if all rows are distributed alike.
func groupBy(c *traffic, rows int) func(v *streamedView) views.Key {
	var starts [ir.MaxRank][]int // of the pieces of a dimension; nil where some view depends on pos
	for d := range c.reads[0].dims {
		if d != rows {
			starts[d] = c.pieces(d)
		}
	}
	dealt := rows >= 0 && dealtAlike(c, rows)
	return func(v *streamedView) (k views.Key) {
		for d := range v.dims {
			if starts[d] != nil {
				s, _ := views.Ends(&v.dims[d])
				k[d] = views.PieceOf(s, starts[d])
			}
		}
		if dealt {
			part, _ := v.dims[rows].Part.IsConst()
			k[rows] = int32(part)
		}
		return k
	}
}

// pieces returns where the connected pieces of a dimension begin that the views cover, or nil if some view depends on
// pos there.
func (c *traffic) pieces(d int) []int {
	spans := make([]views.Interval, 0, len(c.reads)+len(c.writes))
	for _, list := range [][]streamedView{c.reads, c.writes} {
		for i := range list {
			s, ok := views.Ends(&list[i].dims[d])
			if !ok {
				return nil
			}
			spans = append(spans, s)
		}
	}
	return views.Pieces(spans)
}

// dealtAlike reports whether every view has one part of the rows, distributed in the same blocks.
func dealtAlike(c *traffic, rows int) bool {
	first := &c.reads[0].dims[rows]
	for _, list := range [][]streamedView{c.reads, c.writes} {
		for i := range list {
			r := &list[i].dims[rows]
			if _, ok := r.Part.IsConst(); !ok || !r.Shared() || r.Block != first.Block || r.Parts != first.Parts {
				return false
			}
		}
	}
	return true
}
