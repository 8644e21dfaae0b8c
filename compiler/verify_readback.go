package compiler

import (
	"os"
	"path/filepath"
	"strings"

	"amkc/compiler/readback"
	"amkc/ir"
	"amkc/validate"
)

// headerFiles are those that the schedule is read back out of, as readback.Program takes them.
var headerFiles = [3]string{"schedule.h", "pages.h", "model_config.h"}

// readBack rebuilds the program from the headers, proves it and compares it with program.json, which is nil if it cannot be
// read. It looks at edited headers too, to say what the edit does.
func (v *Verification) readBack(dir string, want *ir.Program) {
	var text [len(headerFiles)][]byte
	for i, name := range headerFiles {
		var err error
		if text[i], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return // among the findings of its digest
		}
	}
	p, diags := readback.Program(text[0], text[1], text[2])
	if diags.Err() == nil && want != nil {
		diags.Add(readback.Compare(p, want)...)
	}
	for _, d := range diags {
		for _, name := range headerFiles {
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
	v.Proof = validate.ProgramFor(validate.Kernel, p)
	for _, d := range v.Proof.Diags {
		v.Findings.Add(d.With("of the schedule that was read back out of the headers"))
	}
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
