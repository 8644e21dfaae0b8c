package codegen

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// Layers of several kinds are one loop, in which the kernel branches on the kind of the layer where kinds differ.

// kinds notes the kinds of the layers, of which the kernel has one list.
func (b *builder) kinds(outline []section) error {
	var kinds []int
	for _, s := range outline {
		switch l := s.loop; {
		case l == nil || len(l.Kinds) == 0:
		case kinds != nil || l.First != 0 || l.Step > 1 || len(l.Kinds) > mostKinds:
			return diag.Errorf(codeStructure, s.name, "has iterations of several kinds; want that of one loop, over "+
				"layers from 0 on, one by one, with at most %d in its list", mostKinds)
		default:
			kinds = l.Kinds
		}
	}
	if kinds != nil {
		values := make([]string, len(kinds))
		for i, k := range kinds {
			values[i] = itoa(k)
		}
		b.d.Kinds = list(values)
	}
	return nil
}

// mostKinds is how long a list of kinds may be: kListedKinds of kinds.cuh.
const mostKinds = 128

// emitKinds emits stages that follow one another, in the given variants: those of a kind of layers together, under a
// branch on the kind.
func (b *builder) emitKinds(out *writer, stages []*ir.Stage, variants []int, at site, prefix string, depth int) error {
	emit := func(s *ir.Stage, depth int) error {
		for _, i := range variants {
			out.number(i, s, at, prefix)
		}
		return b.emit(out, s, at, prefix, depth)
	}
	for len(stages) > 0 {
		if stages[0].Kind == 0 {
			if err := emit(stages[0], depth); err != nil {
				return err
			}
			stages = stages[1:]
			continue
		}
		n := slices.IndexFunc(stages, func(s *ir.Stage) bool { return s.Kind == 0 })
		if n < 0 {
			n = len(stages)
		}
		var kinds []int
		for _, s := range stages[:n] {
			if !slices.Contains(kinds, s.Kind) {
				kinds = append(kinds, s.Kind)
			}
		}
		whole := len(kinds) == len(slices.Compact(slices.Sorted(slices.Values(at.loop.Kinds))))
		for k, kind := range kinds {
			out.kind(depth, k, whole && k == len(kinds)-1, kind)
			for _, s := range stages[:n] {
				if s.Kind != kind {
					continue
				}
				if err := emit(s, depth+1); err != nil {
					return err
				}
			}
		}
		out.endBranch(depth)
		stages = stages[n:]
	}
	return nil
}

// kind opens the k-th arm of a branch on the kind of a layer. The rest is what all layers are that come to it: where
// variants differ in between, an arm may be missing for a kind whose stages come before or after.
func (w *writer) kind(depth, k int, rest bool, kind int) {
	open := func(indent, layer string) string {
		condition := fmt.Sprintf("if (of_kind<%d>(%s)) {", kind, layer)
		switch {
		case k == 0:
			return indent + condition
		case rest:
			return indent + "} else {"
		}
		return indent + "} else " + condition
	}
	indent := strings.Repeat("  ", depth)
	w.walk = append(w.walk, open(indent+turnIndent, "layer"))
	w.consume = append(w.consume, open(indent, "c.layer"))
}
