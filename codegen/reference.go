package codegen

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// Reference renders reference.cu from the graph of a model: a plain kernel for each node, in execution order. It takes
// only the addresses of weights and caches from the program, so that the reference for the megakernel does not depend
// on the schedule.
func Reference(p *ir.Program, g *ir.Graph) ([]byte, error) {
	model := p.Model
	model.Name, model.Architecture, model.Eps = g.Model.Name, g.Model.Architecture, g.Model.Eps // labels; norms have it
	if !reflect.DeepEqual(g.Model, model) {
		return nil, diag.Errorf(codeReference, "program", "is of the model %+v, and the graph of %+v; want one model",
			p.Model, g.Model)
	}
	if p.Pass.NumTokens() > 1 {
		return nil, diag.Errorf(codeReference, "program", "takes %d rows of %d sequences in a pass, and the plain "+
			"kernels decode one row of one, with which each row may be compared separately", p.Pass.NumRows(),
			p.Pass.NumSequences())
	}
	b, err := build(p)
	if err != nil {
		return nil, err
	}
	supplied, err := suppliedBy(p, g)
	if err != nil {
		return nil, err
	}
	r := &referenceWriter{builder: b, g: g, supplied: supplied, kernels: map[string]string{},
		d: referenceData{cudaData: b.d}}
	r.d.Kinds = list(kindsOfLayers(g))
	if err := r.body("before the layers", g.Before, nil, 0); err != nil {
		return nil, err
	}
	for kind := range g.Kinds {
		title := "layers"
		if len(g.Kinds) > 1 {
			title = fmt.Sprintf("layers of kind %d: %s", kind, g.Kinds[kind].Name)
		}
		if err := r.body(title, g.Kinds[kind].Nodes, g.Of(kind), kind); err != nil {
			return nil, err
		}
	}
	if err := r.body("after the layers", g.After, nil, 0); err != nil {
		return nil, err
	}
	return render("reference.cu", &r.d)
}

// kindsOfLayers are the kinds of the first layers, which repeat: the shortest list that says the kind of each.
func kindsOfLayers(g *ir.Graph) []string {
	n := 1
	for ; n < len(g.Layers); n++ {
		if slices.Equal(g.Layers[n:], g.Layers[:len(g.Layers)-n]) {
			break
		}
	}
	kinds := make([]string, n)
	for i := range kinds {
		kinds[i] = itoa(g.Layers[i])
	}
	return kinds
}

// referenceData is what reference.cu is rendered from.
type referenceData struct {
	*cudaData
	Constants []field
	Values    []referenceValue
	ByStride  bool // whether some weights advance by kLayerBytes
	Offsets   bool // whether others have a table
	Tables    []tableData
	Bodies    []referenceBody
	Kinds     []string // lines
}

// referenceValue is a member of the struct that holds what operations hand to one another.
type referenceValue struct {
	Type, Name string
	Size       int // elements; 0 for a number
}

// referenceBody are the kernels of the nodes before, in or after the layers.
type referenceBody struct {
	Rule       string
	Kernels    []referenceKernel // those that no body before has
	Operations []string          // lines
}

type referenceKernel struct {
	Name  string
	Lines []string
}

// referenceWriter collects the operations of the bodies.
type referenceWriter struct {
	*builder
	g        *ir.Graph
	supplied map[string][]supply
	d        referenceData
	kernels  map[string]string // text by name

	// Of the body in hand:
	nodes  []ir.GraphNode
	layers []int // nil outside of the layers
	kind   int
	out    referenceBody
	value  map[string]value
	sum    string          // the node whose sum the residual is now
	result map[string]part // nodes whose rows are published rounded, as parts of one vector
}

// A value is what a node has computed, as C++.
type value struct {
	at      string
	rounded bool   // to elements; otherwise it is fp32
	scale   string // of a norm: where 1/rms is, which is not yet in the values
}

// A part is a node's place in a vector that one exchange publishes.
type part struct {
	vector       string
	first, whole int    // where the part begins, and the size of the vector
	last         string // of the parts, the node that is computed last
}

// ruleOf is a title in lines of a comment, of which the last one is filled with dashes.
func ruleOf(title string) string {
	const width = maxLine - 2
	before, line := "", "// ---- "
	for _, word := range strings.Fields(title) {
		if len(line)+len(word)+len(" ----") > width {
			before, line = before+strings.TrimSpace(line)+"\n", "//      "
		}
		line += word + " "
	}
	return before + line + strings.Repeat("-", width-len(line))
}

// body appends the operations of one body.
func (r *referenceWriter) body(title string, nodes []ir.GraphNode, layers []int, kind int) error {
	r.nodes, r.layers, r.kind = nodes, layers, kind
	r.out = referenceBody{Rule: ruleOf(title)}
	r.value, r.sum = map[string]value{ir.Stream: {at: "v.x", rounded: true}}, ir.Stream
	if err := r.handedOver(); err != nil {
		return err
	}
	for i := range nodes {
		if err := r.node(i); err != nil {
			return err
		}
	}
	r.d.Bodies = append(r.d.Bodies, r.out)
	return nil
}

// handedOver finds what is published for attention, or for a convolution: its inputs, or where it normalises them
// itself, what it makes their norms of. The parts lie side by side, as the exchange has them.
func (r *referenceWriter) handedOver() error {
	r.result = map[string]part{}
	for i := range r.nodes {
		op := r.nodes[i].Op
		if op == "gated_attention" || !slices.Contains(mixers, op) {
			continue
		}
		var linears, parts []*ir.GraphNode
		for _, in := range append(slices.Clone(r.nodes[i].Inputs), r.gateOf(&r.nodes[i])...) {
			n, err := r.find(in)
			if err != nil {
				return err
			}
			part := n
			for n.Op == "rope" || isNormNode(n) {
				of, err := r.find(n.Inputs[0])
				if err != nil {
					return err
				}
				if isNormNode(n) {
					part = of
				}
				n = of
			}
			linears, parts = append(linears, r.product(n)), append(parts, part)
		}
		if op != "attention" { // whose parts are in the order of their products
			byIndex := func(a, b *ir.GraphNode) int { return cmp.Compare(r.index(a), r.index(b)) }
			slices.SortFunc(linears, byIndex)
			slices.SortFunc(parts, byIndex)
		}
		whole, first := 0, 0
		for _, n := range parts {
			whole += n.Shape[0]
		}
		vector := strings.TrimPrefix(r.member(stageName(linears), "Bits", whole), "v.")
		last := slices.MaxFunc(parts, func(a, b *ir.GraphNode) int { return cmp.Compare(r.index(a), r.index(b)) })
		for _, n := range parts {
			r.result[n.Name] = part{vector: vector, first: first, whole: whole, last: last.Name}
			first += n.Shape[0]
		}
	}
	return nil
}

// gateOf is the gate of what attention makes, which is published with its inputs; nothing where there is none.
func (r *referenceWriter) gateOf(attention *ir.GraphNode) []string {
	for i := range r.nodes {
		if n := &r.nodes[i]; n.Op == "gated_attention" && n.Inputs[0] == attention.Name {
			return n.Inputs[1:]
		}
	}
	return nil
}

func (r *referenceWriter) index(n *ir.GraphNode) int {
	return slices.IndexFunc(r.nodes, func(m ir.GraphNode) bool { return m.Name == n.Name })
}

// find returns the node of the body with a name.
func (r *referenceWriter) find(name string) (*ir.GraphNode, error) {
	for i := range r.nodes {
		if r.nodes[i].Name == name {
			return &r.nodes[i], nil
		}
	}
	return nil, diag.Errorf(codeReference, "graph", "no node %s before the one that reads it; want one in its body",
		name)
}

// stageName is how the stage of linears is called that are one product: q, k and v are qkv, gate and up are gate_up.
func stageName(linears []*ir.GraphNode) string {
	names, separator := make([]string, len(linears)), ""
	for i, n := range linears {
		names[i] = strings.TrimSuffix(n.Name, "_proj")
		if len(names[i]) > 1 {
			separator = "_"
		}
	}
	return strings.Join(names, separator)
}

// member declares a vector, as large as the largest of its name and type, and returns it as C++.
func (r *referenceWriter) member(name, typ string, size int) string {
	for k := range r.d.Values {
		v := &r.d.Values[k]
		if v.Name == name && v.Type == typ {
			v.Size = max(v.Size, size)
			return "v." + name
		}
		if v.Name == name {
			name += "_" + itoa(r.kind) // a vector of another type in another kind of layers
		}
	}
	r.d.Values = append(r.d.Values, referenceValue{Type: typ, Name: name, Size: size})
	return "v." + name
}

// scalar declares a number and returns it as C++.
func (r *referenceWriter) scalar(name string) string {
	r.member(name, "float", 0)
	return "v." + name
}

// constant names a number, the same for all nodes that have it.
func (r *referenceWriter) constant(name string, v float64) string {
	f := field{Type: "float", Name: name, Value: hexFloat(v), Note: decimal(v)}
	for n := 2; ; n++ {
		k := slices.IndexFunc(r.d.Constants, func(c field) bool { return c.Name == f.Name })
		if k < 0 {
			r.d.Constants = append(r.d.Constants, f)
			return f.Name
		}
		if r.d.Constants[k] == f {
			return f.Name
		}
		f.Name = name + itoa(n)
	}
}

// A launch is one operation of the step.
type launch struct {
	name    string // of the kernel, without amk_ref_
	blocks  string
	repeats string // "" for what the body says
	lines   []string
	stage   string // that is complete after it; "" for none
	result  string // its vector
	size    int
	bytes   string
}

// mostKernelName is how long the name of a kernel, or of a stage, may be in amk::Operation.
const mostKernelName = 31

// launch adds an operation, and its kernel unless there is the same already: nodes of several kinds may be alike.
func (r *referenceWriter) launch(l launch) error {
	const prefix = "amk_ref_"
	text := strings.Join(l.lines, "\n")
	if have, known := r.kernels[l.name]; known && have != text {
		l.name += "_" + itoa(r.kind)
	}
	if _, known := r.kernels[l.name]; !known {
		r.kernels[l.name] = text
		r.out.Kernels = append(r.out.Kernels, referenceKernel{Name: prefix + l.name, Lines: l.lines})
	}
	if err := checkIdentifier("node "+l.name, prefix+l.name); err != nil {
		return err
	}
	if r.layers == nil {
		l.repeats = "kOnce"
	} else if l.repeats == "" {
		l.repeats = "kEachLayer"
	}
	line := fmt.Sprintf("{%q, %s, %s, %d", prefix+l.name, l.blocks, l.repeats, r.kind)
	if l.stage == "" {
		r.out.Operations = append(r.out.Operations, line+"},")
	} else {
		if r.layers != nil {
			l.stage = ir.NameIn(ir.Layer{Known: true, Index: true}, l.stage)
		}
		r.out.Operations = append(r.out.Operations, line+",",
			fmt.Sprintf(" {%q, offsetof(Values, %s), %d, %s}},", l.stage, l.result, l.size, l.bytes))
	}
	if len(prefix+l.name) > mostKernelName || len(l.stage) > mostKernelName {
		return diag.Errorf(codeReference, "node "+l.name, "has a name too long for the kernel %s%s or the stage %q; "+
			"want one of at most %d bytes", prefix, l.name, l.stage, mostKernelName-len(prefix))
	}
	return nil
}
