// Package validate proves that a scheduled program can neither deadlock nor race, and touches no memory that it should
// not, or rejects it with coded diagnostics that name task, buffer, range and the missing edge.
//
// It assumes nothing of a program but the types of package ir, never panics, and has no size above which it checks
// less: what would exceed a stated budget is refused with a code of its own. It is an independent oracle: it imports
// the standard library, amkc/ir with diag and op, and amkc/validate/views, and must not import any other package of
// amkc.
//
// One rule is one file. Program order of the proof of a Flat:
//
//	structure.go  indices, names, intervals            params.go      parameters and their ranges
//	backend.go    opcodes that there are, contracts
//	buffers.go    dtypes, layouts, kinds               pages.go       scratch pages
//	operands.go   views inside buffers                 shapes.go      operands of an op agree
//	dtypes.go     and have the right types             alias.go       operands of one op that overlap
//	counters.go   thresholds, realisation, scope       deadlock.go    a legal order exists
//	words.go      flagged words are written once       order.go       the relations hb and fb
//	memory.go     the walk over memory that uses them  epochs.go      exchanges that a tag tells apart
//	lengths.go    lengths at every position
//	indices.go    rows of tables that a step computes
//	races.go      accesses that nothing orders         provenance.go  reads of what is not defined
//	onchip.go     owners and capacity                  output.go      every output element is written
//	stale.go      polls for words that are gone
//
// location.go, expand.go, cut.go and readers.go hold what the walk works on, polls.go what a task has seen of
// exchange words; symbolic.go and positions.go take over where views depend on pos; span.go and kin.go find what
// messages say. What the generated kernel demands beyond that is package validate/kernel, a contract (backend.go).
//
// Four files are there for speed alone, and say why they change no verdict: bodies.go (tasks that do the same are
// looked at once), audience.go (a vector that all SMs read), delta.go (clocks that differ in little), pool.go (memory
// used again).
//
// step.go, appends.go and variants.go add what holds between steps and between the variants of a Program, target.go
// what its target has.
package validate

import (
	"runtime"
	"sync"
	"sync/atomic"

	"amkc/ir"
	"amkc/ir/diag"
)

// Report is the outcome of a proof. OK means that every rule holds; Diags may hold warnings even then.
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

// Program proves a program for the reference VM: it unrolls every variant, proves each, and then what holds between
// steps and between variants.
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

// proofOf is the outcome of one variant: what unrolling it said, and its proof if it could be unrolled.
type proofOf struct {
	diags diag.List
	proof *Proof
}

// maxTogether bounds the proofs that are made at a time, and with them the memory that they take.
const maxTogether = 2

// proveVariants proves the variants of a program by themselves, two at a time if there are processors. Nothing that
// one proof finds depends on another, but what those before it have spent decides whether it is made at all: the list
// ends with a finding where they have spent too much. It is the same list whichever proof ends first, because a
// variant is only left out for the sake of variants before it.
func proveVariants(b Backend, prog *ir.Program, w without) []proofOf {
	out, spent := make([]proofOf, len(prog.Variants)), make([]work, len(prog.Variants))
	var next atomic.Int64
	var lock sync.Mutex // of spent and running
	running, ended := 0, sync.NewCond(&lock)
	var workers sync.WaitGroup
	for range min(len(out), runtime.GOMAXPROCS(0), maxTogether) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(out); i = int(next.Add(1)) - 1 {
				lock.Lock()
				for running > 0 && exceeded(spent[:i], 1) { // much has been spent: what is running may be the last
					ended.Wait()
				}
				if exceeded(spent[:i], sharedBudget) {
					lock.Unlock()
					return
				}
				running++
				lock.Unlock()
				v := proveVariant(b, prog, &prog.Variants[i], w)
				lock.Lock()
				if out[i] = v; v.proof != nil {
					spent[i] = v.proof.work
				}
				running--
				ended.Broadcast()
				lock.Unlock()
			}
		})
	}
	workers.Wait()
	for i := range out {
		if exceeded(spent[:i], sharedBudget) {
			d := diag.Errorf(CodeBudget, "variant "+prog.Variants[i].Name,
				"the proofs of the variants before it have needed more than %d%% of what one may need; it is not "+
					"proved, and what is not proved is refused", 100*sharedBudget/2).
				Suggest("make the program smaller, or leave variants out")
			for k := i; k < len(out); k++ {
				if p := out[k].proof; p != nil {
					p.release()
				}
			}
			return append(out[:i], proofOf{diags: diag.List{d}})
		}
	}
	return out
}

func proveVariant(b Backend, prog *ir.Program, v *ir.Variant, w without) proofOf {
	flat, diags := ir.Unroll(prog, v)
	out := proofOf{diags: diags}
	if flat != nil {
		p := prove(flat, b, w)
		out.proof = p
		if p.sound() {
			p.checkStep()
			if p.contract != nil {
				p.contract.CheckModel(&prog.Model)
			}
		}
		p.shed()
		if len(prog.Variants) > 1 {
			name(p.diags, v.Name)
		}
	}
	if len(prog.Variants) > 1 {
		name(diags, v.Name)
	}
	return out
}

// name puts the variant in front of every position.
func name(diags diag.List, variant string) {
	for _, d := range diags {
		d.Variant = variant
		if d.Pos == "" {
			d.Pos = "variant " + variant
		} else {
			d.Pos = "variant " + variant + ": " + d.Pos
		}
	}
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
