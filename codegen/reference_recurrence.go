package codegen

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/kernel"
)

// deltaRule steps the states of the heads of a layer, a block each.
func (r *referenceWriter) deltaRule(n *ir.GraphNode, in []value) error {
	if err := r.rounds(n, true, in...); err != nil {
		return err
	}
	var places, weights []string
	for _, name := range []string{kernel.Named.Memory, kernel.Named.Pending, kernel.Named.Before} {
		_, role := ir.InLayer(name)
		at, err := r.keptByLayers(n, name, role)
		if err != nil {
			return err
		}
		places = append(places, at)
	}
	for k := range n.Weights {
		w, err := r.packed(n, k)
		if err != nil {
			return err
		}
		weights = append(weights, w)
	}
	weights = append(weights, r.constant("kStateEps", n.FloatOr("eps", 0)))
	f, size := r.facts(), n.Shape[0]
	out := r.member(n.Name, "Bits", size)
	r.value[n.Name] = value{at: out, rounded: true}
	function := fmt.Sprintf("delta_rule<%d, %d, %d, %d, %d>", f.StateHeads, f.StateKeyHeads, f.StateKeys,
		f.StateValues, f.Taps)
	args := slices.Concat([]string{out, in[0].at, in[3].at, in[2].at, in[1].at, "r.cache"}, places,
		[]string{"r.position"}, weights)
	return r.launch(launch{name: n.Name, blocks: itoa(f.StateHeads), stage: n.Name,
		result: strings.TrimPrefix(out, "v."), size: size, bytes: "Element::kBytes", lines: calls(function, args...)})
}

// gatedAttention multiplies what attention has made by the sigmoids of gates.
func (r *referenceWriter) gatedAttention(n *ir.GraphNode, in []value) error {
	if err := r.rounds(n, true, in...); err != nil {
		return err
	}
	size := n.Shape[0]
	out := r.member(n.Name, "Bits", size)
	r.value[n.Name] = value{at: out, rounded: true}
	return r.launch(launch{name: n.Name, blocks: forEach(size), stage: n.Name,
		result: strings.TrimPrefix(out, "v."), size: size, bytes: "Element::kBytes",
		lines: calls("gated_attention", out, in[0].at, in[1].at, itoa(size))})
}
