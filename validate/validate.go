// Package validate proves that a scheduled program cannot deadlock, has no data race and accesses no memory outside its
// buffers. A program that it cannot prove is rejected, with coded diagnostics that name the task, the buffer, the range
// and the missing edge.
//
// It requires nothing of a program but the types of package ir, and it never panics. Large programs are checked as
// strictly as small ones: one that would exceed a stated budget is refused with a code of its own. The package is an
// independent oracle: it imports the standard library, amkc/ir with diag and op, and amkc/validate/views, and must not
// import any other package of amkc.
//
// A Proof (proof.go) is one unrolled variant, the facts that the rules have derived about it, and the ordered list of
// rules:
//
//	structure.go     indices, names, intervals, SMs      backend.go         opcodes that the backend implements
//	params.go        parameters and their ranges         buffers.go         dtypes, layouts, kinds, pages
//	operands.go      views inside buffers                shapes.go          operands of an op agree, and their types
//	locations.go     which memory a view accesses        alias.go           operands of one op that overlap
//	counters.go      thresholds, realisation, scope      deadlock.go        a legal order exists
//	segments.go      pieces that no view cuts in two     single_write.go    flagged words are written once
//	order.go         the relations hb and fb             memory.go          the walk over memory that uses them
//	symbolic.go      views that depend on pos            output.go          every output element is written
//	onchip.go        owners and capacity                 indices.go         table rows that a step computes
//	peers.go         one rank speaks for all
//
// The walk records the writers and the readers of each segment (readers.go), and the exchange words that a task has
// observed (observed_words.go). races.go and findings.go report the results, with the help of reachability.go.
//
// Three files are optimisations, and explain why they change no verdict: bodies.go (equal tasks are checked once),
// shared_readers.go (a vector that all SMs read), delta.go (clocks that differ little).
//
// step.go, appends.go and variants.go check what must hold between steps and between the variants of a Program, and
// target.go the limits of its target.
package validate

import (
	"amkc/ir"
	"amkc/ir/diag"
)

// Report is the outcome of a proof. OK means that every rule holds; Diags may still contain warnings.
type Report struct {
	OK    bool
	Diags diag.List
	Stats Stats
}

// Stats says how large the proof was, summed over the variants of a program.
type Stats struct {
	Variants  int `json:"variants"`
	Tasks     int `json:"tasks"`
	Counters  int `json:"counters"`
	Locations int `json:"locations"` // pages, and buffers outside pages, that a task of the step writes
	Accesses  int `json:"accesses"`  // views proved against other tasks
	Segments  int `json:"segments"`  // pieces of locations that no view cuts in two
	Chains    int `json:"chains"`    // components of the largest vector clock
	Positions int `json:"positions"` // values of pos that had to be tried one by one
}

// Flat proves one unrolled variant for the reference VM, on its whole interval of positions.
func Flat(f *ir.Flat) Report { return FlatFor(Reference, f) }

// FlatFor proves one unrolled variant for a backend.
func FlatFor(b Backend, f *ir.Flat) Report { return flatFor(b, f, nil) }

func flatFor(b Backend, f *ir.Flat, w without) Report {
	p := prove(f, b, w)
	rep := Report{OK: p.sound(), Diags: p.diags, Stats: p.stats}
	p.release()
	return rep
}

// Program proves a program for the reference VM: it unrolls every variant, proves each, and then checks the rules
// between steps and between variants.
func Program(prog *ir.Program) Report { return ProgramFor(Reference, prog) }

// ProgramFor proves a program for a backend.
func ProgramFor(b Backend, prog *ir.Program) Report { return programFor(b, prog, nil) }

func programFor(b Backend, prog *ir.Program, w without) Report {
	if prog == nil {
		return flatFor(b, nil, w)
	}
	var rep Report
	rep.Diags.Add(w.from(checkVariants(prog))...)
	var proved []*Proof
	var contracts []Contract
	for _, v := range proveVariants(b, prog, w) {
		rep.Diags.Add(v.diags...)
		if v.proof != nil {
			rep.Diags.Add(v.proof.diags...)
			rep.Stats.add(v.proof.stats)
			proved, contracts = append(proved, v.proof), append(contracts, v.proof.contract)
		}
	}
	rep.Diags.Add(w.from(b.CheckVariants(contracts))...)
	if rep.Diags.Err() == nil {
		rep.Diags.Add(w.from(checkAppends(proved))...)
		rep.Diags.Add(w.from(checkTokens(proved))...)
	}
	for _, p := range proved {
		p.release()
	}
	rep.OK = rep.Diags.Err() == nil
	return rep
}

func (s *Stats) add(o Stats) {
	s.Variants += o.Variants
	s.Tasks += o.Tasks
	s.Counters += o.Counters
	s.Locations += o.Locations
	s.Accesses += o.Accesses
	s.Segments += o.Segments
	s.Chains = max(s.Chains, o.Chains)
	s.Positions += o.Positions
}
