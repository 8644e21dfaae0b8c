package quantised

import (
	"cmp"
	"encoding/binary"
	"math"

	"amkc/importers/checkpoint"
	"amkc/importers/gguf"
	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/ir/half"
)

// This file reads matrices of GGUF files, whose blocks are, number for number, groups of a weight format.

// A block is how a type of GGUF stores some columns of a row.
type block struct {
	element Element
	read    func(to *format.Groups, b []byte) // to has room for one block
}

// blockForms are the types that are streamed as they are stored.
var blockForms = map[string]*recipe{
	"Q4_0": blocksOf(Element{Type: "I4", Group: 32}, readQ40),
	"Q8_0": blocksOf(Element{Type: "I8", Group: 32}, readQ80),
	"Q4_1": blocksOf(Element{Type: "I4", Group: 32, Mins: true}, readQ41),
	"Q5_0": blocksOf(Element{Type: "I5", Group: 32}, readQ50),
	"Q5_1": blocksOf(Element{Type: "I5", Group: 32, Mins: true}, readQ51),
	"Q2_K": blocksOf(Element{Type: "I4", Group: 16, Mins: true, Steps: true}, readQ2K),
	"Q3_K": blocksOf(Element{Type: "I4", Group: 16, Steps: true}, readQ3K),
	"Q4_K": blocksOf(Element{Type: "I4", Group: 32, Mins: true, Steps: true}, readQ4K),
	"Q5_K": blocksOf(Element{Type: "I5", Group: 32, Mins: true, Steps: true}, readQ5K),
	"Q6_K": blocksOf(Element{Type: "I6", Group: 16, Steps: true}, readQ6K),

	"IQ4_NL": blocksOf(Element{Type: "I8", Group: 32}, readIQ4NL),
	"IQ4_XS": blocksOf(Element{Type: "I8", Group: 32, Steps: true}, readIQ4XS),
	"MXFP4":  blocksOf(Element{Type: "I5", Group: 32, Scale: checkpoint.BF16}, readMXFP4),
}

// blocksOf is how blocks of an element are read. Its scales are in fp16, unless it says otherwise.
func blocksOf(e Element, read func(*format.Groups, []byte)) *recipe {
	e.Scale = cmp.Or(e.Scale, checkpoint.F16)
	return &recipe{form: ggufBlocks, block: &block{e, read}}
}

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
	case blockForms[string(t.DType)] != r || !t.InBlocks() || len(t.Shape) != 2:
		return o.bad("is %s %v, and not stored as quantization_config says", t.DType, t.Shape)
	}
	m := &o.m
	m.rows, m.cols = t.Shape[0], t.Shape[1]
	m.Element = r.block.element
	m.blocks = &blockRows{t, gguf.TypeNamed(string(t.DType)), r.block}
	return nil
}

// blockRows are rows of blocks.
type blockRows struct {
	t     checkpoint.Tensor
	of    *gguf.Type
	block *block
}

// read returns n rows from row0 on.
func (b *blockRows) read(m *Matrix, row0, n int) (*format.Groups, error) {
	rowBytes := int(b.of.RowBytes(m.cols))
	raw := make([]byte, n*rowBytes)
	if err := b.t.ReadPieces(raw, row0*rowBytes, len(raw), 0); err != nil {
		return nil, err
	}
	return b.groups(m, raw, row0)
}

// groups are those of whole rows, of which the first is row0.
func (b *blockRows) groups(m *Matrix, raw []byte, row0 int) (*format.Groups, error) {
	e, n := b.block.element, len(raw)/int(b.of.RowBytes(m.cols))
	g := &format.Groups{Cols: m.cols, Group: e.Group, Q: make([]byte, n*m.cols)}
	groups := n * g.PerRow()
	g.Scale = make([]float32, groups)
	if e.Mins {
		g.Min = make([]float32, groups)
	}
	if e.Steps {
		g.Step = make([]int8, groups)
	}
	if e.Steps && e.Mins {
		g.MinStep = make([]int8, groups)
	}
	whole := *g
	whole.Cols = b.of.Elements
	for k := range len(raw) / b.of.Bytes {
		one := whole.Slice(k, k+1)
		b.block.read(&one, raw[k*b.of.Bytes:(k+1)*b.of.Bytes])
		for i, v := range one.Scale {
			if bad := math.IsNaN(float64(v)) || math.IsInf(float64(v), 0); bad || g.Min != nil && !finite(one.Min[i]) {
				if !bad {
					v = one.Min[i]
				}
				return nil, diag.Errorf(codeValues, "tensor "+b.t.Name, "the scale or minimum of row %d, group %d is "+
					"%g; want finite numbers", row0+k*b.of.Elements/m.cols, (k*b.of.Elements%m.cols)/e.Group+i, v)
			}
		}
	}
	return g, nil
}

func finite(f float32) bool { return !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) }

func fp16(b []byte) float32 { return half.FromF16(binary.LittleEndian.Uint16(b)) }

// halves are nibbles of 32 elements, of which the low ones are the first 16, and `high` bits above them.
func halves(q, nibbles []byte, middle byte, high func(i int) byte) {
	for i, two := range nibbles {
		q[i], q[i+16] = (two&15|high(i)<<4)-middle, (two>>4|high(i+16)<<4)-middle
	}
}

func noMore(int) byte { return 0 }

// bitOf takes bit i of 32.
func bitOf(bits []byte) func(i int) byte { return func(i int) byte { return bits[i/8] >> (i % 8) & 1 } }

func readQ40(to *format.Groups, b []byte) {
	to.Scale[0] = fp16(b)
	halves(to.Q, b[2:], 8, noMore)
}

func readQ41(to *format.Groups, b []byte) {
	to.Scale[0], to.Min[0] = fp16(b), fp16(b[2:])
	halves(to.Q, b[4:], 8, noMore)
}

func readQ50(to *format.Groups, b []byte) {
	to.Scale[0] = fp16(b)
	halves(to.Q, b[6:], 16, bitOf(b[2:]))
}

func readQ51(to *format.Groups, b []byte) {
	to.Scale[0], to.Min[0] = fp16(b), fp16(b[2:])
	halves(to.Q, b[8:], 16, bitOf(b[4:]))
}

func readQ80(to *format.Groups, b []byte) {
	to.Scale[0] = fp16(b)
	copy(to.Q, b[2:])
}

// readFours reads 8 groups of 32 elements with scales and minima of 6 bits, which are subtracted. Of 32 bytes, low
// nibbles are one group, and high ones the next.
func readFours(to *format.Groups, b, nibbles []byte, middle byte, high func(i int) byte) {
	scale, least := fp16(b), -fp16(b[2:])
	for k := range to.Scale {
		step, minStep := gguf.ScaleAndMin(b[4:16], k)
		to.Scale[k], to.Min[k], to.Step[k], to.MinStep[k] = scale, least, int8(step), int8(minStep)
	}
	for i := range to.Q {
		to.Q[i] = (nibbles[i/64*32+i%32]>>(i%64/32*4)&15 | high(i)<<4) - middle
	}
}

func readQ4K(to *format.Groups, b []byte) { readFours(to, b, b[16:], 8, noMore) }

func readQ5K(to *format.Groups, b []byte) {
	readFours(to, b, b[48:], 16, func(i int) byte { return b[16+i%32] >> (i / 32) & 1 })
}

func readQ6K(to *format.Groups, b []byte) {
	low, high, steps, scale := b[:128], b[128:192], b[192:208], fp16(b[208:])
	for k := range to.Scale {
		to.Scale[k], to.Step[k] = scale, int8(steps[k])
	}
	for i := range to.Q {
		q := low[i/128*64+i%64]>>(i%128/64*4)&15 | high[i/128*32+i%32]>>(i%128/32*2)&3<<4
		to.Q[i] = q - 32
	}
}

// readQ2K has 4 bits each of a scale and a minimum. Of 32 bytes, the lowest two bits are the first 32 of 128 elements,
// and so on.
func readQ2K(to *format.Groups, b []byte) {
	scale, least := fp16(b[80:]), -fp16(b[82:])
	for k, both := range b[:16] {
		to.Scale[k], to.Min[k], to.Step[k], to.MinStep[k] = scale, least, int8(both&15), int8(both>>4)
	}
	for i := range to.Q {
		to.Q[i] = b[16+i/128*32+i%32]>>(i%128/32*2)&3 - 8
	}
}

func readQ3K(to *format.Groups, b []byte) {
	scale := fp16(b[108:])
	for k := range to.Scale {
		to.Scale[k], to.Step[k] = scale, gguf.ScaleOfQ3K(b[96:108], k)
	}
	for i := range to.Q {
		to.Q[i] = b[32+i/128*32+i%32]>>(i%128/32*2)&3 + b[i%32]>>(i/32)&1<<2 - 4
	}
}

func readIQ4NL(to *format.Groups, b []byte) {
	to.Scale[0] = fp16(b)
	halves(to.Q, b[2:], 0, noMore)
	for i, q := range to.Q {
		to.Q[i] = byte(gguf.Uneven[q])
	}
}

func readIQ4XS(to *format.Groups, b []byte) {
	scale, high := fp16(b), binary.LittleEndian.Uint16(b[2:])
	for k := range to.Scale {
		to.Scale[k] = scale
		to.Step[k] = int8(b[4+k/2]>>(k%2*4)&15|byte(high>>(2*k)&3)<<4) - 32
		halves(to.Q[k*32:(k+1)*32], b[8+k*16:8+(k+1)*16], 0, noMore)
	}
	for i, q := range to.Q {
		to.Q[i] = byte(gguf.Uneven[q])
	}
}

func readMXFP4(to *format.Groups, b []byte) {
	to.Scale[0] = gguf.HalfOfE8M0(b[0])
	halves(to.Q, b[1:], 0, noMore)
	for i, q := range to.Q {
		to.Q[i] = byte(gguf.TwiceE2M1[q])
	}
}
