package validate

import (
	"fmt"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate/views"
)

// Backend is the implementation that is to run a program.
type Backend interface {
	// String is its name.
	String() string
	// Implements reports whether it can compute an opcode.
	Implements(c ir.Opcode) bool
	// Contract returns what it demands of one variant beyond what is proved for every backend; nil is nothing.
	Contract(p *Proof) Contract
	// CheckVariants holds the contracts of all variants of a program to each other.
	CheckVariants(all []Contract) diag.List
}

// Contract is what a backend requires of a variant in addition to the proof. Its rules report through the proof, and
// run after the rules that they depend on: a finding ends the proof like one of the prover's.
type Contract interface {
	// CheckCounters runs once every index is in range.
	CheckCounters()
	// CheckOp then looks at an op of a task. Tasks that do the same are looked at once.
	CheckOp(task int32, op *ir.FlatOp)
	// Finds reports whether a task that reads exchange words of another one finds them where it polls, whatever has
	// ordered the words already.
	Finds(reader, writer int32) bool
	// CheckReads runs once memory is proved: of what the backend reads before a task may.
	CheckReads()
	// CheckModel runs once the step is proved, with the facts of the model that the program was compiled from.
	CheckModel(m *ir.Model)
}

// Reference is package refvm: every opcode except recipes, and no requirements beyond the proof.
var Reference Backend = reference{}

type reference struct{}

func (reference) String() string { return "ref" }
func (reference) Implements(c ir.Opcode) bool {
	return c >= 0 && int(c) < len(ir.Ops) && !ir.Ops[c].Recipe
}
func (reference) Contract(*Proof) Contract           { return nil }
func (reference) CheckVariants([]Contract) diag.List { return nil }

// Flat is the program that is proved. Contracts do not change it.
func (p *Proof) Flat() *ir.Flat { return p.flat }

// Positions is the interval of positions for which it is proved.
func (p *Proof) Positions() *views.Positions { return &p.positions }

// SpendPairs charges comparisons of two views that depend on pos to the budget, and reports whether it suffices.
func (p *Proof) SpendPairs(n int, task int32) bool {
	return p.spend(&p.work.pairs, n, maxPairs, "pairs of views that depend on pos", task)
}

// SpendEvals charges evaluations of views at single positions to the budget, and reports whether it suffices.
func (p *Proof) SpendEvals(n int, task int32) bool {
	return p.spend(&p.work.evals, n, maxEvals, "views at single positions", task)
}

// checkReads asks what the backend reads before a task may.
func (p *Proof) checkReads() {
	if p.contract != nil {
		p.contract.CheckReads()
	}
}

// checkBackend: the backend implements the counters and every opcode. One finding of a kind is enough.
func (p *Proof) checkBackend() {
	if p.contract != nil {
		p.contract.CheckCounters()
	}
	reported := make([]bool, len(ir.Ops))
	for t := range p.flat.Tasks {
		if p.Root(t) != t {
			continue
		}
		for k := range p.flat.Tasks[t].Ops {
			op := &p.flat.Tasks[t].Ops[k]
			code := op.Code
			if p.contract != nil {
				p.contract.CheckOp(int32(t), op)
			}
			if p.backend.Implements(code) || reported[code] {
				continue
			}
			reported[code] = true
			if ir.Ops[code].Recipe {
				d := p.Errorf(CodeBackend, p.Task(int32(t)), "%s is a recipe, which no backend implements", code)
				d.Suggest("list the steps of the recipe as ops of the task")
				continue
			}
			d := p.Errorf(CodeBackend, p.Task(int32(t)), "backend %s does not implement %s; it implements %s",
				p.backend, code, implemented(p.backend))
			d.Suggest("use those opcodes, or prove the program for backend %s", Reference)
		}
	}
}

func implemented(b Backend) string {
	var names []string
	for c := range ir.Ops {
		if b.Implements(ir.Opcode(c)) {
			names = append(names, fmt.Sprint(ir.Opcode(c)))
		}
	}
	return strings.Join(names, ", ")
}
