// Package loops finds runs of equal stages in a program and rolls them into loops. docs/kernel-looping.md has the
// rules.
package loops

import (
	"cmp"
	"fmt"
	"slices"

	"amkc/ir"
	"amkc/knobs"
	"amkc/passes/rewrite"
)

// Roll rolls runs of equal stages into loops. The buffers that consecutive calls use in turn become a family, or else a
// ragged group. A chain of values that one SM updates element by element becomes one buffer first, and other chains
// from call to call may move on chip. Unrolling the result gives the same tasks up to names, and up to the copies that
// enter and leave such a chain. Stages that cannot be rolled do not change. The layers of a graph are a loop from pass
// lower on, which stays unless tiling.loop.roll is 0.
func Roll(p *ir.Program) (Report, error) {
	loops := loopsOf(p)
	if loops.Loops > 0 && knobs.Roll.Of(&p.Config) {
		return loops, nil // the layers of a graph are a loop from the beginning
	}
	r, err := newRoller(p)
	if err != nil {
		return Report{}, err
	}
	if loops.Loops > 0 {
		rewrite.Prune(p)
	}
	if knobs.Roll.Of(&r.p.Config) {
		for i := range r.variants {
			r.variants[i].match(r.p)
		}
	}
	r.coalesce()
	r.promote()
	r.rewrite()
	return r.report(), nil
}

// Report says what the pass rolled. It counts over all variants.
type Report struct {
	Stages int // of the flat program
	Rolled int // of those, how many are in loops now
	Loops  int
	Bodies int // stages of the loops' bodies
}

func (r Report) String() string {
	return fmt.Sprintf("%d of %d stages are %d in the bodies of %d loops", r.Rolled, r.Stages, r.Bodies, r.Loops)
}

// loopsOf counts the loops of a program.
func loopsOf(p *ir.Program) Report {
	var out Report
	for i := range p.Variants {
		for _, n := range p.Variants[i].Body {
			loop, ok := n.(*ir.Loop)
			if !ok {
				out.Stages++
				continue
			}
			out.Loops++
			out.Bodies += len(loop.Body)
			out.Rolled += loop.Count * len(loop.Body)
			out.Stages += loop.Count * len(loop.Body)
		}
	}
	return out
}

// A roller is a program on its way into loops.
type roller struct {
	p        *ir.Program
	variants []rolling
	taken    map[string]bool // names of buffers and groups
	promoted map[string]bool // buffers that a chain on chip has replaced
	copied   map[string]bool // buffers that a chain on chip is loaded from or stored in
	buffers  *naming
	groups   map[string]string // of ragged groups that are there, by what they hold
}

// A rolling is one variant on its way into loops.
type rolling struct {
	v      *ir.Variant
	stages []*ir.Stage
	runs   []*run

	counterAt map[string]int    // in v.Counters
	counting  map[string][]*run // that name a counter, as others do
	counters  *naming
}

func newRoller(p *ir.Program) (*roller, error) {
	r := &roller{p: p, taken: map[string]bool{}, promoted: map[string]bool{}, copied: map[string]bool{},
		groups: map[string]string{}}
	if err := ir.Expand(p); err != nil {
		return nil, err
	}
	for i := range p.Variants {
		v := &p.Variants[i]
		stages, err := flatStages(v)
		if err != nil {
			return nil, err
		}
		g := rolling{v: v, stages: stages, counterAt: map[string]int{}, counting: map[string][]*run{}}
		for k := range g.v.Counters {
			g.counterAt[g.v.Counters[k].Name] = k
		}
		r.variants = append(r.variants, g)
	}
	for i := range p.Buffers {
		r.taken[p.Buffers[i].Name] = true
	}
	return r, nil
}

// flatStages returns the stages of a variant that has no loops.
func flatStages(v *ir.Variant) ([]*ir.Stage, error) {
	stages := make([]*ir.Stage, 0, len(v.Body))
	for _, n := range v.Body {
		s, ok := n.(*ir.Stage)
		if !ok {
			return nil, fmt.Errorf("variant %s has a loop already; want the stages of every layer one by one", v.Name)
		}
		stages = append(stages, s)
	}
	return stages, nil
}

// match finds the runs of a variant that can be rolled.
func (g *rolling) match(p *ir.Program) {
	m := newMatcher(g.stages, newShaper(p))
	c := newContext(p, g.stages)
	m.find(func(w window) int {
		r := newRun(g.stages, w)
		keep := r.number()
		if keep == w.count && (!r.turns() || r.analyse(c) != "" || !g.countersFit(r)) {
			keep = 0
		}
		if keep == w.count {
			g.accept(r)
		}
		return keep
	})
	slices.SortFunc(g.runs, func(a, b *run) int { return cmp.Compare(a.start, b.start) })
	if len(g.runs) == 0 {
		g.oneLayer(c)
	}
}

// oneLayer makes a loop of a single iteration of a model's only layer, so that its program has the form that those of
// deeper models have.
func (g *rolling) oneLayer(c *context) {
	w := window{count: 1}
	only := -1
	for i, st := range g.stages {
		switch {
		case !st.Layer.Known:
		case only < 0:
			only, w.start, w.period = st.Layer.N, i, 1
		case st.Layer.N != only || i != w.end():
			return
		default:
			w.period++
		}
	}
	if only < 0 {
		return
	}
	if r := newRun(g.stages, w); r.number() == 1 && r.analyse(c) == "" {
		g.runs = []*run{r}
	}
}

// accept adds a run to those that will be loops.
func (g *rolling) accept(r *run) {
	g.runs = append(g.runs, r)
	r.turningCounters(func(args []string) {
		for _, a := range args {
			if of := g.counting[a]; len(of) == 0 || of[len(of)-1] != r {
				g.counting[a] = append(of, r)
			}
		}
	})
}

// countersFit reports whether the counters that the calls wait for and signal are families, together with those of
// the runs that have been accepted: of those that name one of them, or one of what these name, and so on.
func (g *rolling) countersFit(r *run) bool {
	n := newNamer()
	runs, seen := []*run{r}, map[*run]bool{r: true}
	for i := 0; i < len(runs); i++ {
		runs[i].nameCounters(n)
		runs[i].turningCounters(func(args []string) {
			for _, a := range args {
				for _, other := range g.counting[a] {
					if !seen[other] {
						seen[other] = true
						runs = append(runs, other)
					}
				}
			}
		})
	}
	return !slices.ContainsFunc(n.series(), func(s *series) bool { return s.torn || !g.counterFamily(s) })
}

// counterFamily reports whether the counters of a series differ in their names alone.
func (g *rolling) counterFamily(s *series) bool {
	first, known := g.counterAt[s.names[0]]
	return known && !slices.ContainsFunc(s.names, func(name string) bool {
		k, known := g.counterAt[name]
		if !known {
			return true
		}
		a, b := &g.v.Counters[first], &g.v.Counters[k]
		return a.Init != b.Init || a.How != b.How || a.Scope != b.Scope || b.Count > 0
	})
}

func (r *roller) report() Report {
	var out Report
	for i := range r.variants {
		g := &r.variants[i]
		out.Stages += len(g.stages)
		for _, run := range g.runs {
			out.Rolled += run.period * run.count
			out.Bodies += run.period
			out.Loops++
		}
	}
	return out
}
