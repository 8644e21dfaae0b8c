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
	// Kernel is the generated kernel: the opcodes that the device runtime has stage bodies for, and a producer that
	// runs ahead of the waits (runahead.go).
	Kernel
)

func (b Backend) String() string {
	if b == Kernel {
		return "kernel"
	}
	return "ref"
}

// Implements reports whether the backend can carry out an opcode. The kernel runs fused sequences of those that it
// implements; which sequences there are is codegen's to say. None implements a recipe of the AMK profile: its steps
// are listed as the ops of the task.
func (b Backend) Implements(c ir.Opcode) bool {
	if c < 0 || int(c) >= len(ir.Ops) || ir.Ops[c].Recipe {
		return false
	}
	return b != Kernel || ir.Ops[c].Kernel
}

// checkBackend: the backend implements every opcode, and the counters. One finding of a kind is enough.
func (p *proof) checkBackend() {
	if p.backend == Kernel {
		p.checkKernelCounters()
	}
	var reported [len(ir.Ops)]bool
	quantised := false
	for t := range p.flat.Tasks {
		if p.rootOf(t) != t {
			continue
		}
		for k := range p.flat.Tasks[t].Ops {
			op := &p.flat.Tasks[t].Ops[k]
			code := op.Code
			if p.backend == Kernel && code == ir.GEMV && len(op.In) > 2 && !quantised {
				quantised = true
				p.errorf(CodeBackend, p.task(int32(t)),
					"%s has %d inputs, and the kernel multiplies a vector by a matrix: it knows no bias, "+
						"scales or zeros", code, len(op.In)).
					Suggest("add a bias by ADD, or prove the program for backend %s", Reference)
			}
			if p.backend.Implements(code) || reported[code] {
				continue
			}
			reported[code] = true
			if ir.Ops[code].Recipe {
				d := p.errorf(CodeBackend, p.task(int32(t)), "%s is a recipe, which no backend implements", code)
				d.Suggest("list the steps of the recipe as ops of the task")
				continue
			}
			d := p.errorf(CodeBackend, p.task(int32(t)), "backend %s does not implement %s; it implements %s",
				p.backend, code, p.backend.implemented())
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
			diags.Add(diag.Errorf(CodeBackend, "variant "+p.flat.Name,
				"realises its exchanges as %s, and variant %s as %s; the kernel realises all alike", p.exchanges,
				first.flat.Name, first.exchanges).
				Suggest("realise both alike"))
		}
	}
	return diags
}

// awaited reports whether the kernel finds the words that task w wrote. It polls for the epoch of the exchange that a
// task waits for, whatever has ordered the words already, so w must signal the counter of that exchange. Counted
// words are not looked at.
func (s *sweep) awaited(w int32) bool {
	if s.p.backend != Kernel || w == s.task {
		return true
	}
	c := s.p.flat.Tasks[w].Signal
	if c >= 0 && s.waitsFor(int32(c)) {
		return true
	}
	return s.p.exchanges != ir.Flagged && (c < 0 || s.p.flat.Counters[c].How != ir.Flagged)
}
