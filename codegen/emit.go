package codegen

import (
	"fmt"
	"strings"

	"amkc/ir"
)

// emit appends one stage to both walks and, the first time, its descriptor. prefix tells variants apart.
func (b *builder) emit(out *writer, s *ir.Stage, at site, prefix string, depth int) error {
	kind, err := b.classify(s)
	if err != nil {
		return err
	}
	st, err := b.descriptor(s, kind, at, prefix)
	if err != nil {
		return err
	}
	indent := strings.Repeat("  ", depth)
	var walked, consumed []string
	consume := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		consumed = append(consumed, text)
		out.consume = append(out.consume, call(indent, text)...)
	}
	walk := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		walked = append(walked, text)
		out.walk = append(out.walk, call(indent+turnIndent, text)...)
	}

	layer, computed := "0", "c.layer"
	if n, ok := s.Layer.At(0); ok && at.loop == nil {
		layer, computed = itoa(n), itoa(n)
		consume("c.layer = %d;", n)
	}
	if at.loop != nil {
		layer = "layer"
	}
	page := func(o ir.Operand) (string, error) { return b.page(o.Buf, at) }
	if kind.numbered() {
		consume("c.enter(%s);", st.Enum)
	}
	var in, to, weight string
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
	b.d.Replicates = b.d.Replicates || kind.replicated()
	b.breaks(b.contract(s, kind, at))
	if err := b.checkOnChip(s, kind, at); err != nil {
		return err
	}
	switch kind {
	case bodyEmbed:
		collect(&weight, func() (string, error) { return b.address(operand(op(s, ir.EMBED).In, 1).Buf, at, computed) })
		last := &s.Ops[len(s.Ops)-1]
		collect(&to, func() (string, error) { return page(operand(last.Out, 1)) })
		if last.Code == ir.ADD {
			var positions string
			collect(&positions, func() (string, error) { return b.address(operand(last.In, 1).Buf, at, computed) })
			weight += ", " + positions
		}
		consume("embed<%s>(c, %s, %s);", st.Struct, weight, to)
	case bodyEmbedReplicated:
		collect(&weight, func() (string, error) { return b.address(operand(op(s, ir.EMBED).In, 1).Buf, at, computed) })
		consume("%s<%s>(c, %s);", kind, st.Struct, weight)
	case bodyAddNorm:
		collect(&in, func() (string, error) { return page(operand(s.Ops[0].In, 0)) })
		gain := operand(op(s, ir.RMSNORM).In, 1).Buf
		collect(&weight, func() (string, error) { return b.address(gain, at, computed) })
		consume("%s<%s>(c, %s, %s);", kind, st.Struct, in, weight)
	case bodyAddNormRows:
		collect(&in, func() (string, error) { return page(operand(s.Ops[0].In, 0)) })
		gain := operand(op(s, ir.RMSNORM).In, 1).Buf
		collect(&weight, func() (string, error) { return b.address(gain, at, computed) })
		collect(&to, func() (string, error) { return page(operand(s.Ops[len(s.Ops)-1].Out, 1)) })
		consume("%s<%s>(c, %s, %s, %s);", kind, st.Struct, in, weight, to)
		b.d.NormRows = true
	case bodyProduct:
		collect(&weight, func() (string, error) { return b.address(op(s, ir.GEMV).In[1].Buf, at, layer) })
		args := []string{"c"}
		for _, a := range st.Func.args {
			var arg string
			if a.weight {
				collect(&arg, func() (string, error) { return b.address(a.buffer, at, computed) })
			} else {
				collect(&arg, func() (string, error) { return b.page(a.buffer, at) })
			}
			args = append(args, arg)
		}
		walk("turns.weights<%s>(p.c, %s, %s);", st.Struct, weight, layer)
		if !choosesToken(s) {
			consume("%s(%s);", st.Func.Name, strings.Join(args, ", "))
			break
		}
		var value, index string
		collect(&value, ofResult(ir.SAMPLE, 0))
		collect(&index, ofResult(ir.SAMPLE, 1))
		consume("const Best best = %s(%s);", st.Func.Name, strings.Join(args, ", "))
		consume("publish_best<%s>(c, best, %s, %s);", st.Struct, value, index)
	case bodyAttend:
		collect(&in, func() (string, error) { return page(operand(s.Ops[0].In, 0)) })
		collect(&to, ofResult(ir.ATTENTION, 0))
		heads := headsOf(s) + "{" + in
		if normsHeads(s) {
			weights := 1
			if shiftsHeads(s) {
				weights = 2
			}
			for k := range weights {
				for _, norm := range s.Ops[:2] {
					var weight string
					collect(&weight, func() (string, error) {
						return b.address(operand(norm.In, 1+k).Buf, at, computed)
					})
					heads += ", " + weight
				}
			}
			b.d.RotatesHeads = b.d.RotatesHeads || rotatesHeads(s)
		}
		var ahead, read string
		cache := operand(op(s, ir.ATTENTION).In, 1).Buf
		collect(&ahead, func() (string, error) { return b.cache(cache, at, layer) })
		collect(&read, func() (string, error) { return b.cache(cache, at, computed) })
		walk("turns.cache<%s>(p.c, %s, position%s);", st.Struct, layer, ahead)
		consume("attend<%s>(c, %s}, %s%s);", st.Struct, heads, to, read)
	case bodyCombine:
		collect(&in, ofOperand(ir.AttentionCombine, 0))
		collect(&to, ofResult(ir.AttentionCombine, 0))
		consume("combine<%s>(c, %s, %s);", st.Struct, in, to)
	case bodyKeepHidden:
		var kept string
		collect(&kept, func() (string, error) { return b.hiddenCall(s, st.Struct, at) })
		consume("%s", kept)
	case bodySample:
		collect(&in, ofOperand(ir.SAMPLE, 0))
		collect(&to, ofOperand(ir.SAMPLE, 1))
		consume("sample(c, %s, %s);", in, to)
	case bodyStop, bodyEmit, bodyJoinStep:
		consume("%s(c);", kind)
		if kind == bodyJoinStep {
			for _, line := range afterStep {
				consume("%s", line)
			}
		}
	case bodyArrive:
		consume("arrive(c);")
	case bodyJoin:
		join := b.joins[s]
		walk("if (turns.now()) await_join(p, step, %s);", at.expression("layer", join.first, join.by))
		consume("join(c, %s);", at.expression("c.layer", join.first, join.by))
	}
	b.noteStage(s, kind, st, walked, consumed)
	return err
}

// call is a line of code, or two where it is too long for one.
func call(indent, text string) []string {
	const room = 100
	if len(indent)+len(text) <= room {
		return []string{indent + text}
	}
	at := strings.LastIndex(text[:room-len(indent)], ", ")
	if at < 0 {
		return []string{indent + text}
	}
	return []string{indent + text[:at+1], indent + "    " + text[at+2:]}
}

// operand returns ops[k], or an operand without a name when there is none; validate has checked arities, and a name
// that does not resolve is reported.
func operand(ops []ir.Operand, k int) ir.Operand {
	if k < len(ops) {
		return ops[k]
	}
	return ir.Operand{}
}
