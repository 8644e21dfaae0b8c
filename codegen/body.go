package codegen

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// body builds the two walks of the kernel, the producer's and the consumers', from the variants: what all variants have in
// common is emitted once, what differs becomes a branch on the position.
func (b *builder) body() error {
	vs := b.p.Variants
	if len(vs) == 0 {
		return diag.Errorf(codeStructure, "program", "no variants")
	}
	for i := range vs {
		if len(vs[i].Body) != len(vs[0].Body) {
			return diag.Errorf(codeStructure, "variant "+vs[i].Name, "has %d stages and loops, variant %s has %d: want the same outline", len(vs[i].Body), vs[0].Name, len(vs[0].Body))
		}
	}
	out := writer{order: make([][]string, len(vs))}
	for k := range vs[0].Body {
		var err error
		switch first := vs[0].Body[k].(type) {
		case *ir.Loop:
			err = b.loop(&out, k, first)
		case *ir.Stage:
			lists := make([][]*ir.Stage, len(vs))
			for i := range vs {
				s, ok := vs[i].Body[k].(*ir.Stage)
				if !ok {
					return diag.Errorf(codeStructure, "variant "+vs[i].Name, "has a loop where variant %s has stage %s", vs[0].Name, first.Name)
				}
				lists[i] = []*ir.Stage{s}
			}
			err = b.stageLists(&out, lists, nil, 2)
		}
		if err != nil {
			return err
		}
	}
	b.d.Walk, b.d.Consume = out.walk, out.consume
	for i := range b.d.Variants {
		v := &b.d.Variants[i]
		v.Stages = list(out.order[i])
		v.Outside = outsideLayers(&vs[i])
	}
	return nil
}

// outsideLayers counts the numbered stages that are in no loop.
func outsideLayers(v *ir.Variant) int {
	n := 0
	for _, node := range v.Body {
		if s, ok := node.(*ir.Stage); ok && advances(s) {
			n++
		}
	}
	return n
}

// loop emits a loop over layers whose bodies may differ between variants.
func (b *builder) loop(out *writer, k int, first *ir.Loop) error {
	lists := make([][]*ir.Stage, len(b.p.Variants))
	for i := range b.p.Variants {
		l, ok := b.p.Variants[i].Body[k].(*ir.Loop)
		if !ok || l.First != first.First || l.Count != first.Count {
			return diag.Errorf(codeStructure, "variant "+b.p.Variants[i].Name, "its loop %s differs in range from that of variant %s", first.Name, b.p.Variants[0].Name)
		}
		lists[i] = l.Body
	}
	end := itoa(first.First + first.Count)
	if first.First == 0 && first.Count == b.p.Model.Layers {
		end = "kLayers"
	}
	out.walk = append(out.walk, "#pragma unroll 1",
		fmt.Sprintf("    for (int layer = %d; layer < %s && !p.stopped; ++layer) {", first.First, end),
		"      const u8* base = weights + layer * kLayerBytes;")
	out.consume = append(out.consume, "#pragma unroll 1",
		fmt.Sprintf("    for (c.layer = %d; c.layer < %s; ++c.layer) {", first.First, end),
		"      const u8* base = weights + c.layer * kLayerBytes;")
	if err := b.stageLists(out, lists, first, 3); err != nil {
		return err
	}
	out.walk = append(out.walk, "    }")
	out.consume = append(out.consume, "    }")
	return nil
}

// stageLists emits the stages of all variants at one place: a common beginning, a branch, a common end.
func (b *builder) stageLists(out *writer, lists [][]*ir.Stage, loop *ir.Loop, depth int) error {
	head, tail := 0, 0
	shortest := len(lists[0])
	for _, l := range lists {
		shortest = min(shortest, len(l))
	}
	for head < shortest && sameAt(lists, func(l []*ir.Stage) *ir.Stage { return l[head] }) {
		head++
	}
	for tail < shortest-head && sameAt(lists, func(l []*ir.Stage) *ir.Stage { return l[len(l)-1-tail] }) {
		tail++
	}
	for _, s := range lists[0][:head] {
		if err := b.emit(out, s, loop, "", depth); err != nil {
			return err
		}
		for i := range lists {
			out.number(i, s, "")
		}
	}
	for i, l := range lists {
		middle := l[head : len(l)-tail]
		if shortest == head+tail && allLen(lists, head+tail) {
			break // nothing differs
		}
		out.branch(depth, i, len(lists), b.d.Variants[i].EndName)
		for _, s := range middle {
			prefix := camel(b.p.Variants[i].Name)
			if err := b.emit(out, s, loop, prefix, depth+1); err != nil {
				return err
			}
			out.number(i, s, prefix)
		}
		if i == len(lists)-1 {
			out.endBranch(depth)
		}
	}
	for _, s := range lists[0][len(lists[0])-tail:] {
		if err := b.emit(out, s, loop, "", depth); err != nil {
			return err
		}
		for i := range lists {
			out.number(i, s, "")
		}
	}
	return nil
}

func allLen(lists [][]*ir.Stage, n int) bool {
	for _, l := range lists {
		if len(l) != n {
			return false
		}
	}
	return true
}

// sameAt reports whether a stage is the same in every variant.
func sameAt(lists [][]*ir.Stage, at func([]*ir.Stage) *ir.Stage) bool {
	first := at(lists[0])
	for _, l := range lists[1:] {
		if !sameStage(first, at(l)) {
			return false
		}
	}
	return true
}

// sameStage reports whether two stages print the same but for the thresholds of their waits, which are facts of the stages
// before them.
func sameStage(a, b *ir.Stage) bool {
	text := func(s ir.Stage) string {
		s.Waits = slices.Clone(s.Waits)
		for i := range s.Waits {
			s.Waits[i].Threshold = 0
		}
		return ir.PrintStage(&s)
	}
	return text(*a) == text(*b)
}

// writer collects the lines of both walks.
type writer struct {
	walk    []string
	consume []string
	order   [][]string // the numbers of each variant's stages
}

// number lists a stage as the next one of a variant. Stages without a descriptor have no number.
func (w *writer) number(variant int, s *ir.Stage, prefix string) {
	if advances(s) {
		w.order[variant] = append(w.order[variant], stageNumber(structName(s, prefix)))
	}
}

func (w *writer) branch(depth, i, n int, end string) {
	indent := strings.Repeat("  ", depth)
	switch {
	case i == 0:
		w.walk = append(w.walk, indent+"if (position < "+end+") {")
		w.consume = append(w.consume, indent+"if (c.position < "+end+") {")
	case i < n-1:
		w.walk = append(w.walk, indent+"} else if (position < "+end+") {")
		w.consume = append(w.consume, indent+"} else if (c.position < "+end+") {")
	default:
		w.walk = append(w.walk, indent+"} else {")
		w.consume = append(w.consume, indent+"} else {")
	}
}

func (w *writer) endBranch(depth int) {
	indent := strings.Repeat("  ", depth)
	w.walk = append(w.walk, indent+"}")
	w.consume = append(w.consume, indent+"}")
}
