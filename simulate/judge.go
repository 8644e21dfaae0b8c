package simulate

import (
	"errors"
	"fmt"
	"slices"

	"amkc/ir"
)

// Effort bounds the work for one program.
type Effort struct {
	States int // explored at most, for each step or pair of steps; then orders are sampled
	Orders int // sampled at most
	// for each of the two, at most, in tasks and words looked at; an order that was begun is finished; 0: no limit
	ExploreWork, SampleWork int

	Positions int // at which a program is run, at most: all, or the first, the last and some between them
	// the positions at which it is run, of each sequence or one for all of them; none: Positions says
	At   [][]int
	Seed uint64
	Stop <-chan struct{} // closed when the caller wants no more; nil: never
}

// Flat judges an unrolled program, one step of it, at several positions.
func Flat(f *ir.Flat, target *ir.Target, fp *Footprints, e Effort) Verdict {
	total := Verdict{Complete: true, Explored: true}
	for _, r := range runsOf(f, e) {
		if total.add(judge([]Run{r}, target, fp, e), r); total.over() {
			break
		}
	}
	whole := len(e.At) == 0 && f.Hi-f.Lo < e.Positions && f.Pass.NumSequences() == 1
	total.Complete = total.Complete && whole || total.Unsafe()
	return total
}

// runsOf chooses positions at which a program is run, each once. Of several sequences, all have one of them, and then
// each has another one, the first in front and after. Where the caller names positions, it is those alone.
func runsOf(f *ir.Flat, e Effort) []Run {
	var out []Run
	met := map[string]bool{}
	add := func(r Run) {
		outside := slices.ContainsFunc(r.at(), func(pos int) bool { return pos < f.Lo || pos > f.Hi })
		if key := fmt.Sprint(r.at()); !met[key] && (!outside || len(e.At) == 0) {
			met[key] = true
			out = append(out, r)
		}
	}
	for _, at := range e.At {
		add(Run{Flat: f, Pos: at[0], Others: at[1:]})
	}
	if len(e.At) > 0 {
		return out
	}
	list := positions(f.Lo, f.Hi, e)
	for i, pos := range list {
		add(Run{Flat: f, Pos: pos})
		for _, k := range []int{1, len(list) - 1} {
			r := Run{Flat: f, Pos: pos}
			for s := 1; s < f.Pass.NumSequences(); s++ {
				r.Others = append(r.Others, list[(i+k*s)%len(list)])
			}
			add(r)
		}
	}
	return out
}

// after returns the pass that follows one: a sequence goes on where the last one ended, or after some row of it, or
// goes back. Which of them follows from the positions alone, so that who names those gets the same two passes. There is
// none where it is for no variant.
func (r Run) after(at func(pos int) *ir.Flat, last int) (Run, bool) {
	rows, next, i := r.Flat.Pass.NumRows(), r.at(), 0
	for _, pos := range next {
		i += pos
	}
	for s := range next {
		step := 1 + (i+s)%rows
		if s > 0 && (i+s)%3 == 2 {
			step = -1
		}
		next[s] = max(0, min(next[s]+step, last))
	}
	f := at(next[0])
	alike := f != nil && !slices.ContainsFunc(next, func(pos int) bool { return pos < f.Lo || pos > f.Hi })
	return Run{Flat: f, Pos: next[0], Others: next[1:]}, alike && next[0] != r.Pos
}

// Program judges a native program: every variant, and the steps after each other, from one variant to the next as well.
func Program(p *ir.Program, fp *Footprints, e Effort) Verdict {
	flats, rows := make([]*ir.Flat, len(p.Variants)), p.Pass.NumRows()
	covered := 0
	named := map[string]bool{}
	for i := range p.Variants {
		if named[p.Variants[i].Name] {
			return malformed("variant "+p.Variants[i].Name, "is defined twice")
		}
		named[p.Variants[i].Name] = true
		f, diags := ir.Unroll(p, &p.Variants[i])
		if f == nil {
			return malformed("variant "+p.Variants[i].Name, "%v", diags)
		}
		flats[i] = f
	}
	slices.SortStableFunc(flats, func(a, b *ir.Flat) int { return a.Lo - b.Lo })
	for _, f := range flats {
		if f.Lo < covered || f.Lo >= covered+rows { // all rows of a pass are of one variant
			return malformed("variant "+f.Name, "starts at %d, those before end at %d", f.Lo, covered-1)
		}
		if covered = f.Hi + 1; p.Target != nil && f.SMs > p.Target.SMs*p.NumRanks() {
			return malformed("variant "+f.Name, "runs on %d SMs, the target has %d", f.SMs, p.Target.SMs)
		}
	}
	if end := p.Model.MaxSeq - rows + 1; covered == 0 || p.Model.MaxSeq > 0 && (covered > end || covered <= end-rows) {
		return malformed("", "the variants end at %d of %d", covered, p.Model.MaxSeq)
	}
	at := func(pos int) *ir.Flat {
		for _, f := range flats {
			if f.Lo <= pos && pos <= f.Hi {
				return f
			}
		}
		return nil
	}
	total := Verdict{Complete: covered <= e.Positions && len(e.At) == 0 && p.Pass.NumTokens() == 1, Explored: true}
	var runs []Run
	for _, f := range flats {
		runs = append(runs, runsOf(f, e)...)
	}
	for _, r := range runs {
		if total.add(judge([]Run{r}, p.Target, fp, e), r); total.over() {
			break
		}
		if next, ok := r.after(at, covered-1); ok {
			if total.add(judge([]Run{r, next}, p.Target, fp, e), r); total.over() {
				break
			}
		}
	}
	return total
}

func malformed(who, format string, args ...any) Verdict {
	return Verdict{Hazard: &Hazard{Kind: Malformed, Where: who, Detail: fmt.Sprintf(format, args...)}, Complete: true}
}

// judge explores, and samples what is too large for that.
func judge(runs []Run, target *ir.Target, fp *Footprints, e Effort) (v Verdict) {
	defer func() {
		if v.Hazard != nil {
			v.Hazard.Runs = runs
		}
	}()
	m, h, err := build(runs, fp, Options{Target: target, MaxStates: e.States, MaxWork: e.ExploreWork, Stop: e.Stop})
	if m == nil {
		return Verdict{Hazard: h, Complete: h != nil, Limit: err}
	}
	v = m.explore()
	if !v.Complete && v.Limit == nil && e.Orders > 0 {
		m.opts.MaxWork = e.SampleWork
		s := m.sample(e.Seed, e.Orders)
		s.States, s.Tasks = v.States, v.Tasks
		return s
	}
	return v
}

// add adds what a step has shown, or a step and the one after it.
func (v *Verdict) add(o Verdict, r Run) {
	if n := len(v.At); n == 0 || !slices.Equal(v.At[n-1], r.at()) {
		v.At = append(v.At, r.at())
	}
	v.Hazard, v.Tasks = o.Hazard, max(v.Tasks, o.Tasks)
	v.Explored = v.Explored && o.Explored
	v.Complete = v.Complete && o.Complete || o.Hazard != nil
	v.States += o.States
	v.Orders += o.Orders
	if v.Limit == nil || errors.Is(o.Limit, ErrStopped) {
		v.Limit = o.Limit
	}
}

// over reports whether there is nothing left to look for.
func (v *Verdict) over() bool { return v.Hazard != nil || errors.Is(v.Limit, ErrStopped) }

// positions chooses some of an interval: all of a short one, else its ends, where most goes wrong, and others by seed.
func positions(lo, hi int, e Effort) []int {
	if hi < lo {
		return []int{lo}
	}
	if hi-lo < e.Positions {
		out := make([]int, 0, hi-lo+1)
		for p := lo; p <= hi; p++ {
			out = append(out, p)
		}
		return out
	}
	out := []int{lo, hi}
	for i := 2; i < e.Positions; i++ {
		out = append(out, lo+int((e.Seed+uint64(i))*0x9e3779b97f4a7c15>>33)%(hi-lo+1))
	}
	return out
}
