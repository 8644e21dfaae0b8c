package codegen

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// A section is a part of a body at which all variants meet: a loop, or the stages in no loop that belong to one
// layer, or to none.
type section struct {
	name   string
	loop   *ir.Loop // nil: in none
	stages []*ir.Stage
}

// sections cuts a body. What variants do differently they do inside one section.
func sections(v *ir.Variant) []section {
	var out []section
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Loop:
			out = append(out, section{"loop " + n.Name, n, n.Body})
		case *ir.Stage:
			name := "stage " + n.Name
			if layer, ok := n.Layer.At(0); ok {
				name = fmt.Sprintf("layer %d", layer)
				if k := len(out) - 1; k >= 0 && out[k].name == name {
					out[k].stages = append(out[k].stages, n)
					continue
				}
			}
			out = append(out, section{name, nil, []*ir.Stage{n}})
		}
	}
	return out
}

// body builds the two walks of the kernel, the producer's and the consumers', from the variants: what all variants
// have in common is emitted once, what differs becomes a branch on the position.
func (b *builder) body() error {
	vs := b.p.Variants
	outlines := make([][]section, len(vs))
	for i := range vs {
		outlines[i] = sections(&vs[i])
		if !slices.EqualFunc(outlines[i], outlines[0], func(a, b section) bool { return a.name == b.name }) {
			return diag.Errorf(codeStructure, "variant "+vs[i].Name,
				"its loops, its layers and the stages outside of both are not those of variant %s: want "+
					"the same outline", vs[0].Name)
		}
	}
	out := writer{order: make([][]string, len(vs))}
	plain := writer{order: out.order} // of the stages since the last loop
	loops := 0
	for k, first := range outlines[0] {
		lists := make([][]*ir.Stage, len(vs))
		for i := range vs {
			lists[i] = outlines[i][k].stages
			if l := outlines[i][k].loop; l != nil &&
				(l.First != first.loop.First || l.Count != first.loop.Count ||
					max(1, l.Step) != max(1, first.loop.Step) || !slices.Equal(l.Kinds, first.loop.Kinds)) {
				return diag.Errorf(codeStructure, "variant "+vs[i].Name,
					"its loop %s differs in range or kinds from that of variant %s", first.loop.Name, vs[0].Name)
			}
		}
		var err error
		if first.loop == nil {
			err = b.stageLists(&plain, lists, site{}, 2)
			out.consume, plain.consume = append(out.consume, plain.consume...), nil
		} else {
			out.walk = append(out.walk, inTurn(4, plain.walk)...)
			plain.walk = nil
			err = b.loop(&out, lists, site{first.loop, loops})
			loops++
		}
		if err != nil {
			return err
		}
	}
	b.d.Walk, b.d.Consume = append(out.walk, inTurn(4, plain.walk)...), out.consume
	b.d.Loops = b.otherLoops(outlines[0])
	if err := b.kinds(outlines[0]); err != nil {
		return err
	}
	for i := range b.d.Variants {
		v := &b.d.Variants[i]
		v.Stages, v.order = list(out.order[i]), out.order[i]
		v.Outside, v.Sum = b.countExchanges(&vs[i])
	}
	return nil
}

// otherLoops lists first, count and step of each loop, unless there is none or one over all layers.
func (b *builder) otherLoops(outline []section) []string {
	var values []string
	layers, plain := 0, 0
	for _, s := range outline {
		if l := s.loop; l != nil {
			values = append(values, itoa(l.First), itoa(l.Count), itoa(max(1, l.Step)))
			if l.First == 0 && l.Count == b.p.Model.Layers && l.Step <= 1 {
				layers++
			}
		} else if s.stages[0].Layer.Known {
			plain++
		}
	}
	if len(values) == 0 || len(values) == 3 && layers == 1 && plain == 0 && len(b.p.Groups) == 0 {
		return nil
	}
	return list(values)
}

// countExchanges counts the numbered stages that are in no loop, for a variant whose loops are all over the layers of
// the model; for another one it sums up the exchanges of a step instead, as C++.
func (b *builder) countExchanges(v *ir.Variant) (outside int, sum string) {
	everyLayer := true
	for _, s := range sections(v) {
		inAll, inKinds := 0, 0
		for _, st := range s.stages {
			kind, err := classify(st)
			switch {
			case !advances(st): // one that is listed all the same is not an exchange
				everyLayer = everyLayer && (err != nil || kind.Unlisted)
			case st.Kind == 0:
				inAll++
			case s.loop != nil:
				inKinds += s.loop.NumIterations(st)
			}
		}
		switch {
		case s.loop == nil:
			outside += inAll
		default:
			everyLayer = everyLayer && s.loop.Count == b.p.Model.Layers && inKinds == 0
			sum += fmt.Sprintf(" + %d * %d", s.loop.Count, inAll)
			if inKinds > 0 {
				sum += fmt.Sprintf(" + %d", inKinds)
			}
		}
	}
	if everyLayer {
		return outside, ""
	}
	return outside, itoa(outside) + sum
}

// loop emits a loop whose bodies may differ between variants.
func (b *builder) loop(out *writer, lists [][]*ir.Stage, at site) error {
	l := at.loop
	end := itoa(l.Last() + 1)
	if l.First == 0 && l.Step <= 1 && l.Count == b.p.Model.Layers {
		end = "kLayers"
	}
	by := func(variable string) string {
		if l.Step <= 1 {
			return "++" + variable
		}
		return fmt.Sprintf("%s += %d", variable, l.Step)
	}
	body := writer{order: out.order}
	for _, part := range layersOf(lists) {
		if err := b.stageLists(&body, part, at, 3); err != nil {
			return err
		}
	}
	emit := func(to *[]string, head, base string, lines []string) {
		*to = append(*to, "#pragma unroll 1", "    for ("+head+") {")
		if slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "base + ") }) {
			*to = append(*to, "      const u8* base = weights + "+base+" * "+layerBytes+";")
		}
		*to = append(append(*to, lines...), "    }")
	}
	emit(&out.walk, fmt.Sprintf("int layer = %d; layer < %s && !p.stopped; %s", l.First, end, by("layer")), "layer",
		inTurn(6, body.walk))
	emit(&out.consume, fmt.Sprintf("c.layer = %d; c.layer < %s; %s", l.First, end, by("c.layer")), "c.layer",
		body.consume)
	return nil
}

// turnIndent is what lines of the producer's walk are indented by, beyond their place in the walk.
const turnIndent = "  "

// inTurn puts lines of the producer's walk under the loop that takes them one by one.
func inTurn(indent int, lines []string) []string {
	if len(lines) == 0 {
		return nil
	}
	margin := strings.Repeat(" ", indent)
	return slices.Concat([]string{"#pragma unroll 1",
		margin + "for (Turns turns; turns.left(); turns.copy(p, step)) {"}, lines, []string{margin + "}"})
}

// layersOf cuts bodies that are several layers long into layers, if all variants have the same, and leaves others
// whole.
func layersOf(lists [][]*ir.Stage) [][][]*ir.Stage {
	cut := make([][][]*ir.Stage, len(lists))
	layers := make([][]ir.Layer, len(lists))
	for i, l := range lists {
		for _, s := range l {
			if k := len(layers[i]) - 1; k < 0 || layers[i][k] != s.Layer {
				layers[i], cut[i] = append(layers[i], s.Layer), append(cut[i], nil)
			}
			last := len(cut[i]) - 1
			cut[i][last] = append(cut[i][last], s)
		}
		if !slices.Equal(layers[i], layers[0]) {
			return [][][]*ir.Stage{lists}
		}
	}
	parts := make([][][]*ir.Stage, len(layers[0]))
	for k := range parts {
		for i := range lists {
			parts[k] = append(parts[k], cut[i][k])
		}
	}
	return parts
}

// stageLists emits the stages of all variants at one place: a common beginning, a branch, a common end.
func (b *builder) stageLists(out *writer, lists [][]*ir.Stage, at site, depth int) error {
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
	all := make([]int, len(lists)) // the variants, whose stages they are
	for i := range all {
		all[i] = i
	}
	if err := b.emitKinds(out, lists[0][:head], all, at, "", depth); err != nil {
		return err
	}
	var branches [][]placedStage
	for i, l := range lists {
		middle := l[head : len(l)-tail]
		if shortest == head+tail && allLen(lists, head+tail) {
			break // nothing differs
		}
		before := len(b.placed)
		out.branch(depth, i, len(lists), b.d.Variants[i].EndName)
		prefix := camel(b.p.Variants[i].Name)
		if err := b.emitKinds(out, middle, []int{i}, at, prefix, depth+1); err != nil {
			return err
		}
		if i == len(lists)-1 {
			out.endBranch(depth)
		}
		branches = append(branches, b.placed[before:len(b.placed):len(b.placed)])
		b.differ = b.differ || len(branches[i]) < len(middle)
	}
	b.noteVariants(branches)
	return b.emitKinds(out, lists[0][len(lists[0])-tail:], all, at, "", depth)
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

// sameStage reports whether two stages print the same but for the thresholds of their waits, which are facts of the
// stages before them.
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
func (w *writer) number(variant int, s *ir.Stage, at site, prefix string) {
	if b, err := classify(s); err == nil && !b.Unlisted {
		w.order[variant] = append(w.order[variant], stageNumber(structName(s, at, prefix)))
	}
}

func (w *writer) branch(depth, i, n int, end string) {
	indent := strings.Repeat("  ", depth)
	switch {
	case i == 0:
		w.walk = append(w.walk, indent+turnIndent+"if (position < "+end+") {")
		w.consume = append(w.consume, indent+"if (c.position < "+end+") {")
	case i < n-1:
		w.walk = append(w.walk, indent+turnIndent+"} else if (position < "+end+") {")
		w.consume = append(w.consume, indent+"} else if (c.position < "+end+") {")
	default:
		w.walk = append(w.walk, indent+turnIndent+"} else {")
		w.consume = append(w.consume, indent+"} else {")
	}
}

func (w *writer) endBranch(depth int) {
	indent := strings.Repeat("  ", depth)
	w.walk = append(w.walk, indent+turnIndent+"}")
	w.consume = append(w.consume, indent+"}")
}
