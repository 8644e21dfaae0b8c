package compiler

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"amkc/codegen"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/validate"
	"amkc/validate/kernel"
)

// Emission is the output for a proved program.
type Emission struct {
	Proof    validate.Report // of the program of one row
	Memory   host.Footprint
	Files    map[string][]byte // generated, and the model's own
	Warnings diag.List         // of import, and of memory that hardly suffices
}

// Emit proves a lowered program, renders the files of its build, and reads them back. Nothing is written. It uses only
// the options that select what to compile. The error for a program that is not proved is a diagnostic with the findings
// as its notes; [Prove] returns them individually.
func Emit(l *Scheduled, o Options) (*Emission, error) { return emit(l, &BuildOptions{Options: o}) }

// Prove reports whether a program is safe, and whether the generated kernel can run it.
func Prove(p *ir.Program) validate.Report { return validate.ProgramFor(kernel.Backend, p) }

// A Step follows the passes. It does not change the scheduled program.
type Step struct {
	Name, Doc string // as of a pass
	After     []string
	run       func(*Emission, *Scheduled, *BuildOptions) error
}

// Steps lead from the scheduled program to the text of a build. A test checks their order against Step.After.
var Steps = []Step{
	{"validate", "prove each program free of deadlocks and races, and that the generated kernel can run it",
		[]string{"exchange"}, (*Emission).validate},
	{"emit", "count the memory that the build needs, and write its sources as text",
		[]string{"validate"}, (*Emission).emit},
	{"readback", "read programs out of the text, and compare them with those that were proved",
		[]string{"emit"}, (*Emission).readback},
}

func emit(l *Scheduled, o *BuildOptions) (*Emission, error) {
	e := &Emission{}
	for i := range Steps {
		if err := Steps[i].run(e, l, o); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (e *Emission) validate(l *Scheduled, o *BuildOptions) error {
	if err := Lacking(o.Model, slices.Concat([]*ir.Program{l.Program}, l.Passes)...); err != nil {
		return err
	}
	for _, p := range slices.Concat([]*ir.Program{l.Program}, l.Passes) {
		proof := Prove(p)
		if p == l.Program {
			e.Proof = proof
		}
		if !proof.OK {
			return notProved(o.Model, p, proof)
		}
	}
	return nil
}

func (e *Emission) emit(l *Scheduled, o *BuildOptions) (err error) {
	if e.Memory, err = codegen.Footprint(l.Program, l.Passes...); err != nil {
		return err
	}
	e.Warnings = append(l.Warnings, CheckMemory(l.Program.Target, e.Memory)...)
	if err := o.accept(e.Warnings); err != nil {
		return err
	}
	e.Files, err = projectFiles(l, o)
	return err
}

func (e *Emission) readback(l *Scheduled, _ *BuildOptions) error {
	return checkEmitted(e.Files, l.Program, l.Passes...)
}

// Digest is the SHA-256 of all files and their names, except packed weights, kernels and the manifest.
func (e *Emission) Digest() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(e.Files)) {
		fmt.Fprintf(h, "%s %s\n", codegen.Digest(e.Files[name]), name)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// notProved is the error for a program that is not proved.
func notProved(model string, p *ir.Program, proof validate.Report) error {
	notes := make([]string, 0, len(proof.Diags))
	for _, d := range proof.Diags.Errors() {
		notes = append(notes, d.Error())
	}
	what := "the schedule"
	if p.Pass.NumTokens() > 1 {
		what = fmt.Sprintf("the schedule for passes of %v", p.Pass)
	}
	return diag.Errorf(codeProof, model, "%s is not proved safe, so nothing is emitted", what).With(notes...)
}
