package passes

import (
	"fmt"
	"slices"
	"strconv"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/transform"
)

// This file declares the buffers of pass lower: of values, of frequencies, and of weights with what they are packed
// from.

// buffer declares a row-major buffer unless it is there already; a name of a layer is that of a family.
func (l *lowerer) buffer(name string, kind ir.BufferKind, dtype ir.DType, space ir.Space, shape ...int) *ir.Buffer {
	if b := l.buffers.find(name, 0); b != nil {
		if l.differs == nil && (b.Kind != kind || b.DType != dtype || !slices.Equal(b.Shape, shape)) {
			l.differs = diag.Errorf(codeOrder, "buffer "+name, "is %s %v in one layer, and %s %v in another; want "+
				"layers whose values and weights have one shape", b.DType, b.Shape, dtype, shape)
		}
		return b
	}
	b := ir.Buffer{Name: name, Kind: kind, DType: dtype, Shape: shape, Space: space}
	switch {
	case name == ir.NameIn(thisLayer, stream):
		b.Count = len(l.g.Layers) + 1 // the last one is what the layers leave
	case ir.IsFamily(name):
		b.Count = len(l.g.Layers)
	}
	return l.buffers.add(b)
}

// frequencies declares the buffer of the frequencies that layers of a kind rotate by, unless it is there, and returns
// its name. Those of the second table of angles on have a number.
func (l *lowerer) frequencies(kind int) string {
	name, key := invFreqBuffer, invFreqKey
	if l.g.Kinds[kind].Rope != nil {
		key = invFreqOfKind(kind)
	}
	k := slices.Index(l.tables, key)
	if k < 0 {
		k = len(l.tables)
		l.tables = append(l.tables, key)
	}
	if k > 0 {
		name += strconv.Itoa(k + 1)
	}
	l.buffer(name, ir.Const, ir.F32, ir.HBM, len(l.g.RopeOf(kind).InvFreq)).Pieces = []ir.Piece{{Key: key}}
	return name
}

// scratch declares the buffer of a value of n elements.
func (l *lowerer) scratch(name string, dtype ir.DType, n int) string {
	l.buffer(name, ir.Activation, dtype, ir.GlobalScratch, l.tokens.shape(n)...)
	return name
}

// weights declares the buffer that a node's weight is packed into, the rows of each of its tensors in an order.
func (l *lowerer) weights(name string, w ir.GraphWeight, order ...transform.Transform) string {
	var pieces []ir.Piece
	for _, t := range w.Tensors() {
		pieces = append(pieces, ir.Piece{Key: t.Key, Chain: t.Chain.Then(order...)})
	}
	as := ir.Storage{DType: l.m.Weights}
	if w.Storage != nil {
		as = *w.Storage
	}
	b := l.buffer(name, ir.Weight, as.DType, ir.HBM, w.Shape...)
	if b.Pieces != nil && fmt.Sprint(b.Pieces) != fmt.Sprint(pieces) && l.differs == nil {
		l.differs = diag.Errorf(codeOrder, "buffer "+name, "is packed from %v in one layer, and from %v in another; "+
			"want layers that pack their weights alike", b.Pieces, pieces)
	}
	b.Pieces = pieces
	if as.Quantised() {
		b.Layout = as.Layout() // of the others, pass tile says what tiles of them are streamed in
	}
	return name
}

// order is how the rows of a node's weights are packed: so that the elements of a pair are side by side, where a
// checkpoint has them otherwise.
func (l *lowerer) order(n *ir.GraphNode) transform.Chain {
	if !l.rotated[n.Name] || l.rope.Interleaved || l.rope.Turned() == 0 {
		return nil
	}
	if turned := l.rope.Turned(); turned < l.m.HeadDim {
		return transform.Of(transform.Pairs, l.m.HeadDim, turned)
	}
	return transform.Of(transform.Pairs, l.m.HeadDim)
}
