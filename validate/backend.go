package validate

import (
	"fmt"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// Backend is what is to carry out a program. It decides which opcodes there are, and what is read ahead of the waits.
type Backend uint8

const (
	// Reference is package refvm: every opcode, and nothing is read ahead.
	Reference Backend = iota
	// Kernel is the generated kernel: the opcodes that the device runtime has stage bodies for, and a producer that runs
	// ahead of the waits (runahead.go).
	Kernel
)

func (b Backend) String() string {
	if b == Kernel {
		return "kernel"
	}
	return "ref"
}

// The kernel runs fused sequences of these; which sequences there are is codegen's to say.
var kernelOps = [len(ir.Ops)]bool{
	ir.NOP: true, ir.COPY: true, ir.EMBED: true, ir.RMSNORM: true, ir.GEMV: true, ir.ATTENTION: true, ir.ROPE: true, ir.SiluMul: true,
	ir.ADD: true, ir.KVAppend: true, ir.ArgMax: true, ir.AttentionCombine: true,
}

// Implements reports whether the backend can carry out an opcode. None implements FUSED, which is a recipe of the AMK
// profile: its steps are listed as the ops of the task.
func (b Backend) Implements(c ir.Opcode) bool {
	switch {
	case c < 0 || int(c) >= len(kernelOps) || c == ir.FUSED:
		return false
	case b == Kernel:
		return kernelOps[c]
	default:
		return true
	}
}

// checkBackend: the backend implements every opcode, and the counters. One finding of a kind is enough.
func (p *proof) checkBackend() {
	if p.backend == Kernel {
		p.checkKernelCounters()
	}
	var reported [len(ir.Ops)]bool
	for t := range p.flat.Tasks {
		if p.rootOf(t) != t {
			continue
		}
		for k := range p.flat.Tasks[t].Ops {
			code := p.flat.Tasks[t].Ops[k].Code
			if p.backend.Implements(code) || reported[code] {
				continue
			}
			reported[code] = true
			if code == ir.FUSED {
				d := p.errorf(CodeBackend, p.task(int32(t)), "%s is a recipe, which no backend implements", code)
				d.Suggest("list the steps of the recipe as ops of the task")
				continue
			}
			d := p.errorf(CodeBackend, p.task(int32(t)), "backend %s does not implement %s; it implements %s", p.backend, code, p.backend.implemented())
			d.Suggest("use those opcodes, or prove the program for backend %s", Reference)
		}
	}
}

func (b Backend) implemented() string {
	var names []string
	for c := range ir.Ops {
		if b.Implements(ir.Opcode(c)) {
			names = append(names, fmt.Sprint(ir.Opcode(c)))
		}
	}
	return strings.Join(names, ", ")
}

// bestCounter is the counter of the pair of words by which every SM learns the next token: flagged, whatever the others are.
const bestCounter = "best"

// checkKernelCounters: the kernel realises all exchanges of a program in one way, counts from 0, shows its counters to the
// whole GPU, and waits for one exchange a task. A counter whose producers write nothing is a barrier's, which counts beside them. What else the IR can say would not be emitted.
func (p *proof) checkKernelCounters() {
	f := p.flat
	waited, writes := make([]bool, len(f.Counters)), make([]bool, len(f.Counters))
	for t := range f.Tasks {
		task := &f.Tasks[t]
		for k := range task.Ops {
			if task.Signal >= 0 && task.Ops[k].Code != ir.NOP {
				writes[task.Signal] = true
			}
		}
		if len(task.Waits) > 1 {
			p.errorf(CodeBackend, p.task(int32(t)), "has %d waits, and a stage body of the kernel has one", len(task.Waits)).
				Suggest("wait for %s, if all others come before it", f.Counters[task.Waits[len(task.Waits)-1].Counter].Name)
			return
		}
		for _, w := range task.Waits {
			waited[w.Counter] = true
		}
	}
	for t := range f.Tasks {
		task := &f.Tasks[t]
		if len(task.Waits) == 0 || writes[task.Waits[0].Counter] {
			continue
		}
		for k := range task.Ops {
			if code := task.Ops[k].Code; code != ir.NOP {
				c := f.Counters[task.Waits[0].Counter].Name
				p.errorf(CodeBackend, p.task(int32(t)), "runs %s and waits for %s, whose producers write nothing; the kernel waits for such a counter at a barrier alone", code, c).
					Suggest("let a task that runs %s alone wait for it", ir.NOP)
				return
			}
		}
	}
	first := -1
	for i := range f.Counters {
		c := &f.Counters[i]
		switch {
		case c.Init != 0:
			p.errorf(CodeBackend, "counter "+c.Name, "starts at %d, and the kernel counts from 0", c.Init).Suggest("let it start at 0, and lower the thresholds")
			return
		case c.Scope != ir.ScopeGPU:
			p.errorf(CodeBackend, "counter "+c.Name, "has scope %s, and the kernel's are seen by the whole GPU", c.Scope).Suggest("give it scope gpu")
			return
		case !waited[i] || c.Name == bestCounter || c.Name == stepCounter:
		case !writes[i] && c.How == ir.ByCounter:
		case first < 0:
			first, p.exchanges = i, c.How
		case c.How != f.Counters[first].How:
			p.errorf(CodeBackend, "counter "+c.Name, "is realised as %s, and %s as %s; the kernel realises all exchanges alike", c.How, f.Counters[first].Name, f.Counters[first].How).
				Suggest("realise both alike")
			return
		}
	}
}

// checkRealisations: the variants of a program are one kernel, which realises the exchanges of all of them alike.
func checkRealisations(proofs []*proof) diag.List {
	var diags diag.List
	var first *proof
	for _, p := range proofs {
		switch {
		case p.backend != Kernel || p.exchanges == ir.Undecided:
		case first == nil:
			first = p
		case p.exchanges != first.exchanges:
			diags.Add(diag.Errorf(CodeBackend, "variant "+p.flat.Name, "realises its exchanges as %s, and variant %s as %s; the kernel realises all alike", p.exchanges, first.flat.Name, first.exchanges).
				Suggest("realise both alike"))
		}
	}
	return diags
}

// oneExchange: the kernel polls all words of a view for one epoch, so that they are those of one exchange. Task w wrote the
// segment at hand.
func (s *sweep) oneExchange(l *location, i int, a *access, w int32) {
	exchange := int32(s.p.flat.Tasks[w].Signal) + 2
	if s.exchange == 0 {
		s.exchange = exchange
	} else if s.exchange != exchange {
		s.report(l, i, a, CodeBackend, "reads words of two exchanges at once, %s among them, written by %s; the kernel polls a view for one epoch", s.span(l, i, a), s.p.who(w)).
			Suggest("give the two exchanges buffers of their own")
	}
}
