package compiler

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"amkc/codegen"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/readback"
	"amkc/runtime/infile"
	"amkc/validate"
	"amkc/validate/kernel"
)

// readBack rebuilds the program from the headers, proves it and compares it with program.json, which is nil if it
// cannot be read. It looks at edited headers too, to say what the edit does. The headers are those of the build, or of
// its passes of several tokens if sub is their directory.
func (v *Verification) readBack(build, sub string, want *ir.Program) {
	text, dir := map[string][]byte{}, filepath.Join(build, sub)
	for _, name := range readback.Files {
		var ok bool
		if text[name], ok = v.read(filepath.Join(build, headerOf(sub, name)), infile.Source); !ok {
			return
		}
	}
	p, diags := readHeaders(text, want)
	for _, d := range diags {
		for _, name := range readback.Files {
			if strings.HasPrefix(d.Pos, name+":") {
				d.Pos = filepath.Join(dir, d.Pos)
			}
		}
	}
	v.Findings.Add(diags...)
	if p == nil {
		return
	}
	for i := range p.Variants {
		v.Stages += countStages(&p.Variants[i])
	}
	proof := validate.ProgramFor(kernel.Backend, p)
	if sub == "" || !proof.OK {
		v.Proof = proof
	}
	for _, d := range proof.Diags {
		v.Findings.Add(d.With("of the schedule that was read back out of the headers"))
	}
}

// readHeaders rebuilds the program from the headers, and compares it with the one that it should be unless that is nil,
// by the names that generated text has for things.
func readHeaders(text map[string][]byte, want *ir.Program) (*ir.Program, diag.List) {
	p, diags := readback.Program(text)
	if diags.Err() == nil && want != nil {
		named, clash := codegen.Conventional(want)
		if clash != nil {
			diags.Add(clash)
			return p, diags
		}
		diags.Add(readback.Compare(p, named)...)
	}
	return p, diags
}

// checkEmitted refuses rendered files whose headers say anything else than the program that was proved: a mistake in a
// template would otherwise stay unseen until somebody verifies the build.
func checkEmitted(files map[string][]byte, proved *ir.Program, passes ...*ir.Program) error {
	for _, p := range slices.Concat([]*ir.Program{proved}, passes) {
		sub, text := p.Pass.Dir(), map[string][]byte{}
		for _, name := range readback.Files {
			text[name] = files[headerOf(sub, name)]
		}
		_, diags := readHeaders(text, p)
		if diags.Err() == nil {
			continue
		}
		notes := make([]string, len(diags))
		for i, d := range diags {
			notes[i] = d.Error()
		}
		return diag.Errorf(codeEmitted, sub, "the rendered headers say something else than the proved program").
			With(notes...)
	}
	return nil
}

// headerOf is where a build has a source of readback.Files, of passes whose directory is given; "" for one row. The
// model is the same for all.
func headerOf(sub, name string) string {
	if name == codegen.ModelFile {
		return name
	}
	return path.Join(sub, name)
}

func countStages(v *ir.Variant) int {
	n := 0
	for _, node := range v.Body {
		if l, ok := node.(*ir.Loop); ok {
			n += len(l.Body)
		} else {
			n++
		}
	}
	return n
}
