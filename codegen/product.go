package codegen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
)

// A matrix stage is a reader, a product and a finisher: a norm or nothing, GEMV_TILE or SELECTED_TILE, and a chain of
// ops on finished rows. The three are emitted together, as a function of stages.h with a line or two for each op.

// stageFunc is a function of stages.h.
type stageFunc struct {
	Name    string // what the kernel calls
	Struct  string // the descriptor
	Stage   string // the name in the IR
	Returns string // "void", or "Best" where the stage looks for the largest logit
	Params  string
	Lines   []string // of its body

	args    []kernel.Arg // that the kernel passes after its context
	numbers []field      // that are literals of its lines
}

// product emits the function of a matrix stage.
func (b *builder) product(s *ir.Stage, k *kernel.Stage, at site, descriptor string) (*stageFunc, error) {
	w := &productWriter{b: b, s: s, k: k, at: at, params: map[string]bool{}, values: map[string]string{},
		f: &stageFunc{Name: functionName(descriptor), Struct: descriptor, Stage: s.Name, Returns: "void"}}
	ops := s.Ops
	norm := ops[0].Code != ir.GEMV && ops[0].Code != ir.SELECTED
	if norm {
		w.norm(&ops[0])
		ops = ops[1:]
	}
	ops = w.gemv(ops, norm)
	for i := range ops {
		if err := w.finish(&ops[i]); err != nil {
			return nil, err
		}
	}
	if w.err != nil {
		return nil, w.err
	}
	b.breaks(holdsTo(s, kernel.Product, w.want))
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

// productWriter emits one function, and the ops that the function computes.
type productWriter struct {
	b       *builder
	s       *ir.Stage
	k       *kernel.Stage
	at      site
	f       *stageFunc
	want    []ir.Op
	opening []string          // what stands before the product's comment: weights that rows ask for
	params  map[string]bool   // that the function has
	reader  string            // what the product is given, as C++
	row     string            // the variable of a finished row
	halved  bool              // two rows have become one
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

// param declares a parameter of the function, which is the place of a buffer. One of a name can be declared once.
func (w *productWriter) param(name, buffer string) bool {
	if w.params[name] {
		return false
	}
	p, typ := kernel.Params[name], "const Page"
	if p.Weight {
		typ = "const u8*"
	}
	w.params[name], *p.At(w.k) = true, buffer
	w.f.Params += ", " + typ + " " + name
	w.f.args = append(w.f.args, p)
	return true
}

// norm emits the reader of a vector that is normalised.
func (w *productWriter) norm(o *ir.Op) {
	out, k := buf(o.Out, 0), w.k
	want := kernel.NormOf(k)
	want.Out = []ir.Operand{view(out)}
	w.want = append(w.want, want)
	w.comment(&w.f.Lines, "  ", o)
	w.f.numbers = append(w.f.numbers, field{Type: "float", Name: "eps of stage " + w.s.Name, Value: hexFloat(k.Eps)})
	w.reader = w.variable(out, "")
	reader := ""
	for name, r := range kernel.NormReaders {
		if r.Code == o.Code && r.UnitOffset == k.UnitOffset && len(r.Args) == 1+k.NormWeights &&
			(!k.Resident || r.Code == ir.RMSNORM) {
			reader = name
		}
	}
	if reader == "" {
		w.fail("has a %s with %d weights and unit_offset %t before its product, of the residual %t, which no reader "+
			"of the kernel computes", o.Code, k.NormWeights, k.UnitOffset, k.Resident)
	}
	args := w.vector()
	for _, name := range kernel.NormReaders[reader].Args {
		if name == "" {
			args = append(args, hexFloat(k.Eps))
			continue
		}
		w.param(name, *kernel.Params[name].At(k))
		args = append(args, name)
	}
	if k.Resident {
		reader = kernel.OfResidual + reader
	}
	w.f.Lines = append(w.f.Lines, fmt.Sprintf("  const %s %s{%s};  // %s", reader, w.reader, strings.Join(args, ", "),
		decimal(k.Eps)))
}

// vector is what a reader is built of: the page of its vector, if that is not the residual of the SM.
func (w *productWriter) vector() []string {
	if w.k.Resident {
		return nil
	}
	w.param("in", w.k.In)
	return []string{"in"}
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

// product is the variable of a row before the bias of its expert.
const product = "product"

// ownVariables are those that the functions of stages.h have themselves, and words of C++ that a temporary could be
// called.
var ownVariables = []string{"best", "bias", "biases", "c", "const", "curve", "do", "else", "float", "for", "gain",
	"if", "in", "int", "out", product, "r", "return", "shape", "shift", "while"}

// gemv opens the product, and returns the ops after it: those that its sum is made of belong to it.
func (w *productWriter) gemv(ops []ir.Op, normed bool) []ir.Op {
	temp := ""
	if normed {
		if temp = buf(ops[0].In, 0); w.values[temp] != w.reader {
			w.fail("multiplies %s, and not what its norm has made", temp)
		}
	} else if w.reader = fmt.Sprintf("%s{%s}", kernel.PlainReader, strings.Join(w.vector(), "")); w.k.Resident {
		w.reader = kernel.OfResidual + w.reader
	}
	want := []ir.Op{kernel.GemvOf(w.k, temp)}
	if ops[0].Code == ir.SELECTED {
		want = kernel.SelectedOf(w.b.factsOf(w.s, w.at), w.k, temp)
	}
	if len(want) > len(ops) {
		w.fail("ends in %s; want %s after it", ops[0].Code, want[len(ops)].Code)
		return nil
	}
	for i := range want {
		w.comment(&w.product, "  ", &ops[i])
	}
	last := &want[len(want)-1]
	out := buf(ops[len(want)-1].Out, 0)
	to := view(out)
	if !to.IsTemp() {
		to.Dims = w.rowsIn(out, kernel.TaskRows)
	}
	last.Out = []ir.Operand{to}
	w.want = append(w.want, want...)
	if w.row = w.variable(out, "y"); ops[0].Code == ir.SELECTED && w.k.Bias != "" {
		w.biases(w.k.Bias)
		w.chain = append(w.chain, fmt.Sprintf("    const auto %s = biases.of(r) + %s;", w.row, product))
		w.row = product
	}
	if !to.IsTemp() {
		w.store(to, w.values[out])
	}
	return ops[len(want):]
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
		w.fail("finishes rows from %s, which is not a row of its product", name)
	}
	return v
}

// define emits the variable that an op's result is in, and stores it where the op says: in one temporary, or in
// buffers. want is the op of the expression.
func (w *productWriter) define(o *ir.Op, want ir.Op, noun, expression string) {
	first := buf(o.Out, 0)
	v := w.variable(first, noun)
	w.chain = append(w.chain, fmt.Sprintf("    const auto %s = %s;", v, expression))
	if strings.HasPrefix(first, "%") {
		want.Out = []ir.Operand{view(first)}
		w.want = append(w.want, want)
		return
	}
	rows := kernel.TaskRows
	if w.halved {
		rows = kernel.TaskPairs
	}
	for i := range o.Out {
		want.Out = append(want.Out, view(o.Out[i].Buf, w.rowsIn(o.Out[i].Buf, rows)...))
		w.store(want.Out[i], v)
	}
	w.want = append(w.want, want)
}

func view(name string, dims ...ir.Range) ir.Operand { return ir.Operand{Buf: name, Dims: dims} }

// rowsIn is the view of the rows of a task in a buffer: those of the task's rank in one that ranks push to.
func (w *productWriter) rowsIn(buffer string, rows ir.Range) []ir.Range {
	if place, err := w.b.spaceOf(buffer, w.at); err == nil && place == ir.PeerScratch {
		return kernel.RankRows(rows)
	}
	return []ir.Range{rows}
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
	case place == ir.PeerScratch && !w.halved && w.param("out", to.Buf):
		w.chain = append(w.chain, fmt.Sprintf("    push_row(c, r, out, %s);", value))
	case place == ir.GlobalScratch:
		if !w.param("out", to.Buf) && w.k.Out != to.Buf {
			w.fail("publishes its rows in %s too; the kernel publishes one vector for each stage", to.Buf)
		}
		call := "publish_row"
		switch {
		case w.halved:
			call = "publish_pair"
		case w.exact(to.Buf):
			call = "publish_exact"
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

// exact reports whether the stage publishes float32 whatever elements are.
func (w *productWriter) exact(name string) bool {
	exact := slices.ContainsFunc(kernel.Vectors, func(v kernel.Vector) bool {
		return v.Exact && slices.Contains(v.Roles, w.s.Role)
	})
	buf, elements := w.b.buffer(name, w.at), w.b.p.Model.Activations
	if buf != nil && elements != ir.F32 && exact != (buf.DType == ir.F32) {
		w.fail("publishes %s in %s; want %s, and %s for what experts are chosen by", name, buf.DType, elements, ir.F32)
	}
	return exact
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
	f.Lines = append(f.Lines, fmt.Sprintf("  gemv<%s>(c, %s, [&](const auto& r, auto %s) {", f.Struct, w.reader, w.row))
	f.Lines = append(append(f.Lines, w.chain...), "  });")
	if w.best {
		f.Lines = append(f.Lines, "  return best;")
	}
	return f
}
