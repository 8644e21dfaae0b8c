package validate

import "amkc/ir"

// Budgets of a proof. Each bounds one thing that a hostile program could make large; a program that needs more is
// refused with CodeBudget. They are what a proof can look at in about a second and some hundred megabytes; a program of
// several ranks has them once for each.
//
// Fused for 132 SMs, the larger variant of Llama-3.1-8B needs 0.2, 3.4, 0.02, 0 and 0.8 million of them, from the
// pieces of views on. Llama-3.1-8B lowered to 15,000 tasks of the AMK profile, which have no SM, needs 3 million
// components and next to nothing else.
const (
	maxAccesses   = 3 << 19 // views of memory that tasks write
	maxRuns       = 3 << 19 // contiguous pieces of all views together
	maxClockCells = 1 << 25 // components of all stored vector clocks together
	maxPairs      = 1 << 21 // pairs of views compared because they depend on pos
	maxEvals      = 1 << 18 // evaluations of an expression at one position
	maxVisits     = 1 << 25 // segments of memory examined
)

// work counts what has been spent.
type work struct {
	runs, cells, pairs, evals, visits int
	over                              bool // CodeBudget was reported
}

// sharedBudget is what the variants of a program may need together, in halves of what one of them may need.
const sharedBudget = 3

// exceeded reports whether proofs of a program have spent more than n halves of what one may need.
func exceeded(p *ir.Program, spent []work, halves int) bool {
	halves *= p.NumRanks()
	var all work
	for _, w := range spent {
		all.runs, all.cells, all.pairs, all.evals, all.visits = all.runs+w.runs, all.cells+w.cells, all.pairs+w.pairs,
			all.evals+w.evals, all.visits+w.visits
	}
	return 2*all.runs > halves*maxRuns || 2*all.cells > halves*maxClockCells || 2*all.pairs > halves*maxPairs ||
		2*all.evals > halves*maxEvals || 2*all.visits > halves*maxVisits
}

// noTask is spend's task where the cost is not that of one task.
const noTask int32 = -1

// spend adds n to *what and reports whether the budget still holds. The first time it does not, it says so.
func (p *Proof) spend(what *int, n, limit int, unit string, t int32) bool {
	limit *= p.Ranks()
	*what += n
	if *what <= limit {
		return true
	}
	if !p.work.over {
		p.work.over = true
		where := ""
		if t != noTask {
			where = p.Task(t)
		}
		p.Errorf(CodeBudget, where, "the proof needs more than %d %s; it stops here, and what is not proved is refused",
			limit, unit).
			Suggest("make the program smaller, bounds affine in pos, or queues out of tasks that have no SM")
	}
	return false
}
