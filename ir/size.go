package ir

import (
	"fmt"

	"amkc/ir/diag"
)

// Budgets of a program. They bound time and memory whatever a file asks for: numbers are cheap to write, and a loop
// or a family turns them into tasks and buffers. They are counted over all variants, before anything is unrolled, and
// for one rank: several have them once for each.
//
// Llama-3.1-8B on 132 SMs has 42,000 tasks and 174,000 ops and views in its two variants, a model of 70B 102,000 and
// 391,000; a rank of 405B some 220,000 tasks, and 340,000 in the three variants that are for 8,192 positions. Of the
// published models that the kernel has room for, Gemma-3-12B has the most: 171,000 and 1,081,000, in three variants on
// 170 SMs. The limits are what a proof can look at in a second or two.
const (
	MaxTasks = 3 << 17
	MaxViews = 3 << 19 // see size.views
	// buffers, pages and counters, each member of a family or a group on its own, separately in every variant
	MaxBuffers  = 1 << 17
	MaxSMs      = 1 << 16 // that a listed task or a distribution names
	MaxVariants = 64
	MaxStopIDs  = 256     // ids that can end a run; host and kernel hold as many
	maxExtent   = 1 << 28 // of a distribution
	maxIndex    = 1 << 19 // of an iteration; keeps what is computed from it, such as rotations, far from an overflow
)

// Budgets of one entity. The readers hold to them, so that no line of a file is worth more than it should be; all are
// an order of magnitude above what compiled programs have.
const (
	maxParams   = 32      // of an op; keeps the search for duplicates short
	maxOperands = 64      // of an op, inputs or outputs
	maxOps      = 256     // of a stage
	maxWaits    = 256     // of a stage
	maxKinds    = 1 << 10 // of a loop
	maxPages    = 256     // of a buffer
	maxPieces   = 2048    // of a buffer: two for each expert of a layer
	maxFields   = 1 << 17 // of a JSON object
)

// size is what unrolling the variants of a program makes.
type size struct {
	tasks   int
	views   int // ops and waits of all tasks, views of all stages, and what their ranges are bound from
	members int // buffers, pages, counters, and the names that groups give to buffers
}

// stageViews is what an iteration of a stage costs of the views, be it empty.
const stageViews = 16

// Tasks is the number of tasks of all variants, for a program within its budgets.
func (p *Program) Tasks() int {
	z, _ := p.size()
	return z.tasks
}

// tooLarge returns a diagnostic if the program exceeds a budget, or nil.
func (p *Program) tooLarge() *diag.Diagnostic {
	_, over := p.size()
	return over
}

// size counts what unrolling makes, up to the first budget that is spent.
func (p *Program) size() (z size, over *diag.Diagnostic) {
	if len(p.Variants) > MaxVariants {
		return z, diag.Errorf(CodeSize, "", "the program has %d variants, want at most %d", len(p.Variants),
			MaxVariants)
	}
	for i := range p.Variants {
		v := &p.Variants[i]
		z.entities(p, v)
		if what := z.over(); what != "" {
			return z, diag.Errorf(CodeSize, "variant "+v.Name, "with it the program has %s", what)
		}
		for _, n := range v.Body {
			body, iterations, runs := []*Stage(nil), 1, func(*Stage) int { return 1 }
			switch n := n.(type) {
			case *Stage:
				body = []*Stage{n}
			case *Loop:
				body, iterations = n.Body, max(0, n.Count)
				runs = func(s *Stage) int { return max(0, n.NumIterations(s)) }
			}
			for _, s := range body {
				z.stage(s, iterations, runs(s))
				if what := z.over(); what != "" {
					return z, diag.Errorf(CodeSize, "stage "+s.Name, "with it the program has %s", what)
				}
			}
		}
	}
	return z, nil
}

// over says which budget is spent, or nothing.
func (z *size) over() string {
	switch {
	case z.tasks > MaxTasks:
		return fmt.Sprintf("more than %d tasks", MaxTasks)
	case z.views > MaxViews:
		return fmt.Sprintf("more than %d ops and views in its tasks", MaxViews)
	case z.members > MaxBuffers:
		return fmt.Sprintf("more than %d buffers, pages and counters", MaxBuffers)
	}
	return ""
}

func (z *size) entities(p *Program, v *Variant) {
	z.members = satAdd(z.members, len(p.Pages))
	for i := range p.Buffers {
		z.members = satAdd(z.members, max(1, p.Buffers[i].Count))
	}
	for i := range p.Groups {
		z.members = satAdd(z.members, len(p.Groups[i].Members))
	}
	for i := range v.Counters {
		z.members = satAdd(z.members, max(1, v.Counters[i].Count))
	}
}

// stage adds a stage of a loop of n iterations that runs in some of them, or in all.
func (z *size) stage(s *Stage, iterations, runs int) {
	if s.Dist.insane() != "" {
		return // no task of it is ever made
	}
	tasks := s.Dist.NumTasks()
	views, ranges, onSM := len(s.Waits), 0, false
	for k := range s.Ops {
		o := &s.Ops[k]
		views += len(o.In) + len(o.Out)
		ranges += o.ranges()
		onSM = onSM || o.uses(OnSM)
	}
	views = satAdd(views, satMul(tasks, len(s.Ops)+len(s.Waits)))
	bindings := satMul(tasks, ranges)
	if onSM {
		bindings = satMul(bindings, runs)
	}
	z.tasks = satAdd(z.tasks, satMul(tasks, runs))
	z.views = satAdd(z.views, satAdd(bindings, satAdd(satMul(stageViews, iterations), satMul(views, runs))))
}

// ranges counts what Bind copies: the ranges of views and the parameters, with the operators of their expressions.
func (o *Op) ranges() int {
	n := len(o.Params)
	for i := range o.Params {
		n += o.Params[i].Int.operators()
	}
	for _, list := range [][]Operand{o.In, o.Out} {
		for _, v := range list {
			n += len(v.Dims)
			for d := range v.Dims {
				r := &v.Dims[d]
				n += r.Lo.operators() + r.Hi.operators() + r.Part.operators()
			}
		}
	}
	return n
}

// operators counts those of an expression.
func (e *Expr) operators() int {
	n := 0
	if e.x != nil {
		n = 1 + e.x.operators()
	}
	if e.y != nil {
		n += e.y.operators()
	}
	return n
}
