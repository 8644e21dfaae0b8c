package passes

import (
	"slices"
	"strconv"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/transform"
	"amkc/passes/rewrite"
)

// This file declares the buffers of pass lower: of values, of frequencies, and of weights with what they are packed
// from.

// buffer declares a row-major buffer unless it is there already; a name of a layer is that of a family.
func (l *lowerer) buffer(name string, kind ir.BufferKind, dtype ir.DType, space ir.Space, shape ...int) *ir.Buffer {
	b := ir.Buffer{Name: name, Kind: kind, DType: dtype, Shape: shape, Space: space}
	switch {
	case name == ir.NameIn(thisLayer, stream):
		b.Count = len(l.g.Layers) + 1 // the last one is what the layers leave
	case ir.IsFamily(name):
		b.Count = len(l.g.Layers)
	}
	return l.declare(b)
}

// declare adds a buffer unless it is there already. Of a family the layers of the kind in hand have it so; they may
// have it in another form than the kinds before them: in other sizes where their facts are others, and a matrix in a
// format of its own.
func (l *lowerer) declare(b ir.Buffer) *ir.Buffer {
	have := l.buffers.Find(b.Name, l.first)
	if have == nil { // as layers of another kind have it
		bs := l.buffers.Program.Buffers
		if i := slices.IndexFunc(bs, func(of ir.Buffer) bool { return of.Name == b.Name }); i >= 0 {
			have = &bs[i]
		}
	}
	stored := have != nil && (have.DType != b.DType || have.Layout != b.Layout)
	switch {
	case have == nil || rewrite.SameForm(have, &b):
	case have.Kind == b.Kind && b.Count > 0 &&
		(len(l.m.Kinds) > 0 || b.Kind == ir.Weight && stored && slices.Equal(have.Shape, b.Shape)):
	case l.differs != nil:
	case b.Kind == ir.Weight && slices.Equal(have.Shape, b.Shape):
		l.differs = diag.Errorf(codeOrder, "buffer "+b.Name, "is packed from %v in one layer, and from %v in another; "+
			"want layers that pack their weights alike", have.Pieces, b.Pieces)
	default:
		l.differs = diag.Errorf(codeOrder, "buffer "+b.Name, "is %s %v in one layer, and %s %v in another; want "+
			"layers whose values and weights have one shape", have.DType, have.Shape, b.DType, b.Shape)
	}
	l.buffers.DeclareIn(b, l.layers)
	return l.buffers.Find(b.Name, l.first)
}

// frequencies declares the buffer of the frequencies that layers of a kind rotate by, unless it is there, and returns
// its name. Those of the second table of angles on have a number.
func (l *lowerer) frequencies(kind int) string {
	name, key := invFreqBuffer, invFreqKey
	if owner := l.g.RopeOwner(kind); owner >= 0 {
		key = invFreqOfKind(owner)
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

// weights declares the buffer that a node's weight is packed into, the rows of each of its tensors in an order. In
// layers it is a family, or one for each run of layers that store it alike.
func (l *lowerer) weights(name string, w ir.GraphWeight, order ...transform.Transform) string {
	var pieces []ir.Piece
	for _, t := range w.Tensors() {
		pieces = append(pieces, ir.Piece{Key: t.Key, Chain: t.Chain.Then(order...)})
	}
	as := ir.Storage{DType: l.m.Weights}
	if w.Storage != nil {
		as = *w.Storage
	}
	b := ir.Buffer{Name: name, Kind: ir.Weight, DType: as.DType, Space: ir.HBM, Shape: w.Shape, Pieces: pieces}
	if ir.IsFamily(name) {
		b.Count = len(l.g.Layers)
	}
	if as.Quantised() {
		b.Layout = as.Layout() // of the others, pass tile says what tiles of them are streamed in
	}
	l.declare(b)
	return name
}

// order is how the rows of a node's weights are packed: so that the elements of a pair are side by side, where a
// checkpoint has them otherwise.
func (l *lowerer) order(n *ir.GraphNode) transform.Chain {
	if !l.rotated[n.Name] || l.rope.Interleaved || l.rope.Turned() == 0 {
		return nil
	}
	if turned := l.rope.Turned(); turned < l.facts.HeadDim {
		return transform.Of(transform.Pairs, l.facts.HeadDim, turned)
	}
	return transform.Of(transform.Pairs, l.facts.HeadDim)
}
