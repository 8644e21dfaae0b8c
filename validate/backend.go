package validate

import (
	"fmt"
	"strings"

	"amkc/ir"
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
	ir.COPY: true, ir.EMBED: true, ir.RMSNORM: true, ir.GEMV: true, ir.ATTENTION: true, ir.ROPE: true, ir.SiluMul: true,
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

// checkBackend: the backend implements every opcode. One finding an opcode is enough.
func (p *proof) checkBackend() {
	var reported [len(ir.Ops)]bool
	for t := range p.flat.Tasks {
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
