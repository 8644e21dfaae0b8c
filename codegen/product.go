package codegen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// A matrix stage is a reader, a product and a finisher: a norm or nothing, GEMV_TILE, and a chain of ops on finished
// rows. The three are emitted together, as a function of stages.h with a line or two for each op.

// stageFunc is a function of stages.h.
type stageFunc struct {
	Name    string // what the kernel calls
	Struct  string // the descriptor
	Stage   string // the name in the IR
	Returns string // "void", or "Best" where the stage looks for the largest logit
	Params  string
	Lines   []string // of its body

	args    []argument // that the kernel passes after its context
	numbers []field    // that are literals of its lines
}

// An argument is the place of a buffer, which the kernel looks up for the layer that it is in.
type argument struct {
	buffer string
	weight bool // an address; else a page
}

// isProduct reports whether ops have the form of a matrix stage: a chain whose first op is the product, or whose
// second is, behind a norm. Its rows go somewhere, be it as they are.
func isProduct(ops []ir.Op) bool {
	if len(ops) > 0 && isNorm(&ops[0]) {
		ops = ops[1:]
	}
	return len(ops) > 0 && ops[0].Code == ir.GEMV && (len(ops) > 1 || !operand(ops[0].Out, 0).IsTemp())
}

func isNorm(o *ir.Op) bool { return o.Code == ir.RMSNORM || o.Code == ir.LAYERNORM }

// product emits the function of a matrix stage.
func (b *builder) product(s *ir.Stage, at site, descriptor string) (*stageFunc, error) {
	w := &productWriter{b: b, s: s, at: at, values: map[string]string{},
		f: &stageFunc{Name: functionName(descriptor), Struct: descriptor, Stage: s.Name, Returns: "void"}}
	ops := s.Ops
	norm := isNorm(&ops[0])
	if norm {
		w.norm(&ops[0])
		ops = ops[1:]
	}
	w.gemv(&ops[0], norm)
	for i := range ops[1:] {
		if err := w.finish(&ops[1+i]); err != nil {
			return nil, err
		}
	}
	if w.err != nil {
		return nil, w.err
	}
	b.breaks(holdsTo(s, bodyProduct, w.want))
	return w.done(), nil
}

// Signature is the head of the function, in lines.
func (f *stageFunc) Signature() []string {
	return call("", "__device__ __forceinline__ "+f.Returns+" "+f.Name+"(C& c"+f.Params+") {")
}

// functionName is the name of a descriptor's function: ShortQkv -> short_qkv_stage. No function of the runtime ends so.
func functionName(descriptor string) string {
	var out strings.Builder
	for i, r := range descriptor {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				out.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		out.WriteRune(r)
	}
	return out.String() + "_stage"
}

// productWriter emits one function, and beside it the ops that the function carries out.
type productWriter struct {
	b       *builder
	s       *ir.Stage
	at      site
	f       *stageFunc
	want    []ir.Op
	opening []string // what stands before the product's comment: weights that rows ask for
	columns int
	reader  string            // what the product is given, as C++
	row     string            // the variable of a finished row
	halved  bool              // two rows have become one
	shaped  bool              // an activation has weights
	values  map[string]string // temporary, or the buffer of the logits -> C++ variable
	product []string          // comment of the product
	chain   []string          // lines of the finisher
	best    bool
	err     error
}

func (w *productWriter) fail(format string, args ...any) {
	if w.err == nil {
		w.err = diag.Errorf(codeStage, "stage "+w.s.Name, format, args...)
	}
}

// param declares a parameter of the function, once for each name.
func (w *productWriter) param(typ, name string, of argument) {
	decl := typ + " " + name
	if !slices.Contains(strings.Split(w.f.Params, ", "), decl) {
		w.f.Params += ", " + decl
		w.f.args = append(w.f.args, of)
	}
}

// norm emits the reader of a vector that is normalised.
func (w *productWriter) norm(o *ir.Op) {
	n := operand(w.s.Ops[1].In, 1)
	if len(n.Dims) == 2 {
		w.columns = w.b.rangeExtent(n.Dims[1])
	}
	in, out, eps := buf(o.In, 0), buf(o.Out, 0), o.FloatOr("eps", 0)
	plusOne := o.IntAt("unit_offset", 0, 0) == 1
	want := ir.Op{Code: o.Code, Out: []ir.Operand{view(out)}, In: []ir.Operand{view(in, upTo(w.columns))},
		Params: []ir.Param{ir.FloatParam("eps", eps)}}
	if plusOne {
		want.Params = append(want.Params, ir.IntParam("unit_offset", ir.Int(1)))
	}
	ofResidual := w.b.readsResidual(w.s)
	var args []string
	if ofResidual {
		want.In[0] = view(in, ownSM, upTo(w.columns))
	} else {
		w.param("const Page", "in", argument{buffer: in})
		args = []string{"in"}
	}
	var weights []string // names of parameters
	for k, name := range []string{"gain", "shift"}[:min(2, len(o.In)-1)] {
		of := buf(o.In, 1+k)
		want.In = append(want.In, view(of, upTo(w.columns)))
		w.param("const u8*", name, argument{of, true})
		weights = append(weights, name)
	}
	w.want = append(w.want, want)
	w.comment(&w.f.Lines, "  ", o)
	w.f.numbers = append(w.f.numbers, field{Type: "float", Name: "eps of stage " + w.s.Name, Value: hexFloat(eps)})
	w.reader = w.variable(out, "")
	reader, known := normReaders[normForm{o.Code, len(weights), plusOne, ofResidual}]
	if !known {
		w.fail("has a %s with %d weights and unit_offset %t before its product, of the residual %t, which no reader "+
			"of the kernel computes", o.Code, len(weights), plusOne, ofResidual)
	}
	if o.Code == ir.LAYERNORM {
		args = slices.Concat(args, []string{hexFloat(eps)}, weights)
	} else {
		args = slices.Concat(args, weights, []string{hexFloat(eps)})
	}
	w.f.Lines = append(w.f.Lines, fmt.Sprintf("  const %s %s{%s};  // %s", reader, w.reader, strings.Join(args, ", "),
		decimal(eps)))
}

// A normForm is what tells the readers of gemv.cuh that normalise from each other.
type normForm struct {
	code     ir.Opcode
	weights  int // one by which rows are multiplied, and one that is added
	plusOne  bool
	residual bool // of the SM, and no vector that is handed over
}

var normReaders = map[normForm]string{
	{ir.RMSNORM, 1, false, false}:   "RmsNorm",
	{ir.RMSNORM, 1, true, false}:    "UnitOffsetRmsNorm",
	{ir.RMSNORM, 1, false, true}:    "ResidualRmsNorm",
	{ir.RMSNORM, 1, true, true}:     "ResidualUnitOffsetRmsNorm",
	{ir.LAYERNORM, 0, false, false}: "BareLayerNorm",
	{ir.LAYERNORM, 1, false, false}: "GainLayerNorm",
	{ir.LAYERNORM, 2, false, false}: "LayerNorm",
	{ir.LAYERNORM, 2, true, false}:  "UnitOffsetLayerNorm",
}

// variable is the C++ variable of a result: named after its temporary, or as given where it has none.
func (w *productWriter) variable(name, otherwise string) string {
	v, isTemp := strings.CutPrefix(name, "%")
	if !isTemp {
		v = otherwise
	}
	if taken := slices.Collect(maps.Values(w.values)); slices.Contains(taken, v) || slices.Contains(ownVariables, v) ||
		checkIdentifier("", v) != nil {
		w.fail("has a temporary %%%s, which cannot be a variable of its function; want another name than %s", v,
			strings.Join(append(slices.Sorted(slices.Values(taken)), ownVariables...), ", "))
	}
	w.values[name] = v
	return v
}

// ownVariables are those that the functions of stages.h have themselves, and words of C++ that a temporary could be
// called.
var ownVariables = []string{"best", "bias", "biases", "c", "const", "curve", "do", "else", "float", "for", "gain",
	"if", "in", "int", "out", "r", "return", "shape", "shift", "while"}

// gemv opens the product.
func (w *productWriter) gemv(o *ir.Op, normed bool) {
	matrix := operand(o.In, 1)
	if len(matrix.Dims) == 2 {
		w.columns = w.b.rangeExtent(matrix.Dims[1])
	}
	in, out := view(buf(o.In, 0)), buf(o.Out, 0)
	rows, columns := taskRows, upTo(w.columns)
	if parts, of := w.b.splitK(w.s, w.at); parts > 1 {
		before := spanA.Div(of).Mul(of) // rows of the parts before that of the task
		rows, columns = ir.Span(spanA.Sub(before), spanB.Sub(before)), block(spanA.Div(of), w.columns, 0)
	}
	if !normed && w.b.readsResidual(w.s) {
		in.Dims = []ir.Range{ownSM, upTo(w.columns)}
		w.reader = "ResidualPlain{}"
	} else if !normed {
		in.Dims = []ir.Range{columns}
		w.param("const Page", "in", argument{buffer: in.Buf})
		w.reader = "Plain{in}"
	} else if w.values[in.Buf] != w.reader {
		w.fail("multiplies %s, and not what its norm has made", in.Buf)
	}
	to := view(out)
	if !to.IsTemp() {
		to.Dims = []ir.Range{taskRows}
	}
	w.want = append(w.want, ir.Op{Code: ir.GEMV, Out: []ir.Operand{to},
		In: []ir.Operand{in, view(matrix.Buf, rows, columns)}})
	w.comment(&w.product, "  ", o)
	if w.row = w.variable(out, "y"); !to.IsTemp() {
		w.store(to, w.row)
	}
}

// finish emits one op of the finisher.
func (w *productWriter) finish(o *ir.Op) error {
	emit := finisherOf(o.Code)
	if emit == nil {
		return diag.Errorf(codeStage, "stage "+w.s.Name, "has %s after its product; on finished rows the kernel has %s",
			o.Code, finishingOps())
	}
	if w.best {
		w.fail("has %s after %s, which ends a stage", o.Code, ir.SAMPLE)
	}
	w.comment(&w.chain, "    ", o)
	emit(w, o)
	return nil
}

// value is the C++ variable of a temporary that an op reads.
func (w *productWriter) value(ops []ir.Operand, k int) string {
	name := buf(ops, k)
	v := w.values[name]
	if v == "" || v == w.reader {
		w.fail("finishes rows from %s, which is no row of its product", name)
	}
	return v
}

// define emits the variable that an op's result is in, and stores it where the op says: in one temporary, or in
// buffers.
func (w *productWriter) define(o *ir.Op, noun, expression string) []ir.Operand {
	first := buf(o.Out, 0)
	v := w.variable(first, noun)
	w.chain = append(w.chain, fmt.Sprintf("    const float %s = %s;", v, expression))
	if strings.HasPrefix(first, "%") {
		return []ir.Operand{view(first)}
	}
	rows := taskRows
	if w.halved {
		rows = taskPairs
	}
	out := make([]ir.Operand, len(o.Out))
	for i := range o.Out {
		out[i] = view(o.Out[i].Buf, rows)
		w.store(out[i], v)
	}
	return out
}

// store emits the store of a row's value into a buffer.
func (w *productWriter) store(to ir.Operand, value string) {
	place, err := w.b.spaceOf(to.Buf, w.at)
	if err != nil && w.err == nil {
		w.err = err
	}
	switch {
	case place == ir.SMEM && !w.halved:
		w.chain = append(w.chain, fmt.Sprintf("    store_residual(c, r, %s);", value))
	case place == ir.HBM && w.b.role(to, w.at) == ir.RoleLogits && !w.halved:
		w.chain = append(w.chain, fmt.Sprintf("    store_logit(c, r, %s);", value))
	case place == ir.GlobalScratch:
		w.param("const Page", "out", argument{buffer: to.Buf})
		if w.f.args[len(w.f.args)-1].buffer != to.Buf {
			w.fail("hands its rows over in %s too; the kernel hands over one vector for each stage", to.Buf)
		}
		call := "publish_row"
		if w.halved {
			call = "publish_pair"
		}
		w.chain = append(w.chain, fmt.Sprintf("    %s(c, r, out, %s);", call, value))
	default:
		w.fail("leaves rows in %s, which lies in %s; the kernel leaves them in a vector of its exchanges, in the "+
			"residual or in the output of role %s", to.Buf, place, ir.RoleLogits)
	}
}

// spaceOf is where the buffer lies that a name stands for at a site.
func (b *builder) spaceOf(name string, at site) (ir.Space, error) {
	ms, err := b.members(name, at.within(name))
	if err != nil {
		return 0, err
	}
	return b.p.Buffers[ms[0].Declared].Space, nil
}

// comment puts the op above its lines.
func (w *productWriter) comment(to *[]string, indent string, o *ir.Op) {
	for _, line := range wrap(ir.PrintOp(o), maxLine-len(indent)-len("// ")) {
		*to = append(*to, indent+"// "+line)
	}
}

func (w *productWriter) done() *stageFunc {
	f := w.f
	if w.best {
		f.Returns = "Best"
		f.Lines = append([]string{"  Best best;"}, f.Lines...)
	}
	f.Lines = slices.Concat(f.Lines, w.opening, w.product)
	f.Lines = append(f.Lines, fmt.Sprintf("  gemv<%s>(c, %s, [&](const Row& r, float %s) {", f.Struct, w.reader, w.row))
	f.Lines = append(append(f.Lines, w.chain...), "  });")
	if w.best {
		f.Lines = append(f.Lines, "  return best;")
	}
	return f
}
