package soundness

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"amkc/internal/population"
	"amkc/simulate"
)

// A source is one class of programs: the n-th of it, for any n.
type source struct {
	group string
	draw  func(n uint64) population.Case
	of    int // how many there are; 0: as many as are asked for
}

// Row is what was counted for one class.
type Row struct {
	Group        string
	Class        string
	Programs     int
	Unsafe       int // an oracle saw something go wrong
	Rejected     int // of those
	FalseAccepts int // the others
	Accepted     int // of all
	Strict       int // rejected although the oracles saw nothing
	Seen         int // of the accepted: every order of theirs was seen, at every position
	Ordered      int // of the unsafe: wrong in some order, and not whatever the order
	Unread       int // of the unsafe: rejected by what reads a program, before validate judges it
	Schedules    int // states explored and schedules run
	Compared     int // both validate and the reference VM have looked at all operands
	Disagree     int // of those: one takes them, the other does not
}

// Report is the outcome of a run.
type Report struct {
	Rows     []Row
	Strict   map[string]map[string]int // by code of the rejection, then by class: rejected although nothing was seen
	Examples map[string]string         // for each of these codes, the name of a program
}

// Run judges a piece of n programs: of those of the published population, and ours on top. Each false accept and each
// disagreement about operands is handed to found at once. Fewer programs than [Whole] leave out the few that are large:
// each of them takes as long as hundreds of others.
func Run(n int, piece Piece, e simulate.Effort, found func(*Judgement)) *Report {
	sources := sources(n)
	type job struct {
		source int
		n      uint64
	}
	rep := &Report{Strict: map[string]map[string]int{}, Examples: map[string]string{}}
	byClass := map[string]*Row{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var at atomic.Int64
	var jobs []job
	for i, s := range sources {
		for k := range s.of {
			jobs = append(jobs, job{i, uint64(k)})
		}
	}
	jobs = every(jobs, piece)
	const chunk = 64
	for range runtime.GOMAXPROCS(0) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			fp := simulate.NewFootprints()
			for {
				lo := int(at.Add(chunk)) - chunk
				if lo >= len(jobs) {
					return
				}
				for _, jb := range jobs[lo:min(lo+chunk, len(jobs))] {
					s := &sources[jb.source]
					c := s.draw(jb.n)
					if n < Whole && large(&c) {
						continue
					}
					j := Judge(c, fp, e)
					mu.Lock()
					if j.FalseAccept() || j.Disagree() {
						found(&j)
					}
					rep.count(byClass, s.group, j)
					mu.Unlock()
				}
			}
		}()
	}
	wg.Wait()
	rep.rows(byClass)
	return rep
}

// rows puts the rows of all classes into the report, in their order.
func (rep *Report) rows(byClass map[string]*Row) {
	rep.Rows = rep.Rows[:0]
	for _, r := range byClass {
		rep.Rows = append(rep.Rows, *r)
	}
	slices.SortFunc(rep.Rows, func(a, b Row) int { return compareRows(&a, &b) })
}

// large reports whether a program has so many tasks that judging it takes seconds.
func large(c *population.Case) bool {
	p := c.Program
	return p != nil && p.Target != nil && p.Model.Layers*p.Target.SMs*p.Pass.NumTokens() > 512
}

func (rep *Report) count(rows map[string]*Row, group string, j Judgement) {
	key := group + "/" + j.Case.Class
	r := rows[key]
	if r == nil {
		r = &Row{Group: group, Class: j.Case.Class}
		rows[key] = r
	}
	r.Programs++
	r.Schedules += j.Verdict.States + j.Verdict.Orders
	if j.Compared() {
		r.Compared++
	}
	if j.Disagree() {
		r.Disagree++
	}
	rejected := len(j.Diags) > 0
	if !rejected {
		r.Accepted++
		if j.Verdict.Complete && !j.Verdict.Unsafe() {
			r.Seen++
		}
	}
	if j.Verdict.Unsafe() {
		switch {
		case j.Ordered():
			r.Ordered++
		case rejected && unread(&j.Case):
			r.Unread++
		}
	}
	switch {
	case j.FalseAccept():
		r.Unsafe++
		r.FalseAccepts++
	case j.Verdict.Unsafe():
		r.Unsafe++
		r.Rejected++
	case rejected:
		r.Strict++
		code := j.Diags[0].Code
		if rep.Strict[code] == nil {
			rep.Strict[code] = map[string]int{}
		}
		rep.Strict[code][j.Case.Class]++
		if name := rep.Examples[code]; name == "" || compareNames(j.Case.Name, name) < 0 {
			rep.Examples[code] = j.Case.Name
		}
	}
}

// A run of Whole programs judges the published population whole, which is Published of them. A smaller one judges all
// of its lowerings, and the same part of each of its other classes.
const (
	Whole     = 20_200
	Published = 7160
)

// sources lists what a run of n programs draws.
func sources(n int) []source {
	part := func(of int) int { return of * min(n, Whole) / Whole }
	published := func(group, class string, most int) source {
		return source{group, func(n uint64) population.Case { return population.Published(class, n) },
			min(most, population.NumPublished(class))}
	}
	out := []source{published("published", population.Lowering, Whole)}
	for _, class := range population.MutantClasses {
		out = append(out, published("published", class, part(350)))
	}
	out = append(out, source{"published", population.DAG, part(4000)})
	rest := n
	for _, s := range out {
		rest = max(0, rest-s.of)
	}
	committed, err := population.Committed()
	if err != nil {
		panic(err) // the tree is not whole
	}
	out = append(out, source{"ours", func(n uint64) population.Case { return committed[n] }, len(committed)})
	mutants := published("ours", population.ProfileMutant, rest*8/100)
	operands := published("ours", population.ProfileOperand, rest*2/100)
	out, rest = append(out, mutants, operands), rest-mutants.of-operands.of
	for _, s := range []struct {
		source
		share int // of 36
	}{
		{source{group: "ours", draw: population.Mutant}, 14},
		{source{group: "ours", draw: population.Operands}, 3},
		{source{group: "ours", draw: population.Native}, 4},
		{source{group: "ours", draw: population.Looped}, 3},
		{source{group: "ours", draw: population.NativeFlat}, 2},
		{source{group: "ours", draw: func(n uint64) population.Case { return population.DAG(n + 4000) }}, 3},
		{source{group: "ours", draw: population.Exchange}, 2},
		{source{group: "ours", draw: population.Indices}, 1},
		{source{group: "ours", draw: population.Tokens}, 3},
		{source{group: "ours", draw: population.Streamed}, 1},
	} {
		s.of = rest * s.share / 36
		out = append(out, s.source)
	}
	return out
}

func compareRows(a, b *Row) int {
	if a.Group != b.Group {
		return -compareNames(a.Group, b.Group) // published before ours
	}
	return compareNames(a.Class, b.Class)
}

func compareNames(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Total adds up the rows of a group, or of all for "".
func (rep *Report) Total(group string) Row {
	t := Row{Group: group, Class: "all"}
	for _, r := range rep.Rows {
		if group == "" || r.Group == group {
			t.add(&r)
		}
	}
	return t
}

// add adds the numbers of another row.
func (r *Row) add(o *Row) {
	r.Programs += o.Programs
	r.Unsafe += o.Unsafe
	r.Rejected += o.Rejected
	r.FalseAccepts += o.FalseAccepts
	r.Accepted += o.Accepted
	r.Strict += o.Strict
	r.Seen += o.Seen
	r.Ordered += o.Ordered
	r.Unread += o.Unread
	r.Schedules += o.Schedules
	r.Compared += o.Compared
	r.Disagree += o.Disagree
}

func (r Row) String() string {
	return fmt.Sprintf("%-10s %-34s programs %7d  accepted %7d  unsafe %7d  rejected %7d  false accepts %3d  strict "+
		"%6d  seen %7d  ordered %7d  unread %7d  operands %7d  disagree %3d",
		r.Group, r.Class, r.Programs, r.Accepted, r.Unsafe, r.Rejected, r.FalseAccepts, r.Strict, r.Seen, r.Ordered,
		r.Unread, r.Compared, r.Disagree)
}
