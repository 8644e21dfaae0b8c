package codegen

import (
	"strings"

	"amkc/ir"
)

// shortConv convolves the product of x and B, which it keeps in the cache, and multiplies the result by C. Before it,
// it looks at what the megakernel has left in the cache.
func (r *referenceWriter) shortConv(n *ir.GraphNode, in []value) error {
	cache, err := r.cacheOfLayers(n)
	if err = firstOf(err, r.rounds(n, true, in...)); err != nil {
		return err
	}
	taps, err := r.packed(n, 0)
	if err != nil {
		return err
	}
	size, state := n.Shape[0], r.facts().Convolved()
	rows := []string{in[0].at, in[1].at, "r.cache", cache, "r.position"}
	kind := "<" + itoa(state.Heads) + ", " + itoa(state.Elements) + ">"
	row := r.member("conv_row", "float", 2*size)
	if err := r.launch(launch{name: "conv_row", blocks: forEach(size), repeats: "kObserves", stage: "conv_rows",
		result: strings.TrimPrefix(row, "v."), size: 2 * size, bytes: "4",
		lines: calls("conv_row"+kind, append([]string{row}, rows...)...)}); err != nil {
		return err
	}
	out := r.member(n.Name, "Bits", size)
	r.value[n.Name] = value{at: out, rounded: true}
	args := append([]string{out, in[2].at}, append(rows, taps, itoa(n.IntOr("taps", 1)))...)
	if len(n.Weights) > 1 {
		bias, err := r.packed(n, 1)
		if err != nil {
			return err
		}
		args = append(args, bias)
	}
	return r.launch(launch{name: n.Name, blocks: forEach(size), stage: n.Name,
		result: strings.TrimPrefix(out, "v."), size: size, bytes: "Element::kBytes",
		lines: calls("short_conv"+kind, args...)})
}
