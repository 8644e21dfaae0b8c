package codegen

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
)

func (r *referenceWriter) rope(n *ir.GraphNode, x value) error {
	out := r.output(n)
	if r.layers == nil {
		return r.refuse(n, "rotates outside of the layers; want it in one")
	}
	rope, from := r.g.RopeOf(r.kind), frequencies(r.g, r.kind)
	var have []string
	k := slices.IndexFunc(r.builder.d.Rotations, func(t *rotation) bool {
		have = append(have, fmt.Sprintf("%s holds %v", t.angles.Name, t.angles.Pieces))
		return len(t.angles.Pieces) == 1 && t.angles.Pieces[0].String() == from
	})
	if k < 0 {
		return r.refuse(n, "needs %s, and %s", from, strings.Join(have, ", "))
	}
	pairs, table := len(rope.InvFreq), r.builder.d.Rotations[k]
	if b := table.angles; b.Numel() != pairs {
		return r.refuse(n, "needs %d frequencies, and %s holds %d", pairs, b.Name, b.Numel())
	}
	function := "rope"
	switch dims := r.facts().HeadDim; {
	case r.g.Model.Differ(ir.HeadDimOf):
		function = fmt.Sprintf("rope<%d, %d>", pairs, dims)
	case pairs < dims/2:
		function = fmt.Sprintf("rope<%d>", pairs)
	}
	angles := "reinterpret_cast<const float*>(r.weights + " + table.InvFreq + ")"
	args := []string{out.at, x.at, itoa(n.Shape[0]), angles, "r.position"}
	if scale := rope.Scale; scale != 1 {
		args = append(args, r.constant("kRotationScale", scale))
	}
	return r.launch(r.completes(n, launch{name: n.Name, blocks: forEach(n.Shape[0]), lines: calls(function, args...)}))
}

// facts are those of the layers in hand.
func (r *referenceWriter) facts() *ir.LayerFacts {
	if len(r.layers) == 0 {
		return r.g.Model.Of(0)
	}
	return r.g.Model.Of(r.layers[0])
}

// ownHeads is a template argument with the heads of the layers in hand, where layers differ in them.
func (r *referenceWriter) ownHeads() string {
	if !r.g.Model.HeadsDiffer() {
		return ""
	}
	f := r.facts()
	return fmt.Sprintf("<Heads<%d, %d, %d>>", f.Heads, f.KVHeads, f.HeadDim)
}

func (r *referenceWriter) attention(n *ir.GraphNode, in []value) error {
	cache, err := r.cacheOfLayers(n)
	if err = firstOf(err, r.rounds(n, true, in...)); err != nil {
		return err
	}
	m, size := r.facts(), n.Shape[0]
	out := r.member(n.Name, "Bits", size)
	scores := r.member("scores", "float", m.Heads*r.g.Model.MaxSeq)
	r.value[n.Name] = value{at: out, rounded: true}
	args := []string{out, scores, in[0].at, in[1].at, in[2].at, "r.cache", cache, "r.position",
		r.constant("kAttnScale", n.FloatOr("scale", 1))}
	window, limit := n.IntOr("window", 0), n.FloatOr("cap", 0)
	sinks := len(n.Weights) > 0
	if window > 0 || limit != 0 || sinks {
		args = append(args, itoa(window))
	}
	switch {
	case limit != 0:
		args = append(args, r.constant("kScoreCap", limit))
	case sinks:
		args = append(args, "0")
	}
	if sinks {
		of, err := r.packed(n, 0)
		if err != nil {
			return err
		}
		args = append(args, of)
	}
	blocks := "kHeads"
	if r.g.Model.HeadsDiffer() {
		blocks = itoa(m.Heads)
	}
	return r.launch(launch{name: n.Name, blocks: blocks, stage: "attn", result: strings.TrimPrefix(out, "v."),
		size: size, bytes: "Element::kBytes", lines: calls("attention"+r.ownHeads(), args...)})
}

// append puts k and v into the cache: two nodes side by side, and one operation. Before it, it looks at what the
// megakernel has left in the cache.
func (r *referenceWriter) append(i int) error {
	n := &r.nodes[i]
	if i > 0 && r.nodes[i-1].Op == "kv_append" {
		return nil // the second of the two
	}
	k := slices.IndexFunc(r.nodes[:i], func(m ir.GraphNode) bool { return m.Op == "attention" })
	if k < 0 || i+1 == len(r.nodes) || r.nodes[i+1].Op != "kv_append" ||
		!slices.Equal(r.nodes[k].Inputs[1:], []string{n.Inputs[0], r.nodes[i+1].Inputs[0]}) {
		return r.refuse(n, "appends %s; want an attention before it, then its k and its v appended", n.Inputs[0])
	}
	cache, err := r.cacheOfLayers(n)
	if err != nil {
		return err
	}
	key, val := r.value[n.Inputs[0]], r.value[r.nodes[i+1].Inputs[0]]
	size := 2 * n.Shape[0]
	row := r.member("row", "Bits", 2*size)
	if err := r.launch(launch{name: "cached_row", blocks: forEach(size), repeats: "kObserves", stage: "kv",
		result: "row", size: 2 * size, bytes: "Element::kBytes",
		lines: calls("cached_row"+r.ownHeads(), row, key.at, val.at, "r.cache", cache, "r.position")}); err != nil {
		return err
	}
	return r.launch(launch{name: "kv_append", blocks: forEach(size),
		lines: calls("append"+r.ownHeads(), "r.cache", cache, "r.position", key.at, val.at)})
}
