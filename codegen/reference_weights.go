package codegen

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/ir/transform"
	"amkc/kernel"
)

// A supply is where the buffers of a program hold what is made of a tensor of the checkpoint: row j of it is row
// first + j*step of the buffer.
type supply struct {
	ir.Member
	first, step int
	chain       transform.Chain // without even and odd, which are first and step
}

// suppliedBy returns what the buffers hold, by state-dict key. The graph says how large a tensor is. Rows are counted
// here and not by package transform, whose word the packed weights are.
func suppliedBy(p *ir.Program, g *ir.Graph) (map[string][]supply, error) {
	shapes := map[string][]int{}
	for w := range g.Weights() {
		shapes[w.Key] = w.Shape
	}
	out := map[string][]supply{}
	for _, m := range ir.BufferDirectory(p).Members() {
		b, first := &p.Buffers[m.Declared], 0
		if b.Kind != ir.Weight {
			continue
		}
		for _, piece := range b.Pieces {
			key, err := ir.ResolveKey(piece.Key, b.Index(m.K))
			shape, known := shapes[key]
			if err != nil || !known {
				return nil, diag.Errorf(codeReference, "buffer "+b.Name, "holds %v, of which no node of the graph "+
					"takes anything", piece)
			}
			switch last := len(shape) - 1; {
			case len(b.Shape) == 1: // elements one by one
				shape = []int{elementsOf(shape)}
			case last > 1 && len(b.Shape) == 3: // the rows of one expert after those of another
				shape = []int{elementsOf(shape[:last]), shape[last]}
			}
			n := rowsOf(shape, piece.Chain)
			s := supply{Member: m, first: first, step: 1, chain: piece.Chain}
			last := len(piece.Chain) - 1
			switch {
			case last >= 0 && piece.Chain[last].Kind == transform.Even:
				s.step, s.chain = 2, s.chain[:last] // and the odd rows follow it
			case last >= 0 && piece.Chain[last].Kind == transform.Odd:
				s.first, s.step, s.chain = first+1, 2, s.chain[:last]
				first += 2 * n
			default:
				first += n
			}
			out[key] = append(out[key], s)
		}
		rows := b.Shape[0]
		if len(b.Shape) == 3 {
			rows *= b.Shape[1]
		}
		if first != rows {
			return nil, diag.Errorf(codeReference, "buffer "+b.Name, "has %d rows, and its pieces have %d", rows,
				first)
		}
	}
	return out, nil
}

func elementsOf(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// rowsOf counts the rows that a chain makes of a tensor.
func rowsOf(shape []int, chain transform.Chain) int {
	rows, columns := shape[0], elementsOf(shape[1:])
	for _, t := range chain {
		switch {
		case t.Kind == transform.Transpose:
			rows, columns = columns, rows
		case t.Kind == transform.Share:
			rows = t.Ints[0]
		case t.Kind == transform.Rows && len(t.Ints) == 2:
			rows = t.Ints[1] - t.Ints[0]
		case t.Kind == transform.Rows:
			rows = rows / t.Ints[2] * (t.Ints[1] - t.Ints[0])
		}
	}
	return rows
}

// held returns where a tensor is held as a node takes it, and else how it is held.
func (r *referenceWriter) held(key string, want transform.Chain) (at supply, known bool, otherwise []supply) {
	for _, s := range r.supplied[key] {
		if s.chain.Equal(want) {
			return s, true, nil
		}
	}
	return supply{}, false, r.supplied[key]
}

// packed is C++ for a weight of a node: where the buffer begins that holds it, and which of its rows it is. Tensors
// that it is made of lie one after the other. order is that of rows which a rotation takes side by side.
func (r *referenceWriter) packed(n *ir.GraphNode, k int, order ...transform.Transform) (string, error) {
	if k >= len(n.Weights) || len(n.Weights[k].Shape) == 0 {
		return "", r.refuse(n, "has %d weights; want weight %d of an %s", len(n.Weights), k, n.Op)
	}
	tensors := n.Weights[k].Tensors()
	places, err := r.places(n, &tensors[0], order)
	if err != nil {
		return "", err
	}
	after := slices.Clone(places)
	for t := 1; t < len(tensors); t++ {
		next, err := r.places(n, &tensors[t], order)
		if err != nil {
			return "", err
		}
		for i := range next {
			b := &after[i]
			b.first += tensors[t-1].Shape[0] * b.step
			if s := &next[i]; s.Declared != b.Declared || s.K != b.K || s.step != b.step || s.first != b.first {
				return "", r.refuse(n, "needs %s after %s; want both in one buffer", tensors[t].Key,
					tensors[t-1].Key)
			}
		}
	}
	at := r.address(n, k, tensors[0].Key, places)
	if q, quantised := r.p.Buffers[places[0].Declared].Format().(format.Quantised); quantised {
		return fmt.Sprintf("{%s, %d, %d, %s}", at, places[0].first, places[0].step, weightFormat(q)), nil
	}
	switch s := &places[0]; {
	case s.step != 1:
		return fmt.Sprintf("{%s, %d, %d}", at, s.first, s.step), nil
	case s.first != 0:
		return fmt.Sprintf("{%s, %d}", at, s.first), nil
	}
	return "{" + at + "}", nil
}

// inLayers are the layers of the body in hand; outside of them it counts as one.
func (r *referenceWriter) inLayers() []int {
	if r.layers == nil {
		return []int{0}
	}
	return r.layers
}

// places are where a tensor of a node is held, layer by layer.
func (r *referenceWriter) places(n *ir.GraphNode, w *ir.GraphWeight, order transform.Chain) ([]supply, error) {
	layers := r.inLayers()
	places := make([]supply, len(layers))
	for t, layer := range layers {
		key, err := ir.ResolveKey(w.Key, layer)
		if err != nil {
			return nil, r.refuse(n, "has the weight %s; want a key with {i} for the layer", w.Key)
		}
		want := w.Chain.Then(order...)
		s, known, otherwise := r.held(key, want)
		if !known {
			if len(otherwise) > 0 {
				return nil, r.refuse(n, "needs %s, and %s holds %s", want.Around(key),
					r.p.Buffers[otherwise[0].Declared].Name, otherwise[0].chain.Around(key))
			}
			return nil, r.refuse(n, "needs %s, which no buffer of the program holds", key)
		}
		if err := r.checkSupply(n, w, key, &s); err != nil {
			return nil, err
		}
		places[t] = s
		if s.first != places[0].first || s.step != places[0].step {
			return nil, r.refuse(n, "needs %s, which lies at other rows of its buffer than in layer %d; want the same "+
				"rows in all", key, layers[0])
		}
	}
	return places, nil
}

// checkSupply refuses a tensor that is packed otherwise than the functions of reference.cuh read it.
func (r *referenceWriter) checkSupply(n *ir.GraphNode, w *ir.GraphWeight, key string, s *supply) error {
	b := &r.p.Buffers[s.Declared]
	dtype, layout := r.g.Model.Weights, ir.RowMajor
	if len(w.Shape) == 1 && w.Storage != nil {
		dtype = w.Storage.DType
	}
	switch {
	case len(w.Shape) == 2 && b.Layout.Kind == ir.Tile8x128 && b.Format() != nil:
		dtype, layout = b.DType, ir.Tile8x128
	case len(w.Shape) == 2 && !strings.HasPrefix(n.Op, "experts_"): // of which it is the biases
		layout = ir.Tile8x32
	}
	switch {
	case b.DType != dtype || b.Layout.Kind != layout:
		return r.refuse(n, "needs %s, and %s holds it as %s in %s; want %s in %s", key, b.Name, b.DType, b.Layout,
			dtype, layout)
	case len(b.Shape) != len(w.Shape) || !slices.Equal(b.Shape[1:], w.Shape[1:]) ||
		s.first+(w.Shape[0]-1)*s.step >= b.Shape[0]:
		return r.refuse(n, "needs %s %v from row %d on, and %s has the shape %v", key, w.Shape, s.first, b.Name,
			b.Shape)
	}
	return nil
}

// address is C++ for where buffers begin: one constant outside of the layers, and for members that follow one another
// layer by layer, and otherwise a table of all layers.
func (r *referenceWriter) address(n *ir.GraphNode, k int, tensor string, places []supply) string {
	first := r.weights[places[0].Declared]
	if r.layers == nil {
		return "r.weights + " + first.constant
	}
	inStep, listed := true, first.table != ""
	for t, layer := range r.layers {
		s := &places[t]
		inStep = inStep && s.Declared == places[0].Declared && s.K == layer &&
			r.weights[s.Declared].stride == layerBytes
		listed = listed && r.weights[s.Declared].table == first.table && r.p.Buffers[s.Declared].Index(s.K) == layer
	}
	if listed {
		r.d.Offsets = true
		return "in_layer(r, " + first.table + ")"
	}
	if inStep {
		r.d.ByStride = true
		return "in_layer(r, " + first.constant + ")"
	}
	// Layers of other kinds have places too, so that kinds that read alike share the table; 0 where there is none.
	values := slices.Repeat([]string{"0"}, len(r.g.Layers))
	for layer := range values {
		key, err := ir.ResolveKey(tensor, layer)
		if err != nil {
			continue
		}
		s, known, _ := r.held(key, places[0].chain)
		if !known {
			continue
		}
		place := r.weights[s.Declared]
		switch values[layer] = place.constant; {
		case place.table != "":
			values[layer] = fmt.Sprintf("%s[%d]", place.table, r.p.Buffers[s.Declared].Index(s.K))
		case s.K > 0:
			values[layer] = fmt.Sprintf("%s + %d * %s", place.constant, s.K, place.stride)
		}
	}
	r.d.Offsets = true
	role := n.Name
	if k > 0 {
		role += "_bias"
	}
	return "in_layer(r, " + r.table("size_t", role, values) + ")"
}

// cacheOfLayers is C++ for the number of a layer's cache in the arena, or for where it begins if they are of several
// sizes.
func (r *referenceWriter) cacheOfLayers(n *ir.GraphNode) (string, error) {
	return r.keptByLayers(n, kernel.Named.Cache, "cache")
}

// keptByLayers is that of what layers keep, which is called like a buffer of theirs.
func (r *referenceWriter) keptByLayers(n *ir.GraphNode, name, role string) (string, error) {
	inOrder := true
	values := slices.Repeat([]string{"0"}, len(r.g.Layers))
	slots := r.cacheSlots(name)
	for layer := range values {
		slot, known := slots[layer]
		if !known {
			if !slices.Contains(r.layers, layer) {
				continue // of another kind
			}
			return "", r.refuse(n, "needs the cache of layer %d; want a stage of that layer whose attention has one",
				layer)
		}
		inOrder, values[layer] = inOrder && slot == layer, itoa(slot)
		if r.cacheAt != nil {
			values[layer] = itoa(r.cacheAt[slot])
		}
	}
	if r.cacheAt != nil {
		return r.table("size_t", role, values) + "[r.layer]", nil
	}
	if inOrder {
		return "r.layer", nil
	}
	return r.table("int", role, values) + "[r.layer]", nil
}

// table declares a list with a place for each layer, unless there is the same already.
func (r *referenceWriter) table(typ, role string, values []string) string {
	t := tableData{Type: typ, Name: "k" + camel(role) + "OfLayer", Lines: list(values)}
	for i := range r.d.Tables {
		have := &r.d.Tables[i]
		if have.Name == t.Name && slices.Equal(have.Lines, t.Lines) {
			return t.Name
		}
		if have.Name == t.Name {
			t.Name += itoa(r.kind)
		}
	}
	r.d.Tables = append(r.d.Tables, t)
	return t.Name
}
