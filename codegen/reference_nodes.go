package codegen

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/transform"
)

// ownValues are the vectors that belong to no node.
var ownValues = []string{"residual", "x", "scores", "row"}

// node appends the operations of a node.
func (r *referenceWriter) node(i int) error {
	n := &r.nodes[i]
	in := make([]value, len(n.Inputs))
	for k, name := range n.Inputs {
		v, known := r.value[name]
		if !known {
			return r.refuse(n, "reads %s; want a node before it", name)
		}
		in[k] = v
	}
	if slices.Contains(ownValues, n.Name) || r.index(n) != i {
		return r.refuse(n, "has a name that is taken; want one of its own, and none of %s",
			strings.Join(ownValues, ", "))
	}
	arity := map[string]int{"embed": 0, "rmsnorm": 1, "layernorm": 1, "linear": 1, "rope": 1, "attention": 3,
		"kv_append": 1, "add": 2, "argmax": 1, "route": 1, "gated_by": 2, "experts_up": 2, "experts_down": 2,
		"short_conv": 3, "delta_rule": 4, "gated_attention": 2}
	finishing := ir.FinishedBy(n.Op)
	if finishing != nil {
		if arity[n.Op] = 1; finishing.Gated() {
			arity[n.Op] = 2
		}
	}
	if want, known := arity[n.Op]; !known || len(in) != want || len(n.Shape) != 1 {
		return r.refuse(n, "is %s of %d values with a result %v; want an operation that reference.cuh has", n.Op,
			len(in), n.Shape)
	}
	switch n.Op {
	case "embed":
		return r.embed(n)
	case "rmsnorm", "layernorm":
		return r.norm(n, in[0])
	case "linear":
		return r.linear(n, in[0])
	case "rope":
		return r.rope(n, in[0])
	case "attention":
		return r.attention(n, in)
	case "kv_append":
		return r.append(i)
	case "add":
		return r.add(n, in[1])
	case "route":
		return r.route(n, in[0])
	case "experts_up":
		return r.expertsUp(n, in[0])
	case "experts_down":
		return r.expertsDown(n, in[0])
	case "gated_by":
		return r.gatedBy(n, in[0])
	case "short_conv":
		return r.shortConv(n, in)
	case "delta_rule":
		return r.deltaRule(n, in)
	case "gated_attention":
		return r.gatedAttention(n, in)
	case "scale":
		return r.inPlace(n, in[0], "kScale", n.FloatOr("scale", 1))
	case "soft_cap":
		return r.inPlace(n, in[0], "kCap", n.FloatOr("cap", 0))
	case "argmax":
		return nil // the host chooses the token
	}
	return r.finish(n, in)
}

func (r *referenceWriter) refuse(n *ir.GraphNode, format string, args ...any) error {
	return diag.Errorf(codeReference, "node "+n.Name, format, args...)
}

// rounds refuses inputs that are not as an operation takes them.
func (r *referenceWriter) rounds(n *ir.GraphNode, rounded bool, in ...value) error {
	for _, v := range in {
		if v.rounded != rounded || v.scale != "" && n.Op != "linear" {
			return r.refuse(n, "%s reads %s, which is rounded: %t; want it rounded: %t", n.Op, v.at, v.rounded, rounded)
		}
	}
	return nil
}

func (r *referenceWriter) embed(n *ir.GraphNode) error {
	table, err := r.packed(n, 0)
	if err != nil {
		return err
	}
	size := n.Shape[0]
	residual, x := r.member("residual", "float", size), r.member("x", "Bits", size)
	r.value[n.Name], r.sum = value{at: x, rounded: true}, n.Name
	args := []string{residual, x, itoa(size), table, "r.token"}
	if scale := n.FloatOr("scale", 1); scale != 1 {
		args = append(args, r.constant("kEmbedScale", scale))
	}
	if len(n.Weights) > 1 {
		positions, err := r.packed(n, 1)
		if err != nil {
			return err
		}
		row := "r.position"
		if offset := n.IntOr("offset", 0); offset != 0 {
			row += " + " + itoa(offset)
		}
		if len(args) == 5 {
			args = append(args, "1")
		}
		args = append(args, positions, row)
	}
	l := launch{name: n.Name, blocks: forEach(size), lines: calls("embed", args...)}
	if !r.builder.d.Replicates { // else no stage publishes it
		l.stage, l.result, l.size, l.bytes = n.Name, "x", size, "Element::kBytes"
	}
	return r.launch(l)
}

// order is how the rows of a node's weights are packed: those of q and k in the pairs of a rotation.
func (r *referenceWriter) order(n *ir.GraphNode) transform.Chain {
	rope := r.g.RopeOf(r.kind)
	if rope.Interleaved || rope.Turned() == 0 {
		return nil
	}
	for i := range r.nodes {
		if m := &r.nodes[i]; slices.Contains(m.Inputs, n.Name) && (m.Op == "rope" ||
			m.Op == "attention" && n.Name != m.Inputs[2] ||
			(len(m.Inputs) == 1 && ir.FinishedBy(m.Op) != nil || isNormNode(m)) && r.order(m) != nil) {
			hd := r.facts().HeadDim
			if turned := rope.Turned(); turned < hd {
				return transform.Of(transform.Pairs, hd, turned)
			}
			return transform.Of(transform.Pairs, hd)
		}
	}
	return nil
}

// mixers are the operations that read what a product has published: attention, what gates it, and what layers have in
// place of it.
var mixers = []string{"attention", "gated_attention", "short_conv", "delta_rule"}

// output is where a node's result goes: among the parts of what is published, rounded, or to a vector of its own.
// What mixers read is rounded, and what is normalised.
func (r *referenceWriter) output(n *ir.GraphNode) value {
	v := value{rounded: n.Op == "rope" || r.isBranch(n) || slices.ContainsFunc(mixers, func(op string) bool {
		return r.reads(op, n)
	})}
	if p, is := r.result[n.Name]; is {
		v.at, v.rounded = plus("v."+p.vector, p.first), true
	} else if v.rounded {
		v.at = r.member(n.Name, "Bits", n.Shape[0])
	} else {
		v.at = r.member(n.Name, "float", n.Shape[0])
	}
	r.value[n.Name] = v
	return v
}

// completes adds the stage that a node is the last part of.
func (r *referenceWriter) completes(n *ir.GraphNode, l launch) launch {
	p, is := r.result[n.Name]
	if !is || p.last != n.Name {
		return l
	}
	l.stage, l.result, l.size, l.bytes = p.vector, p.vector, p.whole, "Element::kBytes"
	return l
}

func (r *referenceWriter) linear(n *ir.GraphNode, x value) error {
	matrix, err := r.packed(n, 0, r.order(n)...)
	if err = firstOf(err, r.rounds(n, true, x)); err != nil {
		return err
	}
	rows, columns := n.Weights[0].Shape[0], n.Weights[0].Shape[1]
	out := r.output(n)
	args := []string{out.at, itoa(rows), matrix, itoa(columns), x.at}
	if x.scale != "" {
		args = append(args, "&"+x.scale)
	}
	if len(n.Weights) > 1 {
		bias, err := r.packed(n, 1, r.order(n)...)
		if err != nil {
			return err
		}
		if x.scale == "" {
			args = append(args, "nullptr")
		}
		args = append(args, bias)
	}
	l := launch{name: n.Name, blocks: fmt.Sprintf("blocks_for_rows(%d)", rows), lines: calls("linear", args...)}
	switch {
	case n.Weights[0].Chain.SharesColumns():
		l.stage, l.result, l.repeats = n.Name, strings.TrimPrefix(out.at, "v."), "kSums"
		l.size, l.bytes = rows, "4"
	case r.isBranch(n):
		l.stage, l.result = stageName([]*ir.GraphNode{n}), strings.TrimPrefix(out.at, "v.")
		l.size, l.bytes = rows, "Element::kBytes"
	case r.reads("route", n):
		l.stage, l.result, l.size, l.bytes = n.Name, strings.TrimPrefix(out.at, "v."), rows, "4"
	}
	return r.launch(r.logits(n, r.completes(n, l), out))
}

// logits says of an operation that it completes the logits, if the choice of a token reads them.
func (r *referenceWriter) logits(n *ir.GraphNode, l launch, at value) launch {
	if slices.ContainsFunc(r.nodes, func(m ir.GraphNode) bool { return m.Op == "argmax" && m.Inputs[0] == n.Name }) {
		l.stage, l.result, l.size, l.bytes = r.product(n).Name, strings.TrimPrefix(at.at, "v."), n.Shape[0], "4"
	}
	return l
}

// inPlace is the function of reference.cuh that is called as the node's op. It changes rows where they are, and takes a
// number.
func (r *referenceWriter) inPlace(n *ir.GraphNode, x value, constant string, number float64) error {
	if err := r.rounds(n, false, x); err != nil {
		return err
	}
	r.value[n.Name] = x
	return r.launch(r.logits(n, launch{name: n.Name, blocks: forEach(n.Shape[0]),
		lines: calls(n.Op, x.at, r.constant(constant, number), itoa(n.Shape[0]))}, x))
}

// product is the linear that a value begins with: the node, or what it changes the rows of.
func (r *referenceWriter) product(n *ir.GraphNode) *ir.GraphNode {
	for n.Op != "linear" && (len(n.Inputs) == 1 || n.Op == "gated_by") {
		next, err := r.find(n.Inputs[0])
		if err != nil {
			return n
		}
		n = next
	}
	return n
}

// isRead reports whether a sum is read by more than the one that goes on from it; the last of a body is.
func (r *referenceWriter) isRead(sum *ir.GraphNode) bool {
	return r.index(sum) == len(r.nodes)-1 || slices.ContainsFunc(r.nodes, func(n ir.GraphNode) bool {
		at := slices.Index(n.Inputs, sum.Name)
		return at > 0 || at == 0 && n.Op != "add"
	})
}

func (r *referenceWriter) add(n *ir.GraphNode, y value) error {
	if n.Inputs[0] != r.sum {
		return r.refuse(n, "adds to %s; want %s, which the residual is then", n.Inputs[0], r.sum)
	}
	branch, err := r.find(n.Inputs[1])
	if err != nil {
		return err
	}
	normed := branch.Op == "rmsnorm"
	if err := r.rounds(n, normed, y); err != nil {
		return err
	}
	r.value[n.Name], r.sum = value{at: "v.x", rounded: true}, n.Name
	args := []string{"v.residual", "v.x", y.at, itoa(n.Shape[0])}
	if len(n.Weights) > 0 {
		factor, err := r.packed(n, 0)
		if err != nil {
			return err
		}
		args = append(args, factor)
	}
	l := launch{name: n.Name, blocks: forEach(n.Shape[0]), lines: calls("add", args...)}
	if !normed && r.isRead(n) { // then the sum is what its stage publishes
		l.stage, l.result = stageName([]*ir.GraphNode{r.product(branch)}), "x"
		l.size, l.bytes = n.Shape[0], "Element::kBytes"
	}
	return r.launch(l)
}

// finish is the function of reference.cuh that is called as the node's op: it takes where the result goes, the vectors,
// the weights if there are any, a number for each parameter, and how many elements there are.
func (r *referenceWriter) finish(n *ir.GraphNode, in []value) error {
	if err := r.rounds(n, false, in...); err != nil {
		return err
	}
	l := launch{name: n.Name, blocks: forEach(n.Shape[0])}
	var out value
	if r.reads("linear", n) || r.isBranch(n) { // its stage ends in it
		out = value{at: r.member(n.Name, "Bits", n.Shape[0]), rounded: true}
		r.value[n.Name] = out
		var linears []*ir.GraphNode
		for _, name := range n.Inputs {
			linear, err := r.find(name)
			if err != nil {
				return err
			}
			linears = append(linears, r.product(linear))
		}
		l.stage, l.result = stageName(linears), strings.TrimPrefix(out.at, "v.")
		l.size, l.bytes = n.Shape[0], "Element::kBytes"
	} else {
		out = r.output(n)
		l = r.logits(n, r.completes(n, l), out)
	}
	args := []string{out.at}
	for _, v := range in {
		args = append(args, v.at)
	}
	if len(n.Weights) > 0 {
		weights, err := r.packed(n, 0)
		if err != nil {
			return err
		}
		args = append(args, weights)
	}
	keys := ir.FinishedBy(n.Op).Finisher.Args
	for _, key := range keys {
		name := "k" + camel(n.Op)
		if len(keys) > 1 {
			name += camel(key)
		}
		args = append(args, r.constant(name, n.FloatOr(key, 0)))
	}
	l.lines = calls(n.Op, append(args, itoa(n.Shape[0]))...)
	return r.launch(l)
}

// forEach is the number of blocks of which each thread has an element.
func forEach(n int) string { return fmt.Sprintf("blocks_for(%d)", n) }

// plus is C++ for a place in a vector.
func plus(vector string, first int) string {
	if first == 0 {
		return vector
	}
	return fmt.Sprintf("%s + %d", vector, first)
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// calls is the body of a kernel: a call, broken where a line ends.
func calls(function string, args ...string) []string {
	const indent = "  "
	lines := []string{indent + function + "("}
	last := &lines[0]
	for i, a := range args {
		a += ","
		if i == len(args)-1 {
			a = strings.TrimSuffix(a, ",") + ");"
		}
		space := " "
		if i == 0 {
			space = ""
		}
		if len(*last)+len(space)+len(a) > maxLine {
			lines = append(lines, indent+strings.Repeat(" ", len(function)+1)+a)
			last = &lines[len(lines)-1]
			continue
		}
		*last += space + a
	}
	return append([]string{indent + "Values& v = values(r);"}, lines...)
}
