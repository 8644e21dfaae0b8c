package mutant

import (
	"fmt"
	"slices"
	"strings"
)

// An order is a run of stages that follow one another: units of statements [first, last) of a block. In each of its
// mutants two neighbours change places. Stages are large and inlined, so that each is there once: a loop goes through
// their numbers.
type order struct {
	first, last int
	units       []int // the first child of each
	mutants     []*Mutant
}

// planOrders finds the runs of a block of the function that calls the stages. Whatever declares something or leaves the
// block has its place.
func (w *writer) planOrders(n *node) []order {
	var orders []order
	run := order{first: -1}
	end := func() {
		if len(run.units) > 1 {
			for i := 1; i < len(run.units); i++ {
				site := w.stageSite(n, run.units[i-1])
				next := w.tokens[w.stageAt(n, run.units[i])].text + " first"
				run.mutants = append(run.mutants, w.set.mutant(StageOrder, next, site))
			}
			orders = append(orders, run)
		}
		run = order{first: -1}
	}
	begun := -1 // where a unit begins whose stage is not there yet
	for i, child := range n.children {
		if !w.mayChangePlaces(child) {
			end()
			begun = -1
			continue
		}
		if begun < 0 {
			begun = i
		}
		if w.isInert(child) {
			continue // it belongs to the stage after it
		}
		if run.first < 0 {
			run.first = begun
		}
		run.units = append(run.units, begun)
		run.last = i + 1
		begun = -1
	}
	end()
	return orders
}

// stageAt is the token that names a stage: what is called there.
func (w *writer) stageAt(n *node, unit int) int {
	for w.isInert(n.children[unit]) {
		unit++
	}
	return w.chainAt(n.children[unit].body)
}

// stageSite is a site of its own for a stage.
func (w *writer) stageSite(n *node, unit int) *Site {
	at := w.stageAt(n, unit)
	name := w.tokens[at].text
	key := "consume stage " + name
	w.ordinals[key]++
	return w.set.site(Site{File: w.path, Line: lineOf(w.source, w.tokens[at].begin), Function: "consume",
		Name: "stage " + name, Ordinal: w.ordinals[key]})
}

func (w *writer) mayChangePlaces(n *node) bool {
	if n.form != plain && n.form != control || w.declares(n) != nil {
		return false
	}
	return !slices.ContainsFunc(w.tokens[n.body:n.last], func(t token) bool {
		return t.is("break") || t.is("continue") || t.is("return")
	})
}

// order returns the text of a run: a loop over the numbers of its stages, of which a mutant changes two.
func (w *writer) order(n *node, o order) string {
	var b strings.Builder
	fmt.Fprintf(&b, " for (int amk_turn = 0; amk_turn < %d; ++amk_turn) switch (", len(o.units))
	for i, m := range o.mutants {
		fmt.Fprintf(&b, "%s && amk_turn == %d ? %d : %s && amk_turn == %d ? %d : ", isOn(m), i, i+1, isOn(m), i+1, i)
	}
	b.WriteString("amk_turn) {")
	for i, first := range o.units {
		last := o.last
		if i+1 < len(o.units) {
			last = o.units[i+1]
		}
		fmt.Fprintf(&b, " case %d: {", i)
		if i < len(o.mutants) {
			fmt.Fprintf(&b, " AMK_SITE_REACHED(%d);", o.mutants[i].Site.Number)
		}
		for k := first; k < last; k++ {
			b.WriteString(w.gap(n.children[k].first) + w.node(n.children[k]))
		}
		b.WriteString(" } break;")
	}
	b.WriteString(" }")
	return b.String()
}
