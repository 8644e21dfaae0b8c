package codegen

import (
	"fmt"
	"slices"

	"amkc/ir"
)

func (r *referenceWriter) norm(n *ir.GraphNode, x value) error {
	gain, err := r.packed(n, 0)
	if err = firstOf(err, r.rounds(n, true, x)); err != nil {
		return err
	}
	if r.reads("add", n) {
		return r.addedNorm(n, x, gain)
	}
	size := n.Shape[0]
	out, scale := r.member(n.Name, "Bits", size), r.scalar(n.Name+"_scale")
	r.value[n.Name] = value{at: out, rounded: true, scale: scale}
	args := append([]string{out, "&" + scale, itoa(size), x.at, gain, r.eps(n)}, offset(n)...)
	return r.launch(launch{name: n.Name, blocks: "1", lines: calls("rmsnorm", args...)})
}

func (r *referenceWriter) layerNorm(n *ir.GraphNode, x value) error {
	if err := r.rounds(n, true, x); err != nil {
		return err
	}
	out := r.member(n.Name, "Bits", n.Shape[0])
	r.value[n.Name] = value{at: out, rounded: true}
	args := []string{out, itoa(n.Shape[0]), x.at, r.eps(n)}
	for k := range n.Weights {
		w, err := r.packed(n, k)
		if err != nil {
			return err
		}
		args = append(args, w)
	}
	return r.launch(launch{name: n.Name, blocks: "1", lines: calls("layernorm", append(args, offset(n)...)...)})
}

func isNormNode(n *ir.GraphNode) bool { return n.Op == "rmsnorm" || n.Op == "layernorm" }

// normHeads is a norm of q or of k: head by head, or of all of it.
func (r *referenceWriter) normHeads(n *ir.GraphNode, x value) error {
	gain, err := r.packed(n, 0, r.order(n)...)
	if err = firstOf(err, r.rounds(n, true, x)); err != nil {
		return err
	}
	size, together := n.Shape[0], n.IntOr("head_dim", n.Shape[0])
	out := r.output(n)
	function, args := "norm_heads", []string{out.at, x.at, itoa(together), gain, r.eps(n)}
	ofEach := n.Weights[0].Shape[0] > together
	if n.Op == "layernorm" || ofEach {
		apart := 0 // from the weights of a head to those of the next
		if ofEach {
			apart = together
		}
		function, args = fmt.Sprintf("%s<%t>", function, n.Op == "layernorm"), append(args,
			itoa(n.IntOr("unit_offset", 0)), itoa(apart))
		if len(n.Weights) > 1 {
			shift, err := r.packed(n, 1, r.order(n)...)
			if err != nil {
				return err
			}
			args = append(args, shift)
		}
	} else {
		args = append(args, offset(n)...)
	}
	return r.launch(launch{name: n.Name, blocks: itoa(size / together), lines: calls(function, args...)})
}

// offset is the argument that says what is added to the weights of a norm, if anything is.
func offset(n *ir.GraphNode) []string {
	if offset := n.IntOr("unit_offset", 0); offset != 0 {
		return []string{itoa(offset)}
	}
	return nil
}

// addedNorm is the norm of a branch: what is added to the residual is the norm itself, rounded as it would be
// published, and not its product with a matrix.
func (r *referenceWriter) addedNorm(n *ir.GraphNode, x value, gain string) error {
	out := r.member(n.Name, "Bits", n.Shape[0])
	r.value[n.Name] = value{at: out, rounded: true}
	return r.launch(launch{name: n.Name, blocks: "1",
		lines: calls("norm_heads", append([]string{out, x.at, itoa(n.Shape[0]), gain, r.eps(n)}, offset(n)...)...)})
}

// reads reports whether a node of the body reads another one, by an op.
func (r *referenceWriter) reads(op string, n *ir.GraphNode) bool {
	return slices.ContainsFunc(r.nodes, func(m ir.GraphNode) bool {
		return m.Op == op && slices.Contains(m.Inputs, n.Name)
	})
}

// isBranch reports whether a node is a product that a norm of its own is added of.
func (r *referenceWriter) isBranch(n *ir.GraphNode) bool {
	return slices.ContainsFunc(r.nodes, func(m ir.GraphNode) bool {
		return m.Op == "rmsnorm" && m.Inputs[0] == n.Name && r.reads("add", &m)
	})
}

func (r *referenceWriter) eps(n *ir.GraphNode) string {
	return r.constant("kNormEps", n.FloatOr("eps", r.g.Model.Eps))
}
