package quantised

import (
	"amkc/importers/checkpoint"
	"amkc/ir/diag"
)

// This file reads matrices of GGUF files whose blocks are, number for number, groups of a weight format. Blocks of
// other types are no quantised matrices here: their values are read as those of any tensor (Tensor.ReadF32).

// blockForms are how the blocks of a type are stored: a scale in fp16, then 32 elements.
var blockForms = map[string]*recipe{
	"Q4_0": {form: ggufBlocks, bits: 4, group: 32, rows: 1, symmetric: true},
	"Q8_0": {form: ggufBlocks, bits: 8, group: 32, rows: 1, symmetric: true},
}

const scaleBytes = 2 // of a block, before its elements

// readGGUF reads what package gguf says of a file: the types of its matrices, by module.
func readGGUF(scheme *Scheme, s *settings) {
	s.only("quant_method", "types")
	types := s.within("types")
	if types == nil {
		s.fail(NotRead, "types", "is missing: the weights are said to be those of a GGUF file, and this is none; give "+
			"the GGUF file itself, or the original model")
		return
	}
	scheme.head, scheme.Types = true, map[string]string{}
	for _, module := range types.object.Keys() {
		scheme.Types[module] = types.text(module, "")
	}
}

// openGGUF finds the tensor of a module.
func (o *opener) openGGUF(r *recipe) *diag.Diagnostic {
	t, ok := o.tensor("weight")
	switch {
	case r == nil || !ok:
		return nil
	case !t.InBlocks() || len(t.Shape) != 2:
		return o.bad("is %s %v, and not stored as quantization_config says", t.DType, t.Shape)
	}
	m := &o.m
	m.rows, m.cols = t.Shape[0], t.Shape[1]
	blockBytes := scaleBytes + r.group*r.bits/8
	m.codes = blockRows{t, r.bits, m.cols, blockBytes}
	g := grid{t: t, dtype: checkpoint.F16, rowsEach: 1, rows: m.rows, cols: 1, stride: blockBytes}
	return o.grouped(&g, r)
}

// blockRows are rows of blocks: of 4 bits low nibbles are the first half of a block.
type blockRows struct {
	t                      checkpoint.Tensor
	bits, cols, blockBytes int
}

func (b blockRows) read(dst []byte, row0, n int) error {
	const group = 32
	rowBytes := b.cols / group * b.blockBytes
	raw := make([]byte, n*rowBytes)
	if err := b.t.ReadPieces(raw, row0*rowBytes, len(raw), 0); err != nil {
		return err
	}
	for ; len(dst) > 0; dst, raw = dst[group:], raw[b.blockBytes:] {
		q := raw[scaleBytes:b.blockBytes]
		if b.bits == 8 {
			copy(dst[:group], q)
			continue
		}
		for i, two := range q {
			dst[i], dst[i+group/2] = two&15-8, two>>4-8
		}
	}
	return nil
}

// Unfit says why a matrix of a GGUF file is not streamed as it is stored, by its type.
func Unfit(name string) string {
	if blockForms[name] != nil {
		return "in a stage with matrices of another type"
	}
	return "which no weight format has"
}
