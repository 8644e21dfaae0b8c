package codegen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/format"
	"amkc/ir/transform"
)

// What layers with experts are as plain kernels. A router leaves two vectors: which experts it has chosen, and how they
// are weighed.

// idsOf is the vector of the experts that a router has chosen, as C++.
func (r *referenceWriter) idsOf(route string, k int) string { return r.member(route+"_ids", "int", k) }

func (r *referenceWriter) route(n *ir.GraphNode, scores value) error {
	if err := r.rounds(n, false, scores); err != nil {
		return err
	}
	if n.FloatOr("jitter", 0) != 0 {
		return r.refuse(n, "chooses with jitter; want an operation that reference.cuh has")
	}
	k, all, groups := n.Shape[0], r.facts().Experts, n.IntOr("groups", 1)
	out := value{at: r.member(n.Name, "float", k)}
	r.value[n.Name] = out
	ofChosen, renormalise := n.IntOr("chosen_first", 0) != 0, n.IntOr("renormalise", 0) != 0
	function := fmt.Sprintf("route<%t, %t>", ofChosen, renormalise && !ofChosen)
	args := []string{out.at, r.idsOf(n.Name, k), itoa(k), scores.at, itoa(all),
		r.member(n.Name+"_room", "float", all+groups)}
	how := fmt.Sprintf("{%t, %d, %d, %s, %s, %s}", n.IntOr("sigmoid", 0) != 0, groups, n.IntOr("top_groups", 1),
		hexFloat(n.FloatOr("extra", 0)), hexFloat(n.FloatOr("least", 0)), hexFloat(n.FloatOr("scale", 1)))
	bias := "{}"
	if len(n.Weights) > 0 {
		var err error
		if bias, err = r.packed(n, 0); err != nil {
			return err
		}
	}
	switch {
	case r.facts().SharedGates > 0:
		args = append(args, how, bias, "&"+r.gate())
	case bias != "{}":
		args = append(args, how, bias)
	case how != plainChoice:
		args = append(args, how)
	}
	return r.launch(launch{name: n.Name, blocks: "1", lines: calls(function, args...)})
}

// plainChoice is a Choosing of reference_experts.cuh as routers are that say nothing of it.
const plainChoice = "{false, 1, 1, 0x0p+00f, 0x0p+00f, 0x1p+00f}"

// gate is the number that what an expert makes that every token has is multiplied by.
func (r *referenceWriter) gate() string { return r.scalar("shared_gate") }

// gatedBy multiplies by it.
func (r *referenceWriter) gatedBy(n *ir.GraphNode, x value) error {
	if err := r.rounds(n, false, x); err != nil {
		return err
	}
	r.value[n.Name] = x
	return r.launch(launch{name: n.Name, blocks: forEach(n.Shape[0]),
		lines: calls("gated_by", x.at, "&"+r.gate(), itoa(n.Shape[0]))})
}

func (r *referenceWriter) expertsUp(n *ir.GraphNode, x value) error {
	matrices, err := r.experts(n)
	biases, amiss := r.biases(n)
	rounded := r.rounds(&ir.GraphNode{Name: n.Name, Op: "linear"}, true, x)
	if err = firstOf(err, amiss, rounded); err != nil {
		return err
	}
	f, size := r.facts(), n.Shape[0]
	out := value{at: r.member(n.Name, "Bits", size), rounded: true}
	r.value[n.Name] = out
	scale := "nullptr"
	if x.scale != "" {
		scale = "&" + x.scale
	}
	route := n.Inputs[1]
	args := []string{out.at, itoa(size), itoa(f.Intermediate), matrices, itoa(r.g.Model.Hidden), x.at, scale,
		r.idsOf(route, f.PerToken), r.value[route].at}
	bound := n.FloatOr("cap", 0)
	if biases != "" || bound > 0 {
		args = append(args, cmp.Or(biases, "{}"))
	}
	if bound > 0 {
		args = append(args, r.constant("kExpertsCap", bound), r.constant("kExpertsScale", n.FloatOr("scale", 1)))
	}
	return r.launch(launch{name: n.Name, blocks: fmt.Sprintf("blocks_for_rows(%d)", size),
		lines: calls("experts_up", args...),
		stage: n.Name, result: strings.TrimPrefix(out.at, "v."), size: size, bytes: "Element::kBytes"})
}

func (r *referenceWriter) expertsDown(n *ir.GraphNode, x value) error {
	matrices, err := r.experts(n)
	biases, amiss := r.biases(n)
	if err = firstOf(err, amiss, r.rounds(n, true, x)); err != nil {
		return err
	}
	f, rows, route := r.facts(), n.Shape[0], n.Inputs[1]
	out := r.output(n)
	args := []string{out.at, itoa(rows), itoa(f.PerToken), matrices, itoa(f.Intermediate), x.at,
		r.idsOf(route, f.PerToken)}
	if biases != "" {
		args = append(args, r.value[route].at, biases)
	}
	return r.launch(launch{name: n.Name, blocks: fmt.Sprintf("blocks_for_rows(%d)", rows),
		lines: calls("experts_down", args...)})
}

// biases is C++ for those of all experts of a node, row by row; "" if it has none.
func (r *referenceWriter) biases(n *ir.GraphNode) (string, error) {
	if len(n.Weights) < 2 {
		return "", nil
	}
	return r.packed(n, 1)
}

// experts is C++ for the matrices of all experts of a node: one after another, and in each the rows as the node has
// them, those of two tensors in turn where it takes them so.
func (r *referenceWriter) experts(n *ir.GraphNode) (string, error) {
	w := &n.Weights[0]
	if len(w.Shape) != 3 {
		return "", r.refuse(n, "takes a weight %v; want matrices of experts", w.Shape)
	}
	tensors, layers := w.Tensors(), r.inLayers()
	places := make([]supply, len(layers))
	next := 0 // the first row of what follows
	for i := range tensors {
		t := &tensors[i]
		rows, chain, want := elementsOf(t.Shape[:len(t.Shape)-1]), t.Chain, supply{first: next, step: 1}
		switch last := len(chain) - 1; {
		case last >= 0 && chain[last].Kind == transform.Even: // rows of the next tensor are between them
			chain, want.step = chain[:last], 2
		case last >= 0 && chain[last].Kind == transform.Odd:
			chain, want.first, want.step = chain[:last], next+1, 2
			next += 2 * rows
		default:
			next += rows
		}
		for k, layer := range layers {
			key, err := ir.ResolveKey(t.Key, layer)
			if err != nil {
				return "", r.refuse(n, "has the weight %s; want a key with {i} for the layer", t.Key)
			}
			s, known, _ := r.held(key, chain)
			if i == 0 {
				places[k] = s
			}
			b := &r.p.Buffers[s.Declared]
			if !known || s.first != want.first || s.step != want.step || s.Declared != places[k].Declared ||
				s.K != places[k].K || !slices.Equal(b.Shape, w.Shape) ||
				b.Layout.Kind != ir.Tile8x32 && b.Layout.Kind != ir.Tile8x128 {
				return "", r.refuse(n, "needs %s from row %d on, one of %d rows, in tiles of one buffer of shape %v",
					key, want.first, want.step, w.Shape)
			}
		}
	}
	at := r.address(n, 0, tensors[0].Key, places)
	if q, quantised := r.p.Buffers[places[0].Declared].Format().(format.Quantised); quantised {
		return fmt.Sprintf("{%s, 0, 1, %s}", at, weightFormat(q)), nil
	}
	return "{" + at + "}", nil
}
