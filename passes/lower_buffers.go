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
	b := ir.Buffer{Name: name, Kind: kind, DType: dtype, Shape: shape, Space: space}
	switch {
	case name == ir.NameIn(thisLayer, stream):
		b.Count = len(l.g.Layers) + 1 // the last one is what the layers leave
	case ir.IsFamily(name):
		b.Count = len(l.g.Layers)
	}
	return l.declare(b)
}

// declare adds a buffer unless it is there already, as it has to be then.
func (l *lowerer) declare(b ir.Buffer) *ir.Buffer {
	have := l.buffers.Find(b.Name, b.First)
	if have == nil {
		return l.buffers.Add(b)
	}
	if l.differs == nil && (have.Kind != b.Kind || have.DType != b.DType || !slices.Equal(have.Shape, b.Shape)) {
		l.differs = diag.Errorf(codeOrder, "buffer "+b.Name, "is %s %v in one layer, and %s %v in another; want "+
			"layers whose values and weights have one shape", have.DType, have.Shape, b.DType, b.Shape)
	}
	return have
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
	for _, run := range l.runsOf(name, w) {
		b := l.declare(ir.Buffer{Name: name, First: run.first, Count: run.count, Kind: ir.Weight,
			DType: run.stored.DType, Space: ir.HBM, Shape: w.Shape})
		if b.Pieces != nil && fmt.Sprint(b.Pieces) != fmt.Sprint(pieces) && l.differs == nil {
			l.differs = diag.Errorf(codeOrder, "buffer "+name, "is packed from %v in one layer, and from %v in "+
				"another; want layers that pack their weights alike", b.Pieces, pieces)
		}
		b.Pieces = pieces
		if run.stored.Quantised() {
			b.Layout = run.stored.Layout() // of the others, pass tile says what tiles of them are streamed in
		}
	}
	return name
}

// A storedRun is layers one after another that store a weight alike.
type storedRun struct {
	first, count int // 0, 0: of no layer
	stored       ir.Storage
}

// runsOf are those of a weight by the name of its buffer; of a buffer outside a family there is one.
func (l *lowerer) runsOf(name string, w ir.GraphWeight) []storedRun {
	as := l.storedAs(&w)
	if !ir.IsFamily(name) {
		return []storedRun{{stored: as}}
	}
	byKind, text := make([]ir.Storage, len(l.g.Kinds)), w.String()
	for k := range l.g.Kinds {
		byKind[k] = as
		if other := l.matrices[k][text]; other != nil {
			byKind[k] = l.storedAs(other)
		}
	}
	var runs []storedRun
	for layer, kind := range l.g.Layers {
		last := len(runs) - 1
		if last < 0 || runs[last].stored != byKind[kind] {
			runs, last = append(runs, storedRun{first: layer, stored: byKind[kind]}), last+1
		}
		runs[last].count++
	}
	return runs
}

// storedAs is how a weight is stored.
func (l *lowerer) storedAs(w *ir.GraphWeight) ir.Storage {
	if w.Storage != nil {
		return *w.Storage
	}
	return ir.Storage{DType: l.m.Weights}
}

// matricesOf are the matrices of each kind of layers, by what they are made of.
func matricesOf(g *ir.Graph) []map[string]*ir.GraphWeight {
	out := make([]map[string]*ir.GraphWeight, len(g.Kinds))
	for k := range g.Kinds {
		out[k] = map[string]*ir.GraphWeight{}
		for _, n := range g.Kinds[k].Nodes {
			if n.Op == "linear" {
				out[k][n.Weights[0].String()] = &n.Weights[0]
			}
		}
	}
	return out
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
