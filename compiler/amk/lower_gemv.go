package amk

import (
	"fmt"
	"slices"
)

// A projection is out = x W^T with W of n rows and k columns.
type projection struct {
	label string // "L0.q_proj"
	out   string // name of the output buffer
	kind  BufferKind
	key   string
	n, k  int
	plain bool // never quantised
}

// project emits the tiles of a projection. They share one counter.
func (b *builder) project(p projection, x tensor) tensor {
	out := b.buffer(p.out, p.kind, b.DType, b.Batch, p.n)
	inputs := []int{x.buf}
	rowBytes := p.k * b.DType.Bytes(1)
	if b.quantizes(p) {
		groups := ceilDiv(p.k, b.Quant.Group)
		inputs = append(inputs, b.quantizedWeight(p, groups)...)
		rowBytes = ceilDiv(p.k*b.Quant.Bits, 8) + groups*F16.Bytes(1)
	} else {
		inputs = append(inputs, b.weight(p.key, p.n, p.k))
	}

	rows := b.knobs.tileRows(p.n)
	tiles := ceilDiv(p.n, rows)
	op, note := GEMVTile, fmt.Sprintf("%s (%d tiles)", p.label, tiles)
	if b.Batch > 1 {
		op, note = GEMMTile, fmt.Sprintf("%s (%d tiles, M=%d)", p.label, tiles, b.Batch)
	}
	counter := b.counter(note)
	for i := range tiles {
		offset := i * rows
		width := min(rows, p.n-offset)
		b.task(Task{
			Op:         op,
			Inputs:     slices.Clone(inputs),
			Outputs:    []int{out},
			OutCounter: counter,
			Waits:      []Wait{x.ready},
			Params:     b.tileParams(p, width, offset),
			EstBytes:   Int(width * rowBytes),
			EstFLOPs:   Int(2 * p.k * width * b.Batch),
			Label:      fmt.Sprintf("%s[t%d]", p.label, i),
		})
	}
	return tensor{out, Wait{counter, tiles}}
}

func (b *builder) tileParams(p projection, width, offset int) Object {
	var o Object
	if b.Batch > 1 {
		o.Set("M_tile", Int(b.Batch))
	}
	o.Set("K", Int(p.k))
	o.Set("N_tile", Int(width))
	o.Set("n_off", Int(offset))
	if b.quantizes(p) {
		o.Set("qdtype", Int(int(b.Quant.dtype())))
		o.Set("group", Int(b.Quant.Group))
	}
	return o
}

func (b *builder) quantizes(p projection) bool { return b.Quant != nil && !p.plain }

// quantizedWeight creates the buffers of a quantised weight: weight, scales and, if asymmetric, zeros. No two
// projections share one: a tied lm_head is not quantised.
func (b *builder) quantizedWeight(p projection, groups int) []int {
	b.quantized++
	ids := []int{
		b.weightBuffer(p.key, b.Quant.dtype(), p.n, p.k),
		b.weightBuffer(p.key+".scales", F16, p.n, groups),
	}
	if !b.Quant.Symmetric {
		ids = append(ids, b.weightBuffer(p.key+".zeros", F16, p.n, groups))
	}
	return ids
}

func (z *Quant) dtype() DType {
	if z.Bits == 4 {
		return I4
	}
	return I8
}
