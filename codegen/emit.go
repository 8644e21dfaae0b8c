package codegen

import (
	"fmt"
	"strconv"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// emit appends one stage to both walks and, the first time, its descriptor. prefix tells variants apart.
func (b *builder) emit(out *writer, s *ir.Stage, loop *ir.Loop, prefix string, depth int) error {
	kind, err := classify(s)
	if err != nil {
		return err
	}
	st, err := b.descriptor(s, kind, prefix)
	if err != nil {
		return err
	}
	indent := strings.Repeat("  ", depth)
	consume := func(format string, args ...any) {
		out.consume = append(out.consume, indent+fmt.Sprintf(format, args...))
	}
	walk := func(format string, args ...any) { out.walk = append(out.walk, indent+fmt.Sprintf(format, args...)) }

	if layer, ok := layerOf(s.Name); ok && loop == nil {
		consume("c.layer = %d;", layer)
	}
	address := func(buf string) (string, error) { return b.address(buf, loop) }
	page := func(o ir.Operand) (string, error) { return b.page(o.Buf, loop) }
	layer := "0"
	if loop != nil {
		layer = "layer"
	} else if n, ok := layerOf(s.Name); ok {
		layer = itoa(n)
	}
	if kind != bodySample && kind != bodyEmit {
		consume("c.stage = %s;", st.Enum)
	}
	var in, to, norm, weight string
	collect := func(dst *string, get func() (string, error)) {
		if err == nil {
			*dst, err = get()
		}
	}
	ofOperand := func(code ir.Opcode, k int) func() (string, error) {
		return func() (string, error) { return page(operand(op(s, code).In, k)) }
	}
	ofResult := func(code ir.Opcode, k int) func() (string, error) {
		return func() (string, error) { return page(operand(op(s, code).Out, k)) }
	}
	if g := op(s, ir.GEMV); len(g.In) == 2 {
		collect(&weight, func() (string, error) { return address(g.In[1].Buf) })
		if n := op(s, ir.RMSNORM); len(n.In) == 2 {
			collect(&norm, func() (string, error) { return address(n.In[1].Buf) })
			collect(&in, ofOperand(ir.RMSNORM, 0))
		} else {
			collect(&in, ofOperand(ir.GEMV, 0))
		}
		if err == nil {
			walk("stream_weights<%s>(p, %s, %s);", st.Struct, weight, layer)
		}
	}
	switch kind {
	case bodyEmbed:
		collect(&weight, func() (string, error) { return address(operand(op(s, ir.EMBED).In, 1).Buf) })
		collect(&to, ofResult(ir.EMBED, 1))
		consume("embed<%s>(c, %s, %s);", st.Struct, weight, to)
	case bodyQKV:
		collect(&to, ofResult(ir.ROPE, 0))
		consume("qkv<%s>(c, %s, %s, %s);", st.Struct, in, norm, to)
	case bodyAttend:
		collect(&in, ofOperand(ir.ATTENTION, 0))
		collect(&to, ofResult(ir.ATTENTION, 0))
		walk("stream_cache<%s>(p, %s, step, position);", st.Struct, layer)
		consume("attend<%s>(c, %s, %s);", st.Struct, in, to)
	case bodyCombine:
		collect(&in, ofOperand(ir.AttentionCombine, 0))
		collect(&to, ofResult(ir.AttentionCombine, 0))
		consume("combine<%s>(c, %s, %s);", st.Struct, in, to)
	case bodyResidual:
		collect(&to, ofResult(ir.ADD, 1))
		consume("add_residual<%s>(c, %s, %s);", st.Struct, in, to)
	case bodyGateUp:
		collect(&to, ofResult(ir.SiluMul, 0))
		consume("gate_up<%s>(c, %s, %s, %s);", st.Struct, in, norm, to)
	case bodyLMHead:
		var value, index string
		collect(&value, ofResult(ir.ArgMax, 0))
		collect(&index, ofResult(ir.ArgMax, 1))
		consume("const Best best = lm_head<%s>(c, %s, %s);", st.Struct, in, norm)
		consume("publish_best(c, best, %s, %s);", value, index)
	case bodySample:
		collect(&in, ofOperand(ir.ArgMax, 0))
		collect(&to, ofOperand(ir.ArgMax, 1))
		consume("if (!sample(c, %s, %s)) break;", in, to)
	}
	return err
}

// operand returns ops[k], or an operand without a name when there is none; validate has checked arities, and a name that
// does not resolve is reported.
func operand(ops []ir.Operand, k int) ir.Operand {
	if k < len(ops) {
		return ops[k]
	}
	return ir.Operand{}
}

// layerOf returns the layer of a stage outside a loop, from its name.
func layerOf(name string) (int, bool) {
	head, _, ok := strings.Cut(name, ".")
	if !ok || !strings.HasPrefix(head, "L") || ir.IsFamily(name) {
		return 0, false
	}
	n, err := strconv.Atoi(head[1:])
	return n, err == nil
}

// family returns the buffer family that a name belongs to, and the C++ expression of the member's index.
func (b *builder) family(name string, loop *ir.Loop) (string, string) {
	if loop != nil && ir.IsFamily(name) {
		open, end := strings.IndexByte(name, '{'), strings.IndexByte(name, '}')
		offset := strings.TrimPrefix(name[open+1:end], "i")
		return name[:open] + "{i}" + name[end+1:], strings.TrimSpace("layer" + strings.NewReplacer("+", " + ", "-", " - ").Replace(offset))
	}
	if n, ok := layerOf(name); ok {
		_, rest, _ := strings.Cut(name, ".")
		return "L{i}." + rest, itoa(n)
	}
	return name, ""
}

// address returns the expression for the first byte of a weight.
func (b *builder) address(name string, loop *ir.Loop) (string, error) {
	family, index := b.family(name, loop)
	place, ok := b.weights[family]
	switch {
	case !ok:
		return "", diag.Errorf(codeStructure, "buffer "+name, "is no WEIGHT or CONST of the program")
	case !place.family:
		return "weights + " + place.constant, nil
	case index == "layer":
		return "base + " + place.constant, nil
	default:
		return fmt.Sprintf("weights + (%s) * kLayerBytes + %s", index, place.constant), nil
	}
}

// page returns the expression for the page of an exchanged vector.
func (b *builder) page(name string, loop *ir.Loop) (string, error) {
	family, index := b.family(name, loop)
	constant, ok := b.vectors[family]
	if !ok {
		return "", diag.Errorf(codeStructure, "buffer "+name, "is exchanged but lies on no page: want pass pagecolor to have run")
	}
	for i := range b.p.Buffers {
		if n := len(b.p.Buffers[i].Pages); b.p.Buffers[i].Name == family && n > 1 {
			if loop != nil {
				index = "c." + index
			}
			return fmt.Sprintf("%s[(%s) %% %d]", constant, index, n), nil
		}
	}
	return constant, nil
}
