package passes

import (
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/transform"
)

// This file makes one stage of each group of stages that pass fuse merges.

func (f *fuser) makeProduct(p *product, g *fusion) (*ir.Stage, error) {
	lead := p.linears[0]
	role := stackName(p.linears)
	name := ir.NameIn(lead.Layer, role)
	var ops []ir.Op
	rows := temp("%y")
	product := lead.Ops[0]
	product.Out, product.In = []ir.Operand{rows}, slices.Clone(product.In)
	if p.norm != nil {
		norm := p.norm.Ops[0]
		norm.Out = []ir.Operand{temp("%n")}
		ops, product.In[0] = append(ops, norm), temp("%n")
	}
	finish, _ := p.finish()
	interleaved := p.last != nil && ir.Ops[p.last.Ops[0].Code].Gated()
	matrix, err := f.stack(name+".weight", interleaved, p.linears, 0)
	if err != nil {
		return nil, err
	}
	total := 0
	for _, l := range p.linears {
		total += l.Dist.Extent
	}
	product.In[1] = view(matrix, product.In[1].Dims...)
	bias, err := f.bias(name+".bias", interleaved, p.linears)
	if err != nil {
		return nil, err
	}
	var add []ir.Op
	if bias != "" {
		add, rows = []ir.Op{{Code: ir.ADD, Out: []ir.Operand{temp("%z")},
			In: []ir.Operand{rows, view(bias, task)}}}, temp("%z")
	}
	st := &ir.Stage{Name: name, Role: role, Layer: lead.Layer, Dist: ofRows(total)}
	pushes := f.buffers.Find(result(lead), f.index).Space == ir.PeerScratch
	handsRows := !pushes && p.last == nil && (len(p.linears) > 1 || len(finish) == 0)
	switch {
	case pushes:
		st.Signal = lead.Signal
	case handsRows:
		st.Signal = f.vector(name, total, p)
	default:
		st.Signal = finish[len(finish)-1].Signal
	}
	ops = append(append(ops, product), add...)
	for i, s := range finish {
		op := f.finished(&s.Ops[0], rows, f.rows(p.linears[:len(p.rotated)]))
		switch last := &ops[len(ops)-1]; {
		case op.Code == ir.SAMPLE: // of the logits, which the host may ask for
			last.Out = []ir.Operand{f.tokens.view(op.In[0].Buf, task)}
			op.In = append(slices.Clone(last.Out), op.In[1:]...)
		case i < len(finish)-1:
			rows = temp("%gated")
			if of := ir.Ops[op.Code].Finisher; of != nil {
				rows = temp("%" + of.Result)
			}
			op.Out = []ir.Operand{rows}
		}
		ops = append(ops, op)
	}
	switch last := &ops[len(ops)-1]; {
	case pushes:
		last.Out = lead.Ops[len(lead.Ops)-1].Out
	case handsRows:
		last.Out = []ir.Operand{f.tokens.view(st.Signal, task)}
	}
	st.Ops = ops
	f.wait(st, f.outside(g))
	return st, nil
}

// finished is an op of a product's finished rows with its views: over the rows of a task.
func (f *fuser) finished(finish *ir.Op, rows ir.Operand, rotated int) ir.Op {
	op := *finish
	switch {
	case op.Code == ir.ROPE:
		op.In = append([]ir.Operand{rows}, op.In[1:]...)
		op.Params = slices.Clone(op.Params)
		for i := range op.Params {
			if op.Params[i].Key == "limit" {
				op.Params[i].Int = ir.Int(rotated) // the rows of the others pass through
			}
		}
	case ir.Ops[op.Code].Gated():
		op.Out = []ir.Operand{f.tokens.view(op.Out[0].Buf, ir.Span(spanA.Div(2), spanB.Div(2)))}
		op.In = []ir.Operand{rows}
	case op.Code == ir.ADD:
		op.In = append([]ir.Operand{op.In[0], rows}, op.In[2:]...)
	case op.Code != ir.SAMPLE:
		op.In = append([]ir.Operand{rows}, op.In[1:]...)
	}
	return op
}

// stackName names a product after its linears: q, k and v are qkv, gate and up are gate_up.
func stackName(linears []*ir.Stage) string {
	names, separator := make([]string, len(linears)), ""
	for i, l := range linears {
		names[i] = strings.TrimSuffix(l.Role, "_proj")
		if len(names[i]) > 1 {
			separator = "_"
		}
	}
	return strings.Join(names, separator)
}

// rows is how many rows linears have together.
func (f *fuser) rows(linears []*ir.Stage) int {
	n := 0
	for _, l := range linears {
		n += f.buffers.Find(l.Ops[0].In[1].Buf, f.index).Shape[0]
	}
	return n
}

// vector declares the vector of a product's rows, and notes that the values of its linears are rows of it.
func (f *fuser) vector(name string, n int, p *product) string {
	of := f.buffers.Family(result(p.linears[0]), f.index)
	dtype := f.m.Activations
	if p.ends[0] == p.linears[0] && len(p.linears) == 1 { // of those that nothing follows
		dtype = of.DType
	}
	f.buffers.DeclareIn(ir.Buffer{Name: name, First: of.First, Count: of.Count, Step: of.Step, Kind: ir.Activation,
		DType: dtype, Shape: f.tokens.shape(n), Space: ir.GlobalScratch}, f.indices)
	first := 0
	for i, l := range p.linears {
		end := p.ends[i]
		f.stacked[result(end)], f.signals[end.Signal] = rowsOf{name, first}, name
		first += f.rows([]*ir.Stage{l})
	}
	return name
}

// stack replaces weights of linears by one buffer that holds the rows of all, in their order or interleaved: a family,
// or one for each that the weights are of. at is the op that reads the weight.
func (f *fuser) stack(name string, interleaved bool, linears []*ir.Stage, at int) (string, error) {
	own := linears[0].Ops[at].In[1].Buf
	if len(linears) == 1 && (f.tables[own] || own == name) {
		return own, nil
	}
	var stacked ir.Buffer
	for k, l := range linears {
		b := f.buffers.Find(l.Ops[at].In[1].Buf, f.index)
		if b == nil || len(b.Pieces) == 0 || interleaved && len(b.Pieces) > 1 || len(b.Shape) == 0 {
			return "", diag.Errorf(codeOrder, "stage "+l.Name, "has no weight of its own; want one as lower "+
				"makes it")
		}
		pieces := slices.Clone(b.Pieces)
		if interleaved {
			turn := transform.Of([]transform.Kind{transform.Even, transform.Odd}[k])
			pieces[0].Chain = pieces[0].Chain.Then(turn...)
		}
		if k == 0 {
			stacked = f.buffers.Family(b.Name, f.index)
			stacked.Name, stacked.Shape, stacked.Pieces = name, slices.Clone(b.Shape), nil
			stacked.Shape[0] = 0
		}
		stacked.Shape[0] += b.Shape[0]
		stacked.Pieces = append(stacked.Pieces, pieces...)
	}
	f.buffers.DeclareIn(stacked, f.indices)
	return name, nil
}

// bias stacks the biases of linears, of which either all have one or none has.
func (f *fuser) bias(name string, interleaved bool, linears []*ir.Stage) (string, error) {
	biased := 0
	for _, l := range linears {
		biased += len(l.Ops) - 1
	}
	switch biased {
	case 0:
		return "", nil
	case len(linears):
		return f.stack(name, interleaved, linears, 1)
	}
	return "", diag.Errorf(codeOrder, "stage "+linears[0].Name,
		"has a bias, or another product of the same vector has, and not all of them; want all or none")
}

// makeSelected joins the ops of a group. What one leaves to the next is a temporary.
func (f *fuser) makeSelected(g *fusion) (*ir.Stage, error) {
	at := slices.IndexFunc(g.members, func(m *ir.Stage) bool { return m.Ops[0].Code == ir.SELECTED })
	s := g.members[at]
	st := &ir.Stage{Name: s.Name, Role: s.Role, Layer: s.Layer, Dist: s.Dist, Signal: last(f.stages, g.members).Signal}
	for i, m := range g.members {
		ops := slices.Clone(m.Ops)
		if i > 0 {
			ops[0].In = slices.Clone(ops[0].In)
			in := 0
			if ops[0].Code == ir.ADD {
				in = 1 // the second term
			}
			ops[0].In[in] = lastOp(st).Out[0]
		}
		if i < len(g.members)-1 {
			name := "%y"
			switch {
			case i < at:
				name = "%n"
			case i > at:
				name = "%scaled"
			}
			ops[len(ops)-1].Out = []ir.Operand{temp(name)}
		}
		st.Ops = append(st.Ops, ops...)
	}
	f.wait(st, f.outside(g))
	return st, nil
}

func (f *fuser) makeAttention(g *fusion) (*ir.Stage, error) {
	s := g.members[slices.IndexFunc(g.members, func(m *ir.Stage) bool { return m.Ops[0].Code == ir.ATTENTION })]
	const role = "attn"
	st := &ir.Stage{Name: ir.NameIn(s.Layer, role), Role: role, Layer: s.Layer, Dist: s.Dist, Signal: s.Signal}
	// The elements of each value that a task reads: of what attention reads as it says, and of what that is made of
	// alike.
	parts := map[string][]ir.Range{}
	for _, o := range s.Ops[0].In {
		if len(o.Dims) == len(f.tokens.shape(1)) {
			parts[o.Buf] = o.Dims
		}
	}
	// Whether norms of heads have weights for each. A norm of all heads does, even where there is one head.
	facts := f.m.Of(s.Layer.N)
	if s.Layer.Index {
		facts = f.m.Of(f.index + s.Layer.N)
	}
	own := slices.ContainsFunc(g.members, func(m *ir.Stage) bool {
		op := &m.Ops[0]
		return takesPart(op) || normsOfAttention(op) && len(op.In) > 1 &&
			f.buffers.Find(op.In[1].Buf, f.index).Shape[0] > facts.HeadDim
	})
	temps := map[string]ir.Operand{}
	for _, m := range slices.Backward(g.members) {
		if part, ok := parts[result(m)]; ok {
			parts[m.Ops[0].In[0].Buf] = part
			temps[result(m)] = temp("%" + headName(m))
		}
	}
	for _, m := range g.members {
		for _, op := range m.Ops {
			op.In = slices.Clone(op.In)
			if normsOfAttention(&op) {
				f.partOfNorm(&op, parts[op.In[0].Buf], own)
			}
			for i, o := range op.In {
				if t, ok := temps[o.Buf]; ok {
					op.In[i] = t
				} else if part, ok := parts[o.Buf]; ok {
					op.In[i] = f.placed(o.Buf, part)
				}
			}
			if t, ok := temps[result(m)]; ok {
				op.Out = []ir.Operand{t}
				op.Params = slices.Clone(op.Params)
				if op.Code == ir.ROPE {
					op.Params = slices.DeleteFunc(op.Params, func(p ir.Param) bool {
						return p.Key == "first" || p.Key == "limit" // of whole heads, not of rows
					})
					setPosition(op.Params, &s.Ops[0])
				}
			}
			st.Ops = append(st.Ops, op)
		}
	}
	f.wait(st, f.outside(g))
	return st, nil
}

// partOfNorm lets a norm take a part of its vector: with the weights of its heads, where these have their own, and the
// mean of all.
func (f *fuser) partOfNorm(op *ir.Op, part []ir.Range, own bool) {
	weights := op.In[1:]
	if takesPart(op) {
		all := slices.Clone(part)
		all[len(all)-1] = op.In[2].Dims[len(all)-1]
		op.In[2], weights = f.placed(op.In[2].Buf, all), op.In[1:2]
	}
	for i := range weights {
		if own {
			weights[i] = view(weights[i].Buf, part[len(part)-1])
		}
	}
}

// placed is a part of a value, where it lies now.
func (f *fuser) placed(value string, part []ir.Range) ir.Operand {
	if to, ok := f.stacked[value]; ok {
		return view(to.vector, shifted(part, to.first)...)
	}
	return view(value, part...)
}

// headName names what is computed of heads: the rotated q is q, and the normalised one qn.
func headName(s *ir.Stage) string {
	name := strings.TrimSuffix(s.Role, "_rope")
	if short, ok := strings.CutSuffix(name, "_norm"); ok {
		return short + "n"
	}
	return name
}

// setPosition lets a rotation turn rows to the positions that they have in attention, which takes those of one
// sequence.
func setPosition(params []ir.Param, attention *ir.Op) {
	for i := range params {
		for _, of := range attention.Params {
			if params[i].Key == "pos" && of.Key == "row" {
				params[i].Int = of.Int
			}
		}
	}
}

// shifted is a part of a vector by elements further on.
func shifted(part []ir.Range, by int) []ir.Range {
	if by == 0 {
		return part
	}
	out := slices.Clone(part)
	r := &out[len(out)-1]
	*r = ir.Span(ir.Int(by).Add(r.Lo), ir.Int(by).Add(r.Hi))
	return out
}

// alone lets a stage that is in no group read rows of the vectors of products, where values are that now.
func (f *fuser) alone(s *ir.Stage) {
	for i := range s.Ops {
		for k, o := range s.Ops[i].In {
			if to, ok := f.stacked[o.Buf]; ok {
				s.Ops[i].In[k] = view(to.vector, shifted(o.Dims, to.first)...)
			}
		}
	}
	f.wait(s, f.outside(&fusion{members: []*ir.Stage{s}}))
}

// outside returns what the members of a group wait for that none of them signals.
func (f *fuser) outside(g *fusion) []ir.Wait {
	var out []ir.Wait
	for _, m := range g.members {
		for _, w := range m.Waits {
			if signal, ok := f.signals[w.Counter]; ok {
				w.Counter = signal
			}
			inside := slices.ContainsFunc(g.members, func(m *ir.Stage) bool { return m.Signal == w.Counter })
			known := slices.ContainsFunc(out, func(have ir.Wait) bool { return have.Counter == w.Counter })
			if !inside && !known {
				out = append(out, w)
			}
		}
	}
	return out
}

// wait gives a stage its waits, but for those that another one of them implies: who signals that one has waited for
// them. A wait for what the stage reads itself stays, because words of an exchange order nothing but themselves.
func (f *fuser) wait(s *ir.Stage, waits []ir.Wait) {
	implied := map[string]bool{}
	var walk func(counter string)
	walk = func(counter string) {
		for _, w := range f.waits[counter] {
			if !implied[w] {
				implied[w] = true
				walk(w)
			}
		}
	}
	for _, w := range waits {
		walk(w.Counter)
	}
	reads := f.reads(s)
	s.Waits = slices.DeleteFunc(slices.Clone(waits), func(w ir.Wait) bool {
		return implied[w.Counter] && !slices.ContainsFunc(f.written[w.Counter], func(buf string) bool {
			return slices.Contains(reads, buf)
		})
	})
	for _, o := range s.Ops {
		for _, out := range o.Out {
			if b := f.buffers.Find(out.Buf, f.index); b != nil && b.Kind == ir.Activation {
				f.written[s.Signal] = append(f.written[s.Signal], out.Buf)
			}
		}
	}
	for _, w := range s.Waits {
		f.waits[s.Signal] = append(f.waits[s.Signal], w.Counter)
	}
}
