package kernel

import "amkc/ir"

// Product is a matrix stage: a norm or nothing, GEMV_TILE or SELECTED_TILE, and a chain of ops on finished rows. It is
// a function of stages.h, composed of the readers of gemv.cuh and the calls of finish.cuh, and its ops are those of its
// parts. Matrices that are selected are those of the experts that the router has chosen: rows are those of the
// matrices, one after another, or each is the sum of the products with all, which SUM_ROWS adds up.
var Product = declare(&Body{
	Name:          "gemv",
	Emitted:       true,
	Streams:       Tiles,
	ReadsResidual: true,
	Buffers: []Buffer{{Name: "L{i}.ROLE.weight", At: func(s *Stage) *string { return &s.Matrix }},
		{Name: "L{i}.ROLE.bias", At: bias}, // as long as the matrix has rows
		{Name: "L{i}.NORM.weight", At: norm}, {Name: "L{i}.NORM.bias", At: shift},
		{Name: "rope.inv_freq", At: func(s *Stage) *string { return &s.Angles.Frequencies }},
		{Name: "L{i}.xielu.weight", At: curve, Shape: func(*Facts) []int { return []int{4} }},
		{Name: "lm_head.weight", Shape: func(f *Facts) []int { return []int{f.OwnVocab(), f.Hidden} }},
		{Name: "L{i}.qkv.weight", Paired: true, Shape: func(f *Facts) []int { return []int{f.qkvRows(), f.Hidden} }},
		{Name: "L{i}.o.weight", Shape: func(f *Facts) []int { return []int{f.Hidden, f.QueryRows()} }},
		{Name: "L{i}.gate_up.weight", Shape: func(f *Facts) []int { return []int{2 * f.MLP(), f.Hidden} }},
		{Name: "L{i}.up.weight", Shape: func(f *Facts) []int { return []int{f.MLP(), f.Hidden} }},
		{Name: "L{i}.down.weight", Shape: func(f *Facts) []int { return []int{f.Hidden, f.MLP()} }},
		{Name: "L{i}.router.weight", Shape: func(f *Facts) []int { return []int{f.Scores(), f.Hidden} }},
		{Name: "L{i}.experts_up.weight",
			Shape: func(f *Facts) []int { return []int{f.Experts, 2 * f.Intermediate, f.Hidden} }},
		{Name: "L{i}.experts_down.weight",
			Shape: func(f *Facts) []int { return []int{f.Experts, f.Hidden, f.Intermediate} }},
		{Name: "L{i}.input_norm.weight", Shape: hidden}, {Name: "L{i}.post_norm.weight", Shape: hidden},
		{Name: "L{i}.router_norm.weight", Shape: hidden}, {Name: "L{i}.experts_norm.weight", Shape: hidden},
		{Name: "final_norm.weight", Shape: hidden}},
	Norms: map[string]string{"qkv": "input_norm", "gate_up": "post_norm", "up": "post_norm", "lm_head": "final_norm",
		"router": "router_norm", "experts_up": "experts_norm"},
	Vectors: []Vector{
		{Name: "L{i}.qkv", Roles: []string{"qkv"}, Shape: func(f *Facts) []int { return []int{f.qkvRows()} }},
		{Name: "L{i}.h", Roles: []string{"o", "conv_out", "state_out", "attn_add"}, Shape: hidden},
		{Name: "L{i}.o", Shape: hidden}, {Name: "L{i}.down", Shape: hidden},
		{Name: "L{i}.act", Roles: []string{"gate_up", "up"},
			Shape: func(f *Facts) []int { return []int{f.MLP()} }},
		{Name: "L{i}.router", Roles: []string{"router"}, Exact: true,
			Shape: func(f *Facts) []int { return []int{f.Scores()} }},
		{Name: "L{i}.experts_act", Roles: []string{"experts_up"},
			Shape: func(f *Facts) []int { return []int{f.PerToken * f.Intermediate} }}},
	Fields: []Field{rows, grain, count("kColumns", "", func(s *Stage) *int { return &s.Columns }),
		count("kSplitK", "parts of the columns; kRows are those of all",
			func(s *Stage) *int { return &s.SplitK }).unless(1).atMost(maxParts),
		count("kParts", "parts of the columns, whose sums are added in pairs",
			func(s *Stage) *int { return &s.Added }).unless(1).
			wants("1, 2, 4 or 8, of columns that are not cut otherwise", func(_ *Facts, s *Stage) bool {
				return s.Added == 1 || s.Added <= FlushTiles && s.Added&(s.Added-1) == 0 && s.SplitK == 1
			}),
		count("kSelected", "experts that its rows are of, one after another",
			func(s *Stage) *int { return &s.Selected }).unless(1).
			wants("as many as a token has, and whole tiles of each", func(f *Facts, s *Stage) bool {
				return s.Selected == 1 || s.Selected == f.PerToken && s.Rows%(8*s.Selected) == 0
			}),
		count("kSummed", "experts that a row is the sum over", func(s *Stage) *int { return &s.Summed }).unless(1).
			wants("as many as a token has", func(f *Facts, s *Stage) bool {
				return s.Summed == 1 || s.Summed == f.PerToken && s.Selected == 1
			}),
		rotation, rotationStep, tasks,
		holds, readsHeld,
		of("kEmpty", "", func(s *Stage) *bool { return &s.Empty }).says(func(s *Stage) string {
			if s.Empty {
				return "SMs without rows take part too"
			}
			return "SMs without rows skip the stage"
		})},
	Read: func(s *Stage, ops []ir.Op) {
		n := &ops[0]
		if s.In, s.Rounded = name(n.In, 0), name(n.In, 0); n.Code != ir.GEMV {
			s.Norm, s.Shift, s.NormWeights = name(n.In, 1), name(n.In, 2), len(n.In)-1
			readNorm(s, n)
		}
		product := ProductOf(ops)
		s.Matrix, s.Selected, s.Summed = name(product.In, 1), 1, 1
		s.Added = product.IntAt("parts", 0, 1)
		if product.Code == ir.SELECTED {
			s.Ids, s.Bias, s.Shares = name(product.In, 2), name(product.In, 3), name(product.In, 4)
			if s.Summed = find(ops, ir.SumRows).IntAt("parts", 0, 1); s.Summed == 1 {
				s.Selected = chosenBy(product)
			}
		}
		for i := range ops {
			o := &ops[i]
			switch f := ir.Ops[o.Code].Finisher; {
			case o.Code == ir.ADD && len(o.In) > 0 && o.In[0].IsTemp():
				s.Bias = name(o.In, 1)
			case o.Code == ir.ADD:
				s.Residual = name(o.In, 0)
			case o.Code == ir.ROPE:
				s.Angles.Frequencies = name(o.In, 1)
			case o.Code == ir.ScaleBlocks && product.Code == ir.SELECTED:
				s.Shares = name(o.In, 1)
			case o.Code == ir.ScaleBlocks:
				s.Gate = name(o.In, 1)
			case o.Code == ir.SAMPLE:
				s.BestValue, s.BestIndex = name(o.Out, 0), name(o.Out, 1)
			case f != nil && f.Shape != "":
				s.Curve = name(o.In, 1)
			}
		}
	},
})

// isProduct reports whether ops have the form of a matrix stage: a chain whose first op is the product, or whose second
// is, after a norm. Its rows go somewhere, be it as they are.
func isProduct(ops []ir.Op) bool {
	if len(ops) > 0 && (ops[0].Code == ir.RMSNORM || ops[0].Code == ir.LAYERNORM) {
		ops = ops[1:]
	}
	return len(ops) > 0 && (ops[0].Code == ir.GEMV || ops[0].Code == ir.SELECTED) &&
		(len(ops) > 1 || len(ops[0].Out) > 0 && !ops[0].Out[0].IsTemp())
}

// Params are the parameters that the function of a product may have, by their names.
var Params = map[string]Arg{
	"in": page(input), "out": page(output), "gain": address(norm), "shift": address(shift),
	"bias": address(bias), "curve": address(curve)}

func bias(s *Stage) *string  { return &s.Bias }
func curve(s *Stage) *string { return &s.Curve }

// A NormReader is a reader of gemv.cuh that normalises: its arguments after the page of its vector, in order. The one
// without a name is eps.
type NormReader struct {
	Code       ir.Opcode
	UnitOffset bool
	Args       []string
}

// NormReaders are all norm readers. The reader of the SM's residual, which only RMSNORM has, has OfResidual before its
// name, and takes no page.
var NormReaders = map[string]NormReader{
	"RmsNorm":             {ir.RMSNORM, false, []string{"gain", ""}},
	"UnitOffsetRmsNorm":   {ir.RMSNORM, true, []string{"gain", ""}},
	"BareLayerNorm":       {ir.LAYERNORM, false, []string{""}},
	"GainLayerNorm":       {ir.LAYERNORM, false, []string{"", "gain"}},
	"LayerNorm":           {ir.LAYERNORM, false, []string{"", "gain", "shift"}},
	"UnitOffsetLayerNorm": {ir.LAYERNORM, true, []string{"", "gain", "shift"}},
}

// PlainReader reads a vector as it is. With OfResidual before its name, a reader reads the residual of its SM.
const PlainReader, OfResidual = "Plain", "Residual"

// vector is what a stage reads.
func (s *Stage) vector() ir.Operand {
	if s.Resident {
		return view(s.Rounded, ownSM, upTo(s.columns()))
	}
	return view(s.In, upTo(s.columns()))
}

// NormOf is the norm of the vector that a stage reads.
func NormOf(s *Stage) ir.Op {
	n := op(normCode(s), nil, views(s.vector()), normParams(s)...)
	for _, weight := range []string{s.Norm, s.Shift}[:max(0, min(2, s.NormWeights))] {
		n.In = append(n.In, view(weight, upTo(s.columns())))
	}
	return n
}

// GemvOf is the product with the result of the norm, a temporary, or with the vector that the stage reads. If the
// columns are cut into parts, the rows of a task are of one part.
func GemvOf(s *Stage, normed string) ir.Op {
	in, rows, columns := s.vector(), TaskRows, upTo(s.columns())
	if s.SplitK > 1 {
		part := spanA.Div(s.Rows / s.SplitK)
		before := part.Mul(s.Rows / s.SplitK)
		rows, columns = ir.Span(spanA.Sub(before), spanB.Sub(before)), block(part, s.Columns, 0)
		if !s.Resident {
			in.Dims = []ir.Range{columns}
		}
	}
	if normed != "" {
		in = view(normed)
	}
	product := op(ir.GEMV, nil, views(in, view(s.Matrix, rows, columns)))
	if s.Added > 1 {
		product.Params = []ir.Param{ir.IntParam("parts", ir.Int(s.Added))}
	}
	return product
}

// columns are those of all parts that are added up.
func (s *Stage) columns() int { return max(1, s.Added) * s.Columns }

// Sums is how many sums a finished row is added up from: of parts of the columns, or of products with experts.
func (s *Stage) Sums() int { return max(1, s.Added) * max(1, s.Summed) }

// ByExperts reports whether matrices are those of the experts that a router has chosen, for each token its own.
func (s *Stage) ByExperts() bool { return s.Selected > 1 || s.Summed > 1 }

// chosenBy is how many matrices a product selects.
func chosenBy(o *ir.Op) int {
	if len(o.In) < 3 || len(o.In[2].Dims) == 0 {
		return 1
	}
	last := o.In[2].Dims[len(o.In[2].Dims)-1]
	return max(1, last.Hi.At(0)-last.Lo.At(0))
}

// SelectedOf is the product with the matrices of the chosen experts, in place of [GemvOf]; with SUM_ROWS, if a row is
// the sum over several. Their biases are then weighed as the experts are.
func SelectedOf(f *Facts, s *Stage, normed string) []ir.Op {
	ids := view(s.Ids, ownSM, upTo(f.PerToken))
	if s.Summed > 1 {
		each := op(ir.SELECTED, views(view(Each)), views(view(s.In, upTo(s.Summed*s.Columns)),
			view(s.Matrix, upTo(f.Experts), TaskRows, upTo(s.Columns)), ids))
		if s.Bias != "" {
			each.In = append(each.In, view(s.Bias, upTo(f.Experts), TaskRows),
				view(s.Shares, ownSM, upTo(f.PerToken)))
		}
		return []ir.Op{each, op(ir.SumRows, nil, each.Out, ir.IntParam("parts", ir.Int(s.Summed)))}
	}
	in := s.vector()
	if normed != "" {
		in = view(normed)
	}
	rows := upTo(s.Rows / max(1, s.Selected))
	chosen := op(ir.SELECTED, nil, views(in, view(s.Matrix, upTo(f.Experts), rows, upTo(s.Columns)), ids),
		ir.IntParam("first_row", spanA), ir.IntParam("rows", spanB.Sub(spanA)))
	if s.Bias != "" {
		chosen.In = append(chosen.In, view(s.Bias, upTo(f.Experts), rows))
	}
	return []ir.Op{chosen}
}

// Each is what the products with several matrices are called before they are added up.
const Each = "%each"

// ByExpert multiplies what every two finished rows have become by the weight of their expert.
func ByExpert(f *Facts, s *Stage, in ir.Operand) ir.Op {
	return op(ir.ScaleBlocks, nil, views(in, view(s.Shares, ownSM, upTo(f.PerToken))),
		ir.IntParam("first", spanA.Div(2)), ir.IntParam("block", ir.Int(s.Rows/max(1, s.Selected)/2)))
}

// ByGate multiplies finished rows by the gate of the expert that every token has.
func ByGate(s *Stage, in ir.Operand) ir.Op {
	return op(ir.ScaleBlocks, nil, views(in, view(s.Gate, ownSM, upTo(1))), ir.IntParam("first", spanA),
		ir.IntParam("block", ir.Int(s.Rows)))
}

// RopeOf rotates adjacent pairs of finished rows, below a limit, by the angles of the position.
func RopeOf(f *Facts, a *Angles, limit int, in ir.Operand) ir.Op {
	return op(ir.ROPE, nil, views(in, view(a.Frequencies, upTo(a.Pairs))), append([]ir.Param{
		ir.IntParam("head_dim", ir.Int(f.HeadDim)), ir.IntParam("order", ir.Int(1)), ir.IntParam("first", spanA),
		ir.IntParam("limit", ir.Int(limit)), ir.IntParam("pos", position)}, a.Scale...)...)
}

// AddBias adds a bias to each finished row, and AddResidual adds the residual.
func AddBias(s *Stage, in ir.Operand) ir.Op {
	return op(ir.ADD, nil, views(in, view(s.Bias, TaskRows)))
}

func AddResidual(s *Stage, in ir.Operand) ir.Op {
	return op(ir.ADD, nil, views(view(s.Residual, TaskRows), in))
}

// Choose finds the largest logit of the rows of an SM.
func Choose(f *Facts, s *Stage, logits ir.Operand) ir.Op {
	best := f.bestOfSM()
	return op(ir.SAMPLE, views(view(s.BestValue, best), view(s.BestIndex, best)), views(logits, settings(f)),
		ir.IntParam("partial", ir.Int(1)), ir.IntParam("first", f.firstToken()), ir.IntParam("pos", position))
}

// Finish returns an op on finished rows that is declared with its call (op.Finisher), with the weights of its
// activation, if any, and its parameters in the order of the declaration.
func Finish(s *Stage, code ir.Opcode, in ir.Operand, args ...float64) ir.Op {
	f := ir.Ops[code].Finisher
	o := op(code, nil, views(in))
	if f.Shape != "" {
		o.In = append(o.In, view(s.Curve, upTo(f.Weights)))
	}
	for i, key := range f.Args {
		o.Params = append(o.Params, ir.FloatParam(key, args[i]))
	}
	return o
}
