package validate

import (
	"fmt"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/op"
	"amkc/validate/views"
)

// Proof is one Flat under validation and what the rules so far have derived from it. Its exported methods are what the
// rules of a contract may ask and report; they must not keep it beyond their call.
type Proof struct {
	flat             *ir.Flat
	backend          Backend
	without          without
	contract         Contract // of the backend; nil: it demands nothing more
	positions        views.Positions
	diags            diag.List
	errors, warnings int
	stats            Stats
	work             work
	hints            int // pieces of views looked at for the sake of messages

	names  names
	bodies bodies
	pageOf []int32     // the page of each buffer, -1 for none
	temps  temporaries // of the task at hand
	views  [2][]view   // inputs and outputs of the op at hand
	args   arguments   // of that op, which its declaration looks at
	call   op.Call
	lens   []int // of the tables and caches among them
	index  indices

	locs       []location
	locOf      []int32  // location of each buffer; -1 when no task may write it, so that nothing can conflict
	locOfPage  []int32  // of each page, plus 1
	touched    []bool   // for each buffer: some task has a view of it
	accesses   []access // of tracked locations, in task order, reads of an op before its writes
	first      []int32  // accesses of task t are [first[t], first[t+1])
	x          [2]expander
	spans      []run // addresses of the views that do not depend on pos
	runs       []run // the same as segments; views of equal bodies share them
	bounds     []int
	segs       []segment
	counts     []int32  // views of each location
	bits       []uint64 // of all cuts
	below      []int32
	producers  lists // tasks that signal each counter
	waiting    lists // tasks that wait on each counter, once for each wait
	wordWrites []wordWrite
	exchangeOf []int32 // for each buffer: the exchange that writes its words, 0 for none, -1 for several
	queues     queues
	order      []int32 // a legal execution order
	clock      clocks
	sweep      sweep
	audiences  audiences

	groups    []int32          // of views that depend on pos: the last one so far, -1 for none
	earlier   []int32          // for each of these accesses: the one before it in its group, -1 for none
	groupBase []int32          // the first group of each symbolic location
	forms     []views.Range    // of the views of symbolic locations
	ofPair    [2][]views.Range // of two views at hand
	keys      []views.Key
	intervals []views.Interval

	kinship    kin
	byLocation lists // accesses to some locations: the symbolic ones, then those
}

// prove runs the rules. A group of rules that fails ends the proof: later groups would report its consequences.
func prove(f *ir.Flat, b Backend, w without) *Proof {
	p := newProof(f, b, w)
	if f == nil {
		p.Errorf(CodeStructure, "", "there is no program")
		return p
	}
	p.stats = Stats{Variants: 1, Tasks: len(f.Tasks), Counters: len(f.Counters)}
	for _, group := range [][]func(*Proof){
		{(*Proof).checkStructure, (*Proof).checkTarget},
		{(*Proof).checkBackend, (*Proof).checkParameters},
		{(*Proof).checkBuffers, (*Proof).checkPages},
		{(*Proof).checkOperands},
		{(*Proof).findLocations, (*Proof).checkAliases},
		{(*Proof).checkCounters, (*Proof).checkEpochs},
		{(*Proof).checkDeadlock},
		{(*Proof).cutLocations},
		{(*Proof).checkWords},
		{(*Proof).checkMemory},
		{(*Proof).checkPositions, (*Proof).checkOutputs, (*Proof).checkCapacity, (*Proof).checkReads,
			(*Proof).checkIndices},
	} {
		for _, rule := range group {
			rule(p)
		}
		if !p.sound() {
			break
		}
	}
	return p
}

// sound reports whether no rule has failed so far.
func (p *Proof) sound() bool { return p.errors == 0 }

// What one proof reports is bounded: a broken edge can leave thousands of pairs unordered. Errors and warnings are
// counted apart, so that no number of warnings hides an error.
const (
	maxErrors   = 40
	maxWarnings = 10
)

// Errors is the number of errors so far, those included that were too many to keep.
func (p *Proof) Errors() int { return p.errors }

// Full reports whether there is no room for another error, so that a rule may stop.
func (p *Proof) Full() bool { return p.errors >= maxErrors }

// Errorf adds an error and returns it, so that the caller can attach notes.
func (p *Proof) Errorf(code *diag.Code, pos, format string, args ...any) *diag.Diagnostic {
	d := diag.Errorf(code, pos, format, args...)
	locate(d)
	if p.without.drops(code.ID) {
		return d
	}
	if p.errors++; p.errors <= maxErrors {
		p.diags.Add(d)
	}
	return d
}

// without names codes of which nothing is reported: rules that are taken away. It is nil but in the tests that show
// what each rule is for.
type without map[string]bool

func (w without) drops(code string) bool { return w != nil && w[code] }

// from returns the diagnostics of a list that are reported.
func (w without) from(l diag.List) diag.List {
	if w == nil {
		return l
	}
	return slices.DeleteFunc(l, func(d *diag.Diagnostic) bool { return w.drops(d.Code) })
}

func (p *Proof) warnf(code *diag.Code, pos, format string, args ...any) *diag.Diagnostic {
	d := diag.Warningf(code, pos, format, args...)
	locate(d)
	if p.warnings++; p.warnings <= maxWarnings {
		p.diags.Add(d)
	}
	return d
}

// Task is the position of a diagnostic about a task.
func (p *Proof) Task(t int32) string { return "task " + p.flat.Tasks[t].Name }

// Who names a task with its place, for use inside a message.
func (p *Proof) Who(t int32) string {
	if sm := p.flat.Tasks[t].SM; sm >= 0 {
		return fmt.Sprintf("%s (sm %d)", p.flat.Tasks[t].Name, sm)
	}
	return p.flat.Tasks[t].Name
}
