// Package kernel checks what the generated kernel requires of a program beyond a proof: counters that the kernel can
// realise, operands of the types and layouts that its stage bodies read, no writes to memory that it reads ahead of a
// wait, and agreement with the facts of the model, from which generated code takes its sizes.
//
// The rules use the results of package validate: its Proof has the program, bounds the work of each question, and
// collects the diagnostics. The package imports the standard library, amkc/ir with diag and op, amkc/validate and
// amkc/validate/views. It must not import codegen, which emits the code that these rules are about: a check that shares
// code with its subject shares its bugs.
package kernel

import (
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate"
)

// Backend is the generated kernel: the opcodes that the device runtime has stage bodies for, and a producer that runs
// ahead of the waits. It runs fused sequences of the opcodes; codegen determines which sequences are supported.
var Backend validate.Backend = kernel{}

type kernel struct{}

func (kernel) String() string { return "kernel" }

func (kernel) Implements(c ir.Opcode) bool {
	return validate.Reference.Implements(c) && ir.Ops[c].Kernel
}

func (kernel) Contract(p *validate.Proof) validate.Contract {
	return &contract{Proof: p, flat: p.Flat()}
}

// contract is what the kernel demands of one variant.
type contract struct {
	*validate.Proof
	flat      *ir.Flat
	exchanges ir.Realisation // how the kernel implements exchanges; undecided if there are none
	quantised bool           // an op with more operands than the kernel's has been reported
}

// CheckVariants: the variants of a program are one kernel, which realises the exchanges of all of them alike. The
// sequences of a pass are at any positions, and so in one variant.
func (kernel) CheckVariants(all []validate.Contract) diag.List {
	var diags diag.List
	var first *contract
	for _, v := range all {
		c := v.(*contract)
		switch {
		case len(all) > 1 && c.flat.Pass.NumSequences() > 1:
			return append(diags, diag.Errorf(CodeTokens, "variant "+c.flat.Name,
				"is for positions %d to %d, and each of the %d sequences of a pass may be at any; want one variant: "+
					"tiling.attention.split_from=0, or tiling.attention.max_splits=1", c.flat.Lo, c.flat.Hi,
				c.flat.Pass.NumSequences()).Suggest(otherwise, validate.Reference))
		case c.exchanges == ir.Undecided:
		case first == nil:
			first = c
		case c.exchanges != first.exchanges:
			diags.Add(diag.Errorf(validate.CodeBackend, "variant "+c.flat.Name,
				"realises its exchanges as %s, and variant %s as %s; the kernel realises all alike", c.exchanges,
				first.flat.Name, first.exchanges).
				Suggest("realise both alike"))
		}
	}
	return diags
}

// CheckModel: the program agrees with the facts of its model, and operands have the form in which the kernel has them.
func (p *contract) CheckModel(m *ir.Model) {
	p.checkFacts(m)
	p.checkForms(m)
}

// CheckOp: a matrix is multiplied without what a quantised one comes with. One finding is enough.
func (p *contract) CheckOp(t int32, op *ir.FlatOp) {
	if !multiplies(op.Code) || len(op.In) <= 2 || p.quantised {
		return
	}
	p.quantised = true
	p.Errorf(validate.CodeBackend, p.Task(t),
		"%s has %d inputs, and the kernel multiplies a vector by a matrix: it knows no bias, "+
			"scales or zeros", op.Code, len(op.In)).
		Suggest("add a bias by ADD, or prove the program for backend %s", validate.Reference)
}

// multiplies reports whether an op is a product with a matrix.
func multiplies(code ir.Opcode) bool { return code == ir.GEMV || code == ir.GEMM }

// Finds: the kernel polls words for the epoch of the exchange that their reader waits for, so the writer must signal
// the counter of that exchange. Counted words are not looked at.
func (p *contract) Finds(reader, writer int32) bool {
	signal := p.flat.Tasks[writer].Signal
	if signal >= 0 {
		for _, w := range p.flat.Tasks[reader].Waits {
			if w.Counter == signal {
				return true
			}
		}
	}
	return p.exchanges != ir.Flagged && (signal < 0 || p.flat.Counters[signal].How != ir.Flagged)
}
