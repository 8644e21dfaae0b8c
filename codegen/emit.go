package codegen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/kernel"
)

// emit appends one stage to both walks and, the first time, its descriptor. prefix tells variants apart.
func (b *builder) emit(out *writer, s *ir.Stage, at site, prefix string, depth int) error {
	kind, err := b.classify(s)
	if err != nil {
		return err
	}
	if err := b.checkLayers(s, at); err != nil {
		return err
	}
	k := b.stageOf(s, kind, at)
	st, err := b.descriptor(s, kind, k, at, prefix)
	if err != nil {
		return err
	}
	if !kind.Unlisted {
		b.placed = append(b.placed, placedStage{st, at})
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
	if !kind.Unlisted {
		consume("c.enter(%s);", st.Enum)
	}
	b.d.Replicates = b.d.Replicates || kind.Replicated()
	if !slices.Contains(b.d.Bodies, kind) {
		b.d.Bodies = append(b.d.Bodies, kind)
	}
	b.d.RotatesHeads = b.d.RotatesHeads || k.Rotates
	if !kind.Emitted {
		b.breaks(holdsTo(s, kind, kind.Ops(b.factsOf(s, at), k)))
	}
	b.breaks(checkFields(s, kind, b.factsOf(s, at), k))
	if err := b.checkOnChip(s, kind, k, at); err != nil {
		return err
	}
	get := func(place string, failed error) string {
		err = cmp.Or(err, failed)
		return place
	}
	function, numbered, given := kind.Name, "<"+st.Struct+">", kind.ArgsOf(k)
	if kind.Emitted {
		function, numbered, k, given = st.Func.Name, "", st.Of, st.Func.args
	}
	args, inside := "c", ""
	for _, a := range given {
		var place string
		if a.Weight {
			place = get(b.address(*a.At(k), at, computed))
		} else {
			place = get(b.page(*a.At(k), at))
		}
		if a.Inside {
			inside += ", " + place
			continue
		}
		if inside != "" {
			args, inside = fmt.Sprintf("%s, %s{%s}", args, kind.Reader(k), inside[2:]), ""
		}
		args += ", " + place
	}
	switch kind.Streams {
	case kernel.Tiles:
		place := get(b.address(k.Matrix, at, layer))
		if k.ByExperts() {
			walk("turns.experts<%s>(p.c, %s, %s, step);", st.Struct, place, layer)
			break
		}
		walk("turns.weights<%s>(p.c, %s, %s);", st.Struct, place, layer)
	case kernel.CacheRows:
		walk("turns.cache<%s>(p.c, %s, position%s);", st.Struct, layer, get(b.state(s, k.Cache, at, layer)))
	}
	for _, state := range kind.States(k) {
		args += get(b.state(s, state, at, computed))
	}
	join, joins := b.joins[s]
	switch {
	case choosesToken(s):
		consume("const Best best = %s(%s);", function, args)
		consume("publish_best<%s>(c, best, %s, %s);", st.Struct, get(b.page(k.BestValue, at)),
			get(b.page(k.BestIndex, at)))
	case joins:
		walk("if (turns.now()) await_join(p, step, %s);", at.expression("layer", join.first, join.by))
		consume("join(c, %s);", at.expression("c.layer", join.first, join.by))
	case kind.Unlisted:
		consume("%s(%s);", function, args)
	default:
		consume("%s%s(%s);", function, numbered, args)
	}
	if kind == kernel.JoinStep {
		for _, line := range afterStep {
			consume("%s", line)
		}
	}
	b.noteStage(s, kind, st, walked, consumed)
	return err
}

// call is a line of code, or several where it is too long for one.
func call(indent, text string) (lines []string) {
	for room := maxLine - len(indent); len(text) > room; room = maxLine - len(indent) {
		at := strings.LastIndex(text[:room], ", ")
		if at < 0 {
			break
		}
		lines = append(lines, indent+text[:at+1])
		if text = text[at+2:]; len(lines) == 1 {
			indent += "    "
		}
	}
	return append(lines, indent+text)
}

// operand returns ops[k], or an operand without a name when there is none; validate has checked arities, and a name
// that does not resolve is reported.
func operand(ops []ir.Operand, k int) ir.Operand {
	if k < len(ops) {
		return ops[k]
	}
	return ir.Operand{}
}
