package population

import (
	"strconv"

	"amkc/ir"
)

// A dagMemory is what a plan knows of one location: the bytes of a page, or the elements of a buffer that is on none.
type dagMemory []dagCell

// A dagCell is one address, in the order in which the plan lists its tasks.
type dagCell struct {
	writer  int    // the last task that wrote it; -1: none
	buf     int    // through which buffer
	readers uint64 // tasks that read it since, one bit each
}

// A dagView is a contiguous part of a buffer, in elements. Rows of caches are counted in rows.
type dagView struct{ buf, lo, n int }

// A dagBuffer is a buffer of the plan.
type dagBuffer struct {
	mem    int // location
	size   int // elements, or rows of a cache
	stride int // cells an element or row takes
	cache  bool
	input  bool // defined from the start
	onChip bool // slices of it belong to SMs
}

// Sizes of the small model that the ops come from: vectors of 8, two heads of 4 elements.
const (
	dagWidth  = 8
	dagHead   = 4
	dagHeads  = 2
	dagRows   = 6  // of a cache
	dagOut    = 16 // rows of the weight
	dagMaxSMs = 3
)

// Buffers that every DAG has; those of scratch follow.
const (
	dagInput = iota
	dagWeight
	dagNorm
	dagKeys
	dagValues
	dagFixed
)

// buffer declares a buffer with memory of its own, or on a page.
func (d *dag) buffer(b ir.Buffer, page int) int {
	at := dagBuffer{mem: page, size: b.Numel(), stride: 1, input: b.Kind.ReadOnly(), onChip: b.Space == ir.SMEM}
	if b.Kind == ir.KVCache {
		at.cache, at.size, at.stride = true, b.Shape[0], b.Numel()/b.Shape[0]
	}
	if page < 0 {
		at.mem = d.memory(at.size * at.stride)
	} else {
		at.stride = b.DType.Bits() / 8
		b.Pages = []string{d.flat.Pages[page].Name}
	}
	d.flat.Buffers = append(d.flat.Buffers, b)
	d.bufs = append(d.bufs, at)
	return len(d.bufs) - 1
}

func (d *dag) memory(cells int) int {
	m := make(dagMemory, cells)
	for i := range m {
		m[i].writer = -1
	}
	d.mems = append(d.mems, m)
	return len(d.mems) - 1
}

// declare makes the buffers: few, small, and partly on pages that they share. Pages come first, so that page i is
// location i.
func (d *dag) declare() {
	f := d.flat
	dtypes := make([]ir.DType, d.IntN(3))
	for i := range dtypes {
		dtypes[i] = pick(d.Rand, []ir.DType{ir.F32, ir.F32, ir.F16})
		f.Pages = append(f.Pages, ir.Page{Name: "page" + strconv.Itoa(i), Space: ir.GlobalScratch, Bytes: 48})
		d.memory(48)
	}
	kvHeads := 1 + d.IntN(dagHeads)
	cache := []int{dagRows, kvHeads, dagHead}
	piece := func(key string) []ir.Piece { return []ir.Piece{{Key: key}} }
	d.buffer(ir.Buffer{Name: "in", Kind: ir.Input, DType: ir.F32, Shape: []int{2 * dagWidth}}, -1)
	d.buffer(ir.Buffer{Name: "weight", Kind: ir.Weight, DType: ir.F32, Shape: []int{dagOut, dagWidth},
		Pieces: piece("weight")}, -1)
	d.buffer(ir.Buffer{Name: "norm", Kind: ir.Weight, DType: ir.F32, Shape: []int{dagWidth}, Pieces: piece("norm")}, -1)
	d.buffer(ir.Buffer{Name: "keys", Kind: ir.KVCache, DType: ir.F32, Shape: cache}, -1)
	d.buffer(ir.Buffer{Name: "values", Kind: ir.KVCache, DType: ir.F32, Shape: cache}, -1)
	for i := range 2 + d.IntN(4) {
		b := ir.Buffer{
			Name: "x" + strconv.Itoa(i), Kind: ir.Activation,
			DType: pick(d.Rand, []ir.DType{ir.F32, ir.F32, ir.F16, ir.BF16}),
			Shape: []int{pick(d.Rand, []int{dagWidth, dagWidth, 12, 2 * dagWidth})}, Space: ir.HBM,
		}
		page := d.IntN(len(f.Pages)+1) - 1
		if page >= 0 {
			b.Shape[0] = min(b.Shape[0], 12)
			b.Space = ir.GlobalScratch
			if !chance(d.Rand, 12) {
				b.DType = dtypes[page] // the reference VM takes pages of one element width only
			}
		}
		d.scratch = append(d.scratch, d.buffer(b, page))
	}
	if f.SMs > 0 && chance(d.Rand, 3) {
		d.scratch = append(d.scratch, d.buffer(ir.Buffer{Name: "shared", Kind: ir.Activation, DType: ir.F32,
			Shape: []int{f.SMs * dagWidth}, Space: ir.SMEM}, -1))
	}
	d.output, d.token = -1, -1
	if chance(d.Rand, 2) {
		d.output = d.buffer(ir.Buffer{Name: "logits", Role: ir.RoleLogits, Kind: ir.Output, DType: ir.F32,
			Shape: []int{dagWidth}}, -1)
	}
	if chance(d.Rand, 4) {
		d.token = d.buffer(ir.Buffer{Name: "token", Kind: ir.Output, DType: ir.I32, Shape: []int{1}}, -1)
	}
}

// cells returns the cells of a view.
func (d *dag) cells(v dagView) []dagCell {
	b := &d.bufs[v.buf]
	return d.mems[b.mem][v.lo*b.stride : (v.lo+v.n)*b.stride]
}

// defined reports whether a view holds what was written through its buffer, or was there from the start.
func (d *dag) defined(v dagView) bool {
	if d.bufs[v.buf].input {
		return true
	}
	b := &d.bufs[v.buf]
	cells := d.cells(v)
	for i := range cells {
		initial := b.cache && v.lo+i/b.stride < d.flat.Lo
		if w := cells[i].writer; w < 0 && !initial || w >= 0 && cells[i].buf != v.buf {
			return false
		}
	}
	return true
}

// overlap reports whether two views share memory.
func (d *dag) overlap(v, w dagView) bool {
	a, b := &d.bufs[v.buf], &d.bufs[w.buf]
	return a.mem == b.mem && v.lo*a.stride < (w.lo+w.n)*b.stride && w.lo*b.stride < (v.lo+v.n)*a.stride
}

// operand is a view as the program has it.
func (d *dag) operand(v dagView) ir.Operand {
	b := &d.flat.Buffers[v.buf]
	o := ir.Operand{Buf: b.Name, Dims: make([]ir.Range, len(b.Shape))}
	for i, n := range b.Shape {
		o.Dims[i] = ir.Span(ir.Int(0), ir.Int(n))
	}
	o.Dims[0] = ir.Span(d.row(v, v.lo), d.row(v, v.lo+v.n))
	return o
}

// row is an element of a view's first dimension. In a program for several positions, rows of caches from the first
// position on move with it, and so do all their readers and writers.
func (d *dag) row(v dagView, r int) ir.Expr {
	if d.bufs[v.buf].cache && d.flat.Lo != d.flat.Hi && r >= d.flat.Lo {
		return ir.Symbol(ir.Pos).Add(ir.Int(r - d.flat.Lo))
	}
	return ir.Int(r)
}
