package compiler

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"amkc/codegen"
	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes"
	"amkc/runtime/host"
	"amkc/runtime/infile"
)

var (
	codeOtherProgram = diag.New("AMK4906", "a program of the build is not what its model and its knobs give", `
The passes make a program of config.json, of what the user chose (target, types, formats, positions, rows and sequences)
and of knobs. amkc verify runs them again, with the knobs that program.json states, and compares all of the program but
names: what is computed and with which values, the layouts of weights and caches, variants, and the distribution. One
run gives the program of one token and those of passes of several, so they agree with each other too. This program
differs: it was edited, its config.json was, or the build was written by another version of amkc, which the message then
says. Compile again.`)

	codeOtherWeights = diag.New("AMK4907", "packed weights are not those that the program reads", `
weights.safetensors has one tensor for each weight of the program, in the order of ir.PackedWeights, with the type and
the shape that the program's format makes of it; and it holds the frequencies of rotations, which follow from
config.json. This file says of itself that it holds something else, or has other frequencies. What other tensors hold
is of the checkpoint, and nothing in the build says what it should be. Compile again.`)
)

// compileAgain runs the passes over a build's config.json once more, without its weights. What the user chose is in the
// manifest and in the programs, and the knobs are those that the program of one token states. An error is of the model
// unless model is true, and else of the knobs.
func compileAgain(dir string, m *codegen.Manifest, p *ir.Program, more []*ir.Program) (l *Scheduled, model bool,
	err error) {
	o := Options{Model: dir, Name: p.Model.Name, ConfigOnly: true, DType: &p.Model.Weights, MaxSeq: p.Model.MaxSeq,
		Ranks: p.Ranks, Target: p.Target, Config: p.Config, AssumeInert: m.Source.AssumeInert, Cache: &p.Model.Cache,
		tensors: tensorsOf(p)}
	if len(m.Source.Weights) > 0 {
		if o.Formats, err = passes.ParseWeightFormats(strings.Join(m.Source.Weights, ",")); err != nil {
			return nil, false, err
		}
	}
	for _, q := range more {
		o.Passes = append(o.Passes, q.Pass)
	}
	o.After = func(_ int, pass *passes.Pass, _ *passes.State, _ time.Duration) error {
		model = model || pass.Name == passes.Quantise.Name
		return nil
	}
	l, err = RunPasses(o)
	return l, model, err
}

// checkProgram compares a program of the build with the one that its model and knobs give, and reports whether they
// agree.
func (v *Verification) checkProgram(path string, have, want *ir.Program) bool {
	found := differences(have, want)
	if len(found) > 0 {
		v.Findings.Add(diag.Errorf(codeOtherProgram, path, "differs from what %s and its knobs give", host.ConfigFile).
			With(found...))
	}
	return len(found) == 0
}

// checkWeights compares what packed weights say of themselves with what the program reads, and those that the passes
// compute, the frequencies of rotations, with what the model gives. The tensors of a file have no hole between them.
func (v *Verification) checkWeights(path string, p *ir.Program, g *ir.Graph, invented *host.Invented) {
	if _, err := os.Lstat(path); err != nil {
		return // among the findings of its digest
	}
	say := func(format string, args ...any) { v.Findings.Add(diag.Errorf(codeOtherWeights, path, format, args...)) }
	file, err := checkpoint.OpenFile(path)
	if err != nil {
		say("cannot be read: %v", infile.Reason(err))
		return
	}
	defer file.Close()
	places, _ := ir.PackedWeights(p)
	places = slices.DeleteFunc(places, func(pl ir.Placement) bool { return invented.Find(int64(pl.Offset)) != nil })
	tensors, computed := file.Tensors(), passes.NewWeights(nil, g, nil)
	if len(tensors) != len(places) {
		say("has %d tensors; want %d, those that the program reads", len(tensors), len(places))
		return
	}
	for i, pl := range places {
		b, t := &p.Buffers[pl.Buffer], tensors[i]
		want := packedSpec(b, pl.Name)
		if t.Name != want.Name || t.DType != want.DType || !slices.Equal(t.Shape, want.Shape) {
			say("has tensor %q, %v %v, as its number %d; want %q, %v %v", t.Name, t.DType, t.Shape, i+1, want.Name,
				want.DType, want.Shape)
			return
		}
		if b.Kind != ir.Const {
			continue
		}
		var packed bytes.Buffer
		raw, err := t.Raw()
		if err == nil {
			err = computed.Pack(&packed, b, pl.Index)
		}
		if err != nil {
			say("tensor %q cannot be compared: %v", t.Name, infile.Reason(err))
		} else if !bytes.Equal(raw[:min(len(raw), packed.Len())], packed.Bytes()) {
			say("tensor %q has other frequencies than %s gives", t.Name, host.ConfigFile)
		}
	}
}

// differences lists the first lines in which the text forms of two programs differ, whatever they call things.
func differences(have, want *ir.Program) []string {
	const most = 10
	lines := func(p *ir.Program) []string {
		if named, clash := codegen.Conventional(p); clash == nil {
			p = named
		}
		return strings.Split(string(ir.Print(p)), "\n")
	}
	a, b := lines(have), lines(want)
	var out []string
	stage := ""
	for k := 0; k < min(len(a), len(b)) && len(out) < most; k++ {
		if strings.HasPrefix(b[k], "stage ") {
			stage = strings.Fields(b[k])[1] + ": "
		}
		if a[k] != b[k] {
			had, wanted := around(a[k], b[k])
			out = append(out, fmt.Sprintf("%shas %q, want %q", stage, had, wanted))
			if len(a) != len(b) {
				return out // what follows is moved
			}
		}
	}
	if len(out) == 0 && len(a) != len(b) {
		out = append(out, fmt.Sprintf("has %d lines, want %d", len(a), len(b)))
	}
	return out
}

// around returns what is around the first difference of two lines.
func around(a, b string) (string, string) {
	const before, after = 40, 60
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	cut := func(s string) string { return s[max(0, at-before):min(len(s), at+after)] }
	return cut(a), cut(b)
}
