package population

import (
	"math/rand/v2"
	"strconv"

	"amkc/ir"
)

// Streamed makes a small random program for the kernel, whose tasks attend over memory of any rank, kind and space,
// append to caches, and normalise by what may be a weight or not. The tasks follow each other in one order, so that
// what is wrong with them is wrong because the kernel reads some operands ahead of that order.
func Streamed(seed uint64) Case {
	s := &streamed{Rand: rand.New(rand.NewPCG(seed, 0x57e)), flat: &ir.Flat{Name: "streamed", SMs: 2, Lo: 2, Hi: 3}}
	s.declare()
	for range 2 + s.IntN(5) {
		s.task()
	}
	s.add(s.op(ir.COPY, views(tempOf("%w")), views(s.view("w", extent(4)))))
	return Case{Name: "streamed/" + strconv.FormatUint(seed, 10), Class: "streamed", Flat: s.flat, Kernel: true}
}

// streamed is such a program while it is made. All keys and values are rows of two elements.
type streamed struct {
	*rand.Rand
	flat  *ir.Flat
	bufs  map[string]int
	wrote map[string]bool
}

// Buffers that attention may take for keys and values, of four rows each.
var streamable = []string{"matrix", "rows", "heads", "fixed", "words"}

func (s *streamed) declare() {
	s.bufs, s.wrote = map[string]int{}, map[string]bool{}
	add := func(b ir.Buffer) {
		s.bufs[b.Name] = len(s.flat.Buffers)
		s.flat.Buffers = append(s.flat.Buffers, b)
	}
	shapes := map[string][]int{"matrix": {4, 2}, "rows": {4, 1, 2}, "heads": {1, 4, 1, 2}, "fixed": {4, 2},
		"words": {4, 2}}
	for _, name := range streamable {
		b := ir.Buffer{Name: name, Kind: ir.Activation, DType: ir.F32, Shape: shapes[name]}
		switch name {
		case "fixed":
			b.Kind = ir.Weight
		case "words":
			b.Space, b.Layout.Kind = ir.GlobalScratch, ir.Word64
		default:
			b.Space = []ir.Space{ir.HBM, ir.GlobalScratch}[s.IntN(2)]
			b.Kind = []ir.BufferKind{ir.Activation, ir.Activation, ir.Input}[s.IntN(3)]
		}
		s.wrote[name] = b.Kind != ir.Activation
		add(b)
	}
	for i := range 2 {
		kv := ir.Buffer{Name: "kv" + strconv.Itoa(i), Kind: ir.KVCache, DType: ir.F32, Shape: []int{1, 4, 2, 2}}
		if chance(s.Rand, 3) {
			kv.Layout.Kind = ir.KVRows16
		}
		add(kv)
	}
	add(ir.Buffer{Name: "w", Kind: ir.Weight, DType: ir.F32, Shape: []int{8}})
	add(ir.Buffer{Name: "scale", Kind: []ir.BufferKind{ir.Weight, ir.Const, ir.Activation}[s.IntN(3)], DType: ir.F32,
		Shape: []int{4}})
	s.wrote["scale"] = s.flat.Buffers[s.bufs["scale"]].Kind != ir.Activation
	s.flat.Counters = append(s.flat.Counters, ir.Counter{Name: "step", Role: ir.RoleStep, How: ir.ByCounter})
}

func (s *streamed) view(name string, dims ...ir.Range) ir.Operand { return viewOf(name, dims...) }

// all is a view of four rows, or of less than that.
func (s *streamed) rows(name string) ir.Operand {
	lo := s.IntN(2)
	hi := lo + 1 + s.IntN(4-lo)
	if chance(s.Rand, 12) {
		hi = lo // of none
	}
	r := ir.Span(ir.Int(lo), ir.Int(hi))
	switch name {
	case "rows":
		return s.view(name, r, ir.Index(ir.Int(0)), extent(2))
	case "heads":
		return s.view(name, ir.Index(ir.Int(0)), r, ir.Index(ir.Int(0)), extent(2))
	}
	return s.view(name, r, extent(2))
}

func (s *streamed) cache(i, kv int, r ir.Range) ir.Operand {
	return s.view("kv"+strconv.Itoa(i), ir.Index(ir.Int(0)), r, ir.Index(ir.Int(kv)), extent(2))
}

// op is an op on views, whose buffers are looked up.
func (s *streamed) op(code ir.Opcode, out, in []ir.Operand, params ...ir.Param) ir.FlatOp {
	o := ir.FlatOp{Op: newOp(code, out, in, params...)}
	number := func(v ir.Operand) int {
		if v.IsTemp() {
			return -1
		}
		return s.bufs[v.Buf]
	}
	for _, v := range in {
		o.InBuf = append(o.InBuf, number(v))
	}
	for _, v := range out {
		o.OutBuf = append(o.OutBuf, number(v))
	}
	return o
}

// add adds a task that waits for the one before it, unless it is on the same SM.
func (s *streamed) add(ops ...ir.FlatOp) {
	n := len(s.flat.Tasks)
	t := ir.Task{Name: "t" + strconv.Itoa(n), SM: s.IntN(s.flat.SMs), Ops: ops}
	if n > 0 {
		before := &s.flat.Tasks[n-1]
		before.Signal = len(s.flat.Counters)
		s.flat.Counters = append(s.flat.Counters, ir.Counter{Name: "c" + strconv.Itoa(n), How: ir.ByCounter})
		t.Waits = []ir.FlatWait{{Counter: before.Signal, Threshold: 1}}
	}
	s.flat.Tasks = append(s.flat.Tasks, t)
}

func (s *streamed) task() {
	var ops []ir.FlatOp
	for range 1 + s.IntN(2) {
		ops = append(ops, s.random(len(ops)))
	}
	s.add(ops...)
}

func (s *streamed) random(n int) ir.FlatOp {
	temp := views(tempOf("%t" + strconv.Itoa(n)))
	name := streamable[s.IntN(len(streamable))]
	switch s.IntN(6) {
	case 0:
		if b := &s.flat.Buffers[s.bufs[name]]; b.Kind == ir.Activation {
			whole := make([]ir.Range, len(b.Shape))
			for d, n := range b.Shape {
				whole[d] = extent(n)
			}
			s.wrote[name] = true
			return s.op(ir.COPY, views(s.view(name, whole...)), views(s.view("w", extent(8))))
		}
	case 1: // a row of the cache: this step's, or another
		row := ir.Index([]ir.Expr{symPos, symPos, symPos.Sub(ir.Int(1)), ir.Int(0)}[s.IntN(4)])
		return s.op(ir.KVAppend, views(s.cache(s.IntN(2), s.IntN(2), row)), views(s.view("w", extent(2))))
	case 2:
		if s.flat.Buffers[s.bufs["scale"]].Kind == ir.Activation && chance(s.Rand, 2) {
			s.wrote["scale"] = true
			return s.op(ir.COPY, views(s.view("scale", extent(4))), views(s.view("w", extent(4))))
		}
		if s.wrote["scale"] {
			return s.op(ir.RMSNORM, temp, views(s.view("w", extent(4)), s.view("scale", extent(4))),
				ir.FloatParam("eps", 1e-5))
		}
	case 3, 4:
		i, hi := s.IntN(2), []ir.Expr{symPos, symPos, symPos.Sub(ir.Int(1)), ir.Int(1)}[s.IntN(4)]
		return s.attend(temp, s.cache(i, 0, ir.Span(ir.Int(0), hi)), s.cache(i, 1, ir.Span(ir.Int(0), hi)))
	}
	if !s.wrote[name] {
		name = "fixed"
	}
	k := s.rows(name)
	v := k
	if name == "matrix" && chance(s.Rand, 2) {
		v.Buf = "fixed"
	}
	return s.attend(temp, k, v)
}

func (s *streamed) attend(out []ir.Operand, k, v ir.Operand) ir.FlatOp {
	return s.op(ir.ATTENTION, out, views(s.view("w", extent(2)), k, v), ir.IntParam("head_dim", ir.Int(2)),
		ir.IntParam("n_heads", ir.Int(1)),
		ir.IntParam("n_kv_heads", ir.Int(1)), ir.FloatParam("scale", 0.5))
}
