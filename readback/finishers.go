package readback

import (
	"slices"
	"strings"

	"amkc/ir"
	ops "amkc/ir/op"
	"amkc/kernel"
)

// What the functions of stages.h compute, by the names of amk/gemv.cuh and amk/finish.cuh that they are made of.

// functions gives each matrix stage its function.
func (b *builder) functions() {
	r := &b.finish
	byDescriptor := map[string]*function{}
	for _, f := range b.finish.funcs {
		if byDescriptor[f.descriptor] != nil {
			r.fail(f.at, "%s is a second function of %s; want one", f.name, f.descriptor)
		}
		byDescriptor[f.descriptor] = f
	}
	for _, d := range b.stages {
		if !d.body.Emitted {
			continue
		}
		if d.function = byDescriptor[d.scope.name]; d.function == nil {
			r.fail(pos{1, 1}, "no function of stage %s; want one that calls gemv<%s>", d.scope.name, d.scope.name)
			continue
		}
		delete(byDescriptor, d.scope.name)
		if f, want := d.function, functionName(d.scope.name); f.name != want {
			r.fail(f.at, "the function of %s is %s; want %s, which the kernel calls", d.scope.name, f.name, want)
		} else if f.best != d.head() {
			r.fail(f.at, "%s returns a Best or not: want one from the head alone", f.name)
		}
	}
	for _, f := range b.finish.funcs {
		if byDescriptor[f.descriptor] == f {
			r.fail(f.at, "%s calls gemv<%s>, which is not a matrix stage of schedule.h", f.name, f.descriptor)
		}
	}
	if b.diags.Err() != nil {
		return
	}
	b.wire()
	if b.diags.Err() != nil {
		return
	}
	for _, d := range b.stages {
		if d.body.Emitted {
			b.finished(d)
		}
	}
}

// functionName is the name of a descriptor's function.
func functionName(descriptor string) string { return snake(descriptor) + "_stage" }

// finished reads the ops of a descriptor's function.
func (b *builder) finished(d *descriptor) {
	c := &chain{b: b, d: d, f: d.function, last: -1}
	c.reader()
	if c.ofExperts() {
		c.ops = append(c.ops, kernel.SelectedOf(b.factsOf(b.layerOf(d)), &d.Stage, c.normed)...)
	} else {
		c.ops = append(c.ops, kernel.GemvOf(&d.Stage, c.normed))
	}
	c.define("%" + d.function.row)
	for i := range d.function.statements {
		c.statement(&d.function.statements[i])
	}
	c.close()
	if c.ofExperts() && c.biased != (d.Bias != "") {
		c.fail(c.f.at, "%s adds no biases first; want those of its experts", c.f.name)
	}
	d.finishedOps = c.ops
}

// chain rebuilds the ops of one function, in order.
type chain struct {
	b      *builder
	d      *descriptor
	f      *function
	normed string // what its norm makes; "" for none
	ops    []ir.Op
	last   int    // the op whose result the stores after it are of; -1 before
	of     string // that result, as a temporary
	halved bool   // two rows have become one
	shapes bool   // the weights of an activation have been used
	biased bool   // and the biases of experts
	ended  bool   // by the largest logit
}

// ofExperts reports whether the product is with matrices of chosen experts.
func (c *chain) ofExperts() bool { return c.d.ByExperts() }

func (c *chain) fail(at pos, format string, args ...any) { c.b.finish.fail(at, format, args...) }

// reader is what the function says of its input.
func (c *chain) reader() {
	r, d := &c.f.reader, c.d
	kind, ofResidual := strings.CutPrefix(r.what, kernel.OfResidual)
	var params []parameter
	args, given := r.args, ofResidual
	if !ofResidual && len(args) > 0 && args[0].name == "in" {
		args, given = args[1:], true
		params = append(params, parameter{"Page", "in"})
	}
	d.Resident = ofResidual
	n, normalises := kernel.NormReaders[kind]
	if !given || ofResidual != (d.In == "") {
		kind, normalises = "", false
	}
	takes := slices.EqualFunc(args, n.Args, func(a argument, name string) bool { return a.name == name })
	switch {
	default:
		c.fail(r.at, "the reader of %s is %s; want Plain{in}, ResidualPlain{}, or a norm of gemv.cuh with its weights "+
			"and EPS", c.f.name, r.what)
	case kind == kernel.PlainReader && r.name == "" && len(args) == 0 && (d.SplitK*d.Added == 1 || !ofResidual):
		if d.SplitK*d.Added > 1 {
			c.b.checkSplit(d)
		}
	case d.SplitK*d.Added > 1:
		c.fail(r.at, "%s reads a norm or the residual, and its columns are cut; want Plain{in}", c.f.name)
	case normalises && r.name != "" && takes && (!ofResidual || n.Code == ir.RMSNORM):
		d.Centred, d.UnitOffset, d.NormWeights = n.Code == ir.LAYERNORM, n.UnitOffset, len(args)-1
		for _, a := range args {
			if a.name == "" {
				d.Eps = a.f
				continue
			}
			params = append(params, parameter{"u8*", a.name})
			if *kernel.Params[a.name].At(&d.Stage) == "" {
				c.fail(r.at, "stage %s is given no %s; want a reader without", d.scope.name, a.name)
			}
		}
		c.normed = "%" + r.name
		norm := kernel.NormOf(&d.Stage)
		norm.Out = []ir.Operand{{Buf: c.normed}}
		c.ops = append(c.ops, norm)
		c.b.p.Model.Eps = d.Eps // of every norm: the proof compares them with it
	}
	c.weights(&params)
	c.shape(&params)
	if out := (parameter{"Page", "out"}); !c.d.head() && slices.Contains(c.f.params, out) {
		params = append(params, out)
	}
	if !slices.Equal(c.f.params, params) {
		c.fail(c.f.at, "%s has other parameters than its reader and its finisher use", c.f.name)
	}
}

// weights is what the function says of the weights that its finisher reads row by row, which are a bias.
func (c *chain) weights(params *[]parameter) {
	w := &c.f.weights
	if w.what == "" {
		return
	}
	if c.d.Bias == "" || c.f.weightsOf != c.d.scope.name || w.name != "biases" || len(w.args) != 2 ||
		w.args[0].name != "c" || w.args[1].name != "bias" {
		c.fail(w.at, "weights of rows in %s; want RowWeights<%s> biases(c, bias), in a stage that has a bias", c.f.name,
			c.d.scope.name)
	}
	*params = append(*params, parameter{"u8*", "bias"})
}

// shaped returns the declaration of the op whose weights become a type, or nil.
func shaped(typ string) *ops.Spec {
	i := slices.IndexFunc(ir.Ops, func(spec *ops.Spec) bool {
		return typ != "" && spec.Finisher != nil && spec.Finisher.Shape == typ
	})
	if i < 0 {
		return nil
	}
	return ir.Ops[i]
}

func isShape(typ string) bool { return shaped(typ) != nil }

// shape is what the function says of the weights of its activation.
func (c *chain) shape(params *[]parameter) {
	s := &c.f.shape
	if s.what == "" {
		return
	}
	if c.d.Curve == "" || s.name != "shape" || len(s.args) != 1 || s.args[0].name != "curve" {
		c.fail(s.at, "the weights of an activation in %s; want %s shape(curve), in a stage that has some", c.f.name,
			s.what)
	}
	*params = append(*params, parameter{"u8*", "curve"})
}

// define makes the last op the one whose result has a name.
func (c *chain) define(temp string) {
	c.close()
	c.last, c.of = len(c.ops)-1, temp
}

// close gives the last result a temporary unless it is stored and no op reads it.
func (c *chain) close() {
	if c.last < 0 {
		return
	}
	o := &c.ops[c.last]
	if len(o.Out) == 0 {
		o.Out = []ir.Operand{{Buf: c.of}}
	}
}

// value is the temporary or the buffer that holds a variable.
func (c *chain) value(at pos, name string) ir.Operand {
	for i := range c.ops {
		for _, o := range c.ops[i].Out {
			if o.Buf == "%"+name {
				return o
			}
		}
	}
	if c.last >= 0 && c.of == "%"+name {
		if o := &c.ops[c.last]; len(o.Out) > 0 {
			return o.Out[len(o.Out)-1] // the logits
		}
		return ir.Operand{Buf: c.of}
	}
	c.fail(at, "%s is not a row of the product", name)
	return ir.Operand{Buf: "%" + name}
}

// rows is the view of what a row of the stage has become.
func (c *chain) rows() ir.Range {
	if c.halved {
		return kernel.TaskPairs
	}
	return kernel.TaskRows
}

// ropeOf reports whether a rotation has numbers as it needs them: below which row, by which table unless it is the
// first, and where layers differ in it how many elements a head has.
func (c *chain) ropeOf(numbers []int) bool {
	if c.b.p.Model.Differ(ir.HeadDimOf) {
		return len(numbers) == 3 && numbers[2] == c.b.factsOf(c.b.layerOf(c.d)).HeadDim
	}
	return len(numbers) == 1 || len(numbers) == 2 && numbers[1] > 0
}

// statement adds what one statement does.
func (c *chain) statement(s *statement) {
	if c.ended {
		c.fail(s.at, "%s after the largest logit; want that to end the finisher", s.spell())
	}
	if s.name == "" {
		c.place(s)
		return
	}
	switch {
	case s.what == "rope" && s.plus == "" && c.ropeOf(s.numbers):
		if v, ok := s.is(len(s.numbers), "c", "r", "*"); ok {
			in, t := c.value(s.at, v[0]), c.b.rotation(&c.b.finish, s.at, 0)
			if len(s.numbers) > 1 {
				t = c.b.rotation(&c.b.finish, s.at, s.numbers[1])
			}
			c.ops = append(c.ops, kernel.RopeOf(c.b.factsOf(c.b.layerOf(c.d)), t, s.numbers[0], in))
			c.define("%" + s.name)
			return
		}
	case s.what == "biases.of" && s.plus != "" && c.f.weights.what != "" && !c.halved:
		if _, ok := s.is(0, "r"); ok && c.ofExperts() {
			if c.biased || c.of != "%"+s.plus || c.last != len(c.ops)-1 || len(c.ops[c.last].Out) > 0 {
				break
			}
			c.biased, c.of = true, "%"+s.name // SELECTED_TILE has them
			return
		} else if ok {
			in := c.value(s.at, s.plus)
			c.ops = append(c.ops, kernel.AddBias(&c.d.Stage, in))
			c.define("%" + s.name)
			return
		}
	case s.what == "by_expert" && s.plus == "" && c.halved && len(s.numbers) == 1 &&
		s.numbers[0]*c.d.Selected == c.d.Rows && c.d.Selected > 1:
		if v, ok := s.is(1, "c", "r", "*"); ok {
			c.ops = append(c.ops, kernel.ByExpert(c.b.factsOf(c.b.layerOf(c.d)), &c.d.Stage, c.value(s.at, v[0])))
			c.define("%" + s.name)
			return
		}
	case s.what == "by_gate" && s.plus == "" && !c.halved && !c.ofExperts():
		if v, ok := s.is(0, "c", "r", "*"); ok {
			c.ops = append(c.ops, kernel.ByGate(&c.d.Stage, c.value(s.at, v[0])))
			c.define("%" + s.name)
			return
		}
	case s.what == "residual" && s.plus != "":
		if _, ok := s.is(0, "c", "r"); ok {
			in := c.value(s.at, s.plus)
			c.ops = append(c.ops, kernel.AddResidual(&c.d.Stage, in))
			c.define("%" + s.name)
			c.d.adds = true
			return
		}
	}
	if !c.declared(s) {
		c.fail(s.at, "%s; want an op of amk/finish.cuh with its arguments", s.spell())
	}
}

// declared adds the op that is declared with the function called, if the call is one of it: perhaps the row, the value,
// perhaps its weights, and a number for each parameter, in the order of the declaration.
func (c *chain) declared(s *statement) bool {
	spec, args := ir.FinishedBy(s.what), s.args
	if spec == nil || s.plus != "" || len(s.numbers) != 0 {
		return false
	}
	if spec.Finisher.Row {
		if len(args) == 0 || args[0].name != "r" {
			return false
		}
		args = args[1:]
	}
	if shape := spec.Finisher.Shape; shape != "" {
		if len(args) != 2 || args[1].name != "shape" || c.f.shape.what != shape || c.shapes {
			return false
		}
		args, c.shapes = args[:1], true
	}
	if len(args) != 1+len(spec.Finisher.Args) || args[0].name == "" || spec.Finisher.Halves && c.halved {
		return false
	}
	var numbers []float64
	for _, a := range args[1:] {
		if a.name != "" {
			return false
		}
		numbers = append(numbers, a.f)
	}
	c.ops = append(c.ops, kernel.Finish(&c.d.Stage, ir.Opcode(spec.Code), c.value(s.at, args[0].name), numbers...))
	c.define("%" + s.name)
	c.halved = c.halved || spec.Finisher.Halves
	return true
}

// exact reports whether the vector of the stage has words of float32 whatever others have.
func (c *chain) exact() bool {
	return slices.ContainsFunc(vectors, func(v vector) bool { return v.Exact && v.Name == c.d.Out })
}

// place adds where the last result goes.
func (c *chain) place(s *statement) {
	if s.what == "best.offer_row" {
		if v, ok := s.is(0, "r", "*"); ok && c.d.head() {
			in := c.value(s.at, v[0])
			c.close()
			c.ops = append(c.ops, kernel.Choose(&c.b.facts.Facts, &c.d.Stage, in))
			c.last, c.ended = -1, true
			return
		}
		c.fail(s.at, "%s; want best.offer_row(r, ROW) in the function of the head", s.spell())
		return
	}
	args := []string{"c", "r", "*"}
	to := ir.Operand{}
	switch {
	case s.what == "store_residual" && !c.halved:
		to = ir.Operand{Buf: c.d.Residual, Dims: []ir.Range{kernel.TaskRows}}
	case s.what == "store_logit" && !c.halved:
		to = ir.Operand{Buf: kernel.Shared[ir.RoleLogits], Dims: []ir.Range{kernel.TaskRows}}
	case s.what == "push_row" && !c.halved && c.b.pushed(c.d.Out):
		to = ir.Operand{Buf: c.d.Out, Dims: kernel.RankRows(kernel.TaskRows)}
		args = []string{"c", "r", "out", "*"}
	case c.b.pushed(c.d.Out):
	case s.what == "publish_row" && !c.halved && !c.exact(), s.what == "publish_exact" && !c.halved && c.exact(),
		s.what == "publish_pair" && c.halved && !c.exact():
		to, args = ir.Operand{Buf: c.d.Out, Dims: []ir.Range{c.rows()}}, []string{"c", "r", "out", "*"}
	}
	v, ok := s.is(0, args...)
	if to.Buf == "" || !ok || c.last < 0 || "%"+v[0] != c.of {
		c.fail(s.at, "%s; want the last value in a place of amk/finish.cuh, of a row or of a pair as it is",
			s.spell())
		return
	}
	o := &c.ops[c.last]
	o.Out = append(o.Out, to)
}
