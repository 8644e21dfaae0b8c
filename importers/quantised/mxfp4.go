package quantised

import (
	"amkc/importers/checkpoint"
	"amkc/ir/diag"
	"amkc/ir/half"
)

// This file reads MXFP4: elements of e2m1, of which the low half of a byte is the first, and a power of two for each 32
// of them. gpt-oss stores the matrices of experts so, and no others, and compressed-tensors those of any module.

var mxfp4Recipe = recipe{form: mxfp4, bits: 4, group: mxfp4Group, rows: 1, float: true, symmetric: true}

const (
	mxfp4Group = 32
	mxfp4Bytes = mxfp4Group / 2
)

// readOfExperts reads the config of transformers' Mxfp4Config, which gpt-oss is published with.
func readOfExperts(scheme *Scheme, s *settings) {
	s.only("quant_method", "modules_to_not_convert", "dequantize")
	scheme.OfExperts = true
}

// openMXFP4 finds the tensors of a module: its matrices one after another, as the rows of one.
func (o *opener) openMXFP4(*recipe) *diag.Diagnostic {
	blocks, ok := o.c.Tensor(o.module + "_blocks")
	if !ok {
		return nil
	}
	scales, ok := o.c.Tensor(o.module + "_scales")
	if !ok {
		return o.bad("%s_scales is missing", o.module)
	}
	m := &o.m
	m.Parts = append(m.Parts, blocks.Name, scales.Name)
	n := len(blocks.Shape)
	if n < 3 || blocks.Shape[n-1] != mxfp4Bytes || blocks.DType != u8 {
		return o.bad("%s is %s %v; want U8 of rows of groups of %d", blocks.Name, blocks.DType, blocks.Shape,
			mxfp4Bytes)
	}
	if d := o.want(scales, scales.Name, u8, blocks.Shape[:n-1]...); d != nil {
		return d
	}
	m.rows, m.cols = 1, blocks.Shape[n-2]*mxfp4Group
	for _, size := range blocks.Shape[:n-2] {
		if m.rows *= size; m.rows > mostColumns {
			break // which grouped refuses
		}
	}
	m.codes = nibbleRows{blocks, m.cols}
	g := grid{t: scales, dtype: checkpoint.E8M0, rowsEach: 1, rows: m.rows, cols: 1}
	return o.grouped(&g, &mxfp4Recipe)
}

// openPackedMXFP4 finds the scales of a matrix whose elements are in a tensor.
func (o *opener) openPackedMXFP4(r *recipe, t checkpoint.Tensor) *diag.Diagnostic {
	scales, d := o.packedFloats(r, t, u8)
	if d != nil {
		return d
	}
	m := &o.m
	m.codes = nibbleRows{t, m.cols}
	g := grid{t: scales, dtype: checkpoint.E8M0, rowsEach: 1, rows: m.rows, cols: 1}
	return o.grouped(&g, r)
}

// nibbleRows are rows of bytes, whose low halves are the even columns.
type nibbleRows struct {
	t    checkpoint.Tensor
	cols int
}

func (b nibbleRows) read(dst []byte, row0, n int) error {
	raw := dst[len(dst)/2:] // after the part that is written first
	if err := b.t.ReadPieces(raw, row0*b.cols/2, len(raw), 0); err != nil {
		return err
	}
	for i, pair := range raw {
		dst[2*i], dst[2*i+1] = pair&15, pair>>4
	}
	return nil
}

// exponents fills dst with powers of two from their bytes.
func (g *grid) exponents(dst []float32, row0 int) error {
	raw := make([]byte, len(dst))
	if err := g.t.ReadPieces(raw, row0*g.cols, len(raw), 0); err != nil {
		return err
	}
	half.DecodeE8M0(dst, raw)
	return nil
}
