package interchange

import (
	"fmt"
	"strings"

	"amkc/ir"
	"amkc/ir/transform"
)

// stage exports one stage; attention after the appends to its cache.
func (e *exporter) stage(s *ir.Stage) {
	if _, done := e.appended[s]; done || e.failed != nil {
		return
	}
	op := s.Ops[0]
	t := Task{Op: op.Code, Label: s.Name, Waits: e.waits(s)}
	switch {
	case op.Code == ir.ATTENTION:
		e.attention(s, t)
		return
	case op.Code == ir.KVAppend:
		e.kvAppend(s, t)
		return
	case s.Dist.Kind != ir.Whole:
		e.fail("stage "+s.Name, "is cut into %d tasks; whole stages are accepted, as pass lower leaves them",
			s.Dist.NumTasks())
		return
	}
	op = op.Bind(ir.TaskSpan{SM: -1, B: s.Dist.Extent})
	for _, list := range [][]ir.Operand{op.In, op.Out} {
		for _, o := range list {
			if !e.isWhole(o) {
				e.fail("stage "+s.Name, "touches a part of %s; all of it is accepted", o.Buf)
				return
			}
		}
	}
	pairs := 0
	switch op.Code {
	case ir.EMBED:
		if op.Has("scale") {
			e.fail("stage "+s.Name, "multiplies rows of its table; rows as they are are accepted")
			return
		}
		if len(op.In) > 2 && e.buffers[op.In[2].Buf].HasRole(ir.RoleEmbeddings) {
			op.In = op.In[:2]
		}
		t.Params = object("hidden", e.buffers[op.Out[0].Buf].Numel())
	case ir.RMSNORM:
		if op.Has("head_dim") || op.Has("unit_offset") {
			e.fail("stage "+s.Name, "normalises heads one by one, or by 1 + w, which the profile cannot say: the "+
				"parameters of its RMSNORM are eps and hidden; a norm of the whole vector by w is accepted")
			return
		}
		t.Params = object("eps", op.FloatOr("eps", 0), "hidden", e.buffers[op.In[1].Buf].Numel())
	case ir.GEMV:
		w := e.buffers[op.In[1].Buf]
		if op.Has("qdtype") || op.Has("parts") || len(op.In) > 2 || len(w.Shape) != 2 {
			e.fail("stage "+s.Name, "has a quantised weight, a bias or parts of columns; x and a weight [N, K], added "+
				"up at once, are accepted")
			return
		}
		if head, ok := rotated(w); ok {
			pairs = head
		}
		t.Params = object("K", w.Shape[1], "N_tile", w.Shape[0], "n_off", 0)
	case ir.ROPE:
		e.rope(s, op, t)
		return
	case ir.COPY, ir.GELU:
	case ir.ADD:
		if len(op.In) != 2 {
			e.fail("stage "+s.Name, "multiplies a sum by a number; a sum of two operands is accepted")
			return
		}
	case ir.SiluMul, ir.MUL:
		if len(op.In) != 2 {
			e.fail("stage "+s.Name, "%v has one operand; two are accepted", op.Code)
			return
		}
	case ir.ArgMax, ir.SAMPLE:
		of := 1
		if op.Code == ir.SAMPLE {
			of = 2 // with settings, which the profile's host has none of
		}
		if len(op.In) != of || op.IntAt("partial", e.pos, 0) != 0 {
			e.fail("stage "+s.Name, "is a part of an argmax; one over all logits is accepted")
			return
		}
		t.Op, op.In = ir.ArgMax, op.In[:1]
	default:
		e.fail("stage "+s.Name, "%v has no export; EMBED, RMSNORM, GEMV_TILE, ROPE, ATTENTION_TILE, KV_APPEND, "+
			"COPY, ADD, MUL, GELU, SILU_MUL and SAMPLE_ARGMAX have", op.Code)
		return
	}
	for _, o := range op.In {
		x := e.value(s, o.Buf)
		if x.pairs != 0 {
			e.fail("stage "+s.Name, "%v reads %s, whose rows are in rotation pairs; only rotation, attention and "+
				"the append may", op.Code, o.Buf)
			return
		}
		t.Inputs = append(t.Inputs, x.id)
	}
	e.results(s, t, op.Out, pairs)
}

// results adds a task that writes the first of several outputs which loses nothing, and copies of it for the others.
func (e *exporter) results(s *ir.Stage, t Task, outs []ir.Operand, pairs int) {
	first := 0
	for i, o := range outs {
		if e.buffers[o.Buf].DType == ir.F32 {
			first = i
			break
		}
	}
	exact := e.buffers[outs[first].Buf].DType
	var copies []Task
	for i, o := range outs {
		b := e.buffers[o.Buf]
		if exact != ir.F32 && b.DType != exact {
			e.fail("stage "+s.Name, "writes %v and %v; outputs of one dtype, or one of F32, are accepted", exact,
				b.DType)
			return
		}
		id := e.fresh(s, b, vector(b))
		e.values[o.Buf] = exported{id: id, pairs: pairs}
		if i == first {
			t.Outputs = []int{id}
			continue
		}
		copies = append(copies, Task{Op: ir.COPY, Outputs: []int{id}, Label: s.Name + "." + o.Buf})
	}
	if len(copies) == 0 {
		t.OutCounter = e.signal(s)
		e.task(t)
		return
	}
	t.OutCounter = e.counter(s.Name)
	e.task(t)
	for _, c := range copies {
		c.Inputs, c.Waits, c.OutCounter = t.Outputs, []Wait{{Counter: t.OutCounter}}, e.signal(s)
		e.task(c)
	}
}

// signal returns the counter of a stage's last task: the one that others wait on, or one of its own.
func (e *exporter) signal(s *ir.Stage) int {
	if c, ok := e.counters[s.Signal]; ok {
		return c.id
	}
	return e.counter(s.Name)
}

// rotated returns the head size of rows that are packed as rotation pairs, whole heads.
func rotated(b *ir.Buffer) (head int, ok bool) {
	if len(b.Pieces) != 1 || len(b.Pieces[0].Chain) != 1 {
		return 0, false
	}
	order := &b.Pieces[0].Chain[0]
	if order.Kind != transform.Pairs || len(order.Ints) != 1 {
		return 0, false
	}
	return order.Ints[0], true
}

// ofOneTensor reports whether a buffer is a tensor of the checkpoint, in order or in the order of a rotation.
func ofOneTensor(b *ir.Buffer) bool {
	_, pairs := rotated(b)
	return len(b.Pieces) == 1 && (pairs || len(b.Pieces[0].Chain) == 0) && !strings.HasPrefix(b.Pieces[0].Key, "@")
}

// value returns what holds a native buffer now. Weights and inputs are declared when they are first read.
func (e *exporter) value(s *ir.Stage, name string) exported {
	if x, ok := e.values[name]; ok {
		return x
	}
	b := e.buffers[name]
	x := exported{}
	switch {
	case b.Kind == ir.Input:
		x.id = e.declare(exportedName(b), b, b.Shape...)
	case b.Kind == ir.Weight && ofOneTensor(b):
		key := b.Pieces[0].Key
		x.id = e.declare(key, b, b.Shape...)
		e.out.Buffers[x.id].Source = &key
	case b.Kind.ReadOnly():
		e.fail("buffer "+name, "is packed from %v; one tensor of the checkpoint is accepted, with no transform but "+
			"pairs of whole heads", b.Pieces)
	default:
		e.fail("stage "+s.Name, "reads %s before a stage writes it; stages in order are accepted", name)
	}
	e.values[name] = x
	return x
}

// exportedName is the name of a buffer in the profile, which has no roles: there, names say them.
func exportedName(b *ir.Buffer) string {
	switch b.Role {
	case "":
		return b.Name
	case ir.RolePosition:
		return positionName
	}
	return b.Role
}

// fresh declares a buffer for a new value: the first under the native name.
func (e *exporter) fresh(s *ir.Stage, b *ir.Buffer, shape []int) int {
	if b.Kind.ReadOnly() {
		e.fail("stage "+s.Name, "writes %s, which is %v; an activation or an output is accepted", b.Name, b.Kind)
	}
	name := exportedName(b)
	if _, again := e.values[b.Name]; again {
		name = fmt.Sprintf("%s.%s", b.Name, s.Name)
	}
	return e.declare(name, b, shape...)
}

// vector is the profile's shape of a native vector: one row. Lists of indices stay as they are.
func vector(b *ir.Buffer) []int {
	if len(b.Shape) == 1 && b.DType != ir.I32 {
		return []int{1, b.Shape[0]}
	}
	return b.Shape
}

// isWhole reports whether a bound view covers its buffer.
func (e *exporter) isWhole(o ir.Operand) bool {
	for d, n := range e.buffers[o.Buf].Shape {
		if !e.covers(o.Dims[d], 0, n) {
			return false
		}
	}
	return true
}

func (e *exporter) covers(r ir.Range, lo, hi int) bool {
	return !r.Shared() && r.Lo.At(e.pos) == lo && r.Hi.At(e.pos) == hi
}

// input returns the id of an I32 input that every program of the profile has, declared at its first use.
func (e *exporter) input(name string) int {
	id, ok := e.inputs[name]
	if !ok {
		id = e.declare(name, &ir.Buffer{Kind: ir.Input, DType: ir.I32}, 1)
		e.inputs[name] = id
	}
	return id
}

// rope exports a rotation as the profile has it: the vector cut into heads, then rotated by halves of a head.
func (e *exporter) rope(s *ir.Stage, op ir.Op, t Task) {
	in, out := e.buffers[op.In[0].Buf], e.buffers[op.Out[0].Buf]
	hd, n := op.IntAt("head_dim", e.pos, 0), in.Numel()
	x := e.value(s, in.Name)
	switch {
	case op.IntAt("order", e.pos, 0) != 1 || op.IntAt("first", e.pos, 0) != 0 || op.IntAt("limit", e.pos, 0) != n ||
		op.IntAt("pos", e.pos, -1) != e.pos || len(op.Out) != 1:
		e.fail("stage "+s.Name, "rotates a part of %s, or for another position; all of it at position %d is accepted",
			in.Name, e.pos)
	case hd < 2 || n%hd != 0 || x.pairs != hd:
		e.fail("stage "+s.Name, "rotates %s of %d elements in pairs of heads of %d; whole heads of %d in rotation "+
			"pairs are accepted", in.Name, n, x.pairs, hd)
	case e.buffers[op.In[1].Buf].Numel() != hd/2:
		e.fail("stage "+s.Name, "rotates a part of each head of %d, by %d frequencies; %d are accepted", hd,
			e.buffers[op.In[1].Buf].Numel(), hd/2)
	case op.FloatOr("scale", 1) != 1:
		e.fail("stage "+s.Name, "multiplies what it rotates by %g; a rotation as it is is accepted",
			op.FloatOr("scale", 1))
	case !(e.theta > 0):
		e.fail("stage "+s.Name, "rotates by frequencies that the program does not hold, and no base is known that "+
			"they are powers of; a default rotary embedding is accepted")
	}
	if e.failed != nil {
		return
	}
	shape := []int{n / hd, hd}
	if e.isAppended(out.Name) {
		shape = []int{1, n / hd, hd} // rows, as the append takes them
	}
	split := e.declare(s.Name+".heads", &ir.Buffer{Kind: in.Kind, DType: in.DType, Space: in.Space}, shape...)
	ready := e.counter(s.Name + ".reshape")
	e.task(Task{
		Op: ir.EMBED, Label: s.Name + ".reshape", Inputs: []int{e.input("reshape_id0"), x.id}, Outputs: []int{split},
		Waits:      t.Waits,
		OutCounter: ready, Params: object("hidden", hd),
	})
	id := e.fresh(s, out, shape)
	e.values[out.Name] = exported{id: id, pairs: hd}
	t.Inputs, t.Outputs, t.Waits = []int{split, e.input(positionName)}, []int{id}, []Wait{{Counter: ready}}
	t.Params = object("head_dim", hd, "theta", e.theta)
	t.OutCounter = e.signal(s)
	e.task(t)
}

// isAppended reports whether a stage appends the buffer to a cache.
func (e *exporter) isAppended(name string) bool {
	for _, stages := range e.appends {
		for _, s := range stages {
			if s != nil && s.Ops[0].In[0].Buf == name {
				return true
			}
		}
	}
	return false
}
