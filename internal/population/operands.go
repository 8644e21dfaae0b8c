package population

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"amkc/ir"
)

// Operands is a program of one task that runs one op, or more of which the others make temporaries for the last.
// Opcodes go round with the seed. The operands fit in a third of the programs. In the others one to three things
// about them are changed: the length, the rank or the type of a view, the number of operands, a parameter, or how any
// of these depends on the position.
//
// Everything the op reads is there before the step, and each view that it writes is of a buffer of its own: nothing
// but the op itself can be wrong.
func Operands(seed uint64) Case {
	code := ir.Opcode(seed % uint64(len(ir.Ops)))
	c := Case{Name: "operands/" + code.String() + "/" + strconv.FormatUint(seed, 10), Class: "operands"}
	for try := uint64(0); c.Flat == nil; try++ { // until ranks are those of the buffers: that is another rule's
		r := rand.New(rand.NewPCG(seed, 'o'+try<<8))
		changes := 0
		if !chance(r, 3) {
			changes = 1 + r.IntN(3)/2 + r.IntN(5)/4
		}
		c.Flat = operandsOf(r, code, changes)
	}
	return c
}

// operandSlips are operators that leave everything but the op as it should be.
var operandSlips = named("resize-operand", "longer-operand", "longer-operand", "empty-operand", "range-by-position",
	"range-by-position", "operand-of-another-rank", "operand-of-another-shape", "operand-of-another-shape",
	"drop-operand", "drop-result", "one-operand-more", "one-result-more", "swap-operands", "another-size",
	"another-size", "half-or-double-size", "parameter-at-a-limit", "parameter-at-a-limit", "drop-parameter",
	"change-parameter",
	"unknown-parameter", "opcode", "buffer-dtype", "write-read-only", "read-without-buffer")

// operandsOf is a program of one task with an op of the given code, after a number of changes; nil if it does not
// unroll, and so is wrong by another rule.
func operandsOf(r *rand.Rand, code ir.Opcode, changes int) *ir.Flat {
	w := writers.Get().(*writer)
	defer writers.Put(w)
	lo := r.IntN(3)
	hi := lo + r.IntN(5)
	w.Rand, w.declared, w.before = r, "", ""
	w.vars = map[string]any{"hi": hi, "n": w.few(), "rows": 1 + r.IntN(3), "code": code.String()}
	op := w.op(code)
	text := "model operands arch=LlamaForCausalLM dtype=F32 layers=1 hidden=1 intermediate=1 heads=1 kv_heads=1 " +
		"head_dim=1 vocab=1 max_seq=8 eps=1e-05\n" + w.declared
	if pass := w.vars["pass"]; pass != nil {
		text += fmt.Sprintln("pass", pass)
	}
	p := parse(text+fmt.Sprintf("variant operands pos %d..%d\ncounter done counter gpu\nstage only explicit\n"+
		"  task sm=-1 a=0 b=1\n%s  %s\n  signal done\n", lo, hi, w.before, op), code.String())
	ir.NameRoles(p)
	for changes > 0 {
		op := pick(r, operandSlips)
		if q := op.applied(r, p); q != nil {
			p, changes = q, changes-1
		}
	}
	if slices.ContainsFunc(p.Buffers, func(b ir.Buffer) bool { return b.LacksAxis(p.Pass) != "" }) {
		p.Pass = ir.Pass{} // what comes from the host would have to have its tokens
	}
	f, _ := ir.Unroll(p, &p.Variants[0])
	return f
}

// op writes an op whose operands fit.
func (w *writer) op(code ir.Opcode) string {
	if t := w.templates.Lookup("op " + code.String()); t != nil {
		var text strings.Builder
		if err := t.Execute(&text, w.vars); err != nil {
			panic("population: " + err.Error())
		}
		return strings.Join(strings.Fields(text.String()), " ")
	}
	spec, n := ir.Ops[code], w.few()
	if !spec.Pointwise {
		panic(fmt.Sprintf("population: no operands are known that fit %v", code))
	}
	var in []string
	for range spec.In.Min + w.IntN(max(0, spec.In.Max-spec.In.Min)+1) {
		in = append(in, w.in(w.float(), n))
	}
	text := fmt.Sprintf("%s = %v(%s)", w.outs(w.float(), n), code, strings.Join(in, ", "))
	for i := range spec.Params {
		switch p := &spec.Params[i]; {
		case p.Needed && p.Real:
			text += fmt.Sprintf(" %s=0.5", p.Key)
		case p.Needed:
			text += fmt.Sprintf(" %s=%d", p.Key, p.Lo)
		}
	}
	return text
}

// operandFuncs are the functions of templates that make operands.
func (w *writer) operandFuncs() template.FuncMap {
	return template.FuncMap{"few": w.few, "float": w.float, "shape": w.shape, "view": w.view, "in": w.in, "out": w.out,
		"input": w.input, "outs": w.outs,
		"dtype": func(name string) (int, error) {
			d, err := ir.ParseDType(name)
			return int(d), err
		},
		"weights": func(op string) (int, error) {
			code, err := ir.ParseOpcode(op)
			return ir.Ops[code].Finisher.Weights, err
		},
		// undealt is the number of elements of a view before its ranges are distributed.
		"undealt": func(view string) (int, error) {
			o, err := ir.ParseOperand(view)
			n := 1
			for _, r := range o.Dims {
				n *= r.Hi.At(0) - r.Lo.At(0)
			}
			return n, err
		},
	}
}

// few is a small number, now and then 0.
func (w *writer) few() int {
	if chance(w.Rand, 16) {
		return 0
	}
	return 1 + w.IntN(4)
}

func (w *writer) float() string { return pick(w.Rand, []string{"F32", "F16", "BF16"}) }

// shape returns lengths of 1 to 4 dimensions that hold n elements.
func (w *writer) shape(n int) []any {
	lengths := []any{}
	for len(lengths) < 3 && chance(w.Rand, 3) {
		by := 1
		for f := 2; f <= n && by == 1; f++ {
			if n%f == 0 && chance(w.Rand, 2) {
				by = f
			}
		}
		lengths, n = append(lengths, by), n/by
	}
	return append(lengths, n)
}

// view declares a buffer of the given lengths and returns a view of it. The buffer may be larger, and ranges may be
// distributed or move; "4|0:pos" is a dimension of 4 with that range. The host sets inputs by their roles: to the
// token, which is 0, or to the position. So an index is within its buffer.
func (w *writer) view(role, kind, dtype string, lengths ...any) string {
	var sizes, ranges []string
	for _, n := range flattened(lengths) {
		text, ok := n.(string)
		if !ok {
			text = w.place(n.(int))
		}
		size, r, _ := strings.Cut(text, "|")
		sizes, ranges = append(sizes, size), append(ranges, r)
	}
	name := role
	if role == "" || strings.Contains(w.declared, "buffer "+role+" ") {
		name = fmt.Sprintf("b%d", strings.Count(w.declared, "\n"))
	}
	w.declared += fmt.Sprintf("buffer %s %s %s [%s] HBM rowmajor\n", name, kind, dtype, strings.Join(sizes, ","))
	return name + "[" + strings.Join(ranges, ",") + "]"
}

// place returns a range of n elements, after a dimension that it lies inside.
func (w *writer) place(n int) string {
	switch hi, _ := w.vars["hi"].(int); w.IntN(12) {
	case 0: // somewhere in a larger dimension
		lo := w.IntN(3)
		return fmt.Sprintf("%d|%d:%d", lo+n+1, lo, lo+n)
	case 1: // every other element
		return fmt.Sprintf("%d|0:%d block 1 part %d of 2", 2*n+1, 2*n, w.IntN(2))
	case 2: // at a place that moves
		return fmt.Sprintf("%d|pos:pos+%d", n+hi+1, n)
	}
	return fmt.Sprintf("%d|0:%d", max(1, n), n)
}

// in is an input of n elements, of whatever shape.
func (w *writer) in(dtype string, n int) string { return w.input("", dtype, w.shape(n)) }

// input is an input of given lengths; sometimes a temporary that holds it.
func (w *writer) input(role, dtype string, lengths ...any) string {
	kind := "IO_INPUT"
	if role == "" {
		kind = pick(w.Rand, []string{"WEIGHT", "CONST"})
	}
	v := w.view(role, kind, dtype, lengths...)
	if chance(w.Rand, 8) && slices.Contains([]string{"F32", "F16", "BF16", "I32"}, dtype) {
		t := fmt.Sprintf("%%t%d", strings.Count(w.before, "\n"))
		w.before += fmt.Sprintf("  %s = COPY(%s)\n", t, v)
		return t
	}
	return v
}

// outs are one to three outputs of n elements.
func (w *writer) outs(dtype string, n int) string {
	list := w.out(dtype, n)
	for range w.IntN(7) / 5 {
		list += ", " + w.out(dtype, n)
	}
	return list
}

func (w *writer) out(dtype string, n int) string {
	if chance(w.Rand, 8) {
		return fmt.Sprintf("%%r%d", w.IntN(3))
	}
	return w.view("", "ACTIVATION", dtype, w.shape(n))
}

// flattened is a list of what lists hold.
func flattened(parts []any) (out []any) {
	for _, p := range parts {
		if l, ok := p.([]any); ok {
			out = append(out, flattened(l)...)
		} else {
			out = append(out, p)
		}
	}
	return out
}
