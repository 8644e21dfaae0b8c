package codegen

import (
	"fmt"
	"slices"

	"amkc/ir"
)

// norm is one of a whole vector, whose rms divides the product with it; head by head, or of all heads, as attention
// reads them; or that of a branch, where what is added to the residual is the norm itself, rounded as it would be
// published.
func (r *referenceWriter) norm(n *ir.GraphNode, x value) error {
	size, centred, offset := n.Shape[0], n.Op == "layernorm", n.IntOr("unit_offset", 0)
	ofHeads := n.IntOr("head_dim", 0) > 0 || !centred && (r.reads("rope", n) || r.reads("attention", n))
	weights := make([]string, len(n.Weights))
	if bare := !centred && n.IntOr("head_dim", 0) > 0; !bare && (!centred || ofHeads) {
		weights = make([]string, max(1, len(n.Weights)))
	}
	for k := range weights {
		var err error
		if weights[k], err = r.packed(n, k, r.order(n)...); err != nil {
			return err
		}
	}
	if err := r.rounds(n, true, x); err != nil {
		return err
	}
	out := value{rounded: true}
	if ofHeads {
		out = r.output(n)
	} else {
		out.at = r.member(n.Name, "Bits", size)
	}
	l, function, args := launch{name: n.Name, blocks: "1"}, "", []string(nil)
	switch {
	case ofHeads || !centred && r.reads("add", n):
		together := n.IntOr("head_dim", size)
		l.blocks = itoa(size / together)
		gains, apart := "{}", 0 // from the weights of a head to those of the next
		if len(weights) > 0 {
			if gains = weights[0]; n.Weights[0].Shape[0] > together {
				apart = together
			}
		}
		function, args = "norm_heads", []string{out.at, x.at, itoa(together), gains, r.eps(n)}
		if centred || apart > 0 {
			function = fmt.Sprintf("norm_heads<%t>", centred)
			args = append(append(args, itoa(offset), itoa(apart)), weights[1:]...)
			offset = 0
		}
	case centred:
		function, args = "layernorm", append([]string{out.at, itoa(size), x.at, r.eps(n)}, weights...)
	default:
		out.scale = r.scalar(n.Name + "_scale")
		function, args = "rmsnorm", []string{out.at, "&" + out.scale, itoa(size), x.at, weights[0], r.eps(n)}
	}
	if offset != 0 { // is added to the weights
		args = append(args, itoa(offset))
	}
	r.value[n.Name], l.lines = out, calls(function, args...)
	return r.launch(l)
}

func isNormNode(n *ir.GraphNode) bool { return n.Op == "rmsnorm" || n.Op == "layernorm" }

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
