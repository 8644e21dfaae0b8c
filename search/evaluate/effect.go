package evaluate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"amkc/codegen"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
)

// program is what a lowered program is called among the sources of a step.
const program = "program"

// programText is a program without its configuration, which states every knob, whether anything follows from it or not.
func programText(p *ir.Program) []byte {
	unconfigured := *p
	unconfigured.Config = ir.ScheduleConfig{}
	return ir.Print(&unconfigured)
}

// sources are what the kernels of a step are made of: the generated files by name, and the program among them.
func sources(p *ir.Program) (map[string][]byte, error) {
	files, err := codegen.CUDA(p)
	if err != nil {
		return nil, err
	}
	files[program] = programText(p)
	return files, nil
}

// differing lists the files that are not the same in both.
func differing(a, b map[string][]byte) []string {
	var names []string
	for name, text := range a {
		if of, is := b[name]; !is || !bytes.Equal(text, of) {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, is := a[name]; !is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// effect refuses a candidate that has other settings than its baseline and the same kernels: to measure it would tell
// nothing. The same settings are judged, because a campaign begins with them to see the noise.
func (e *evaluation) effect() error {
	if e.v.ID == e.v.BaselineID || !bytes.Equal(programText(e.candidate.Program), programText(e.baseline.Program)) {
		return nil
	}
	was, err := sources(e.baseline.Program)
	if err != nil {
		return err
	}
	is, err := sources(e.candidate.Program)
	if err != nil {
		return rejected(err)
	}
	if len(differing(is, was)) > 0 {
		return nil
	}
	return rejected(diag.Errorf(codeIdle, "candidate", "emits the same step as its baseline, byte for byte: nothing "+
		"follows from %s; want a value that makes a difference, as amkc search space lists them",
		strings.Join(e.changed(), ", ")))
}

// changed lists the knobs that candidate and baseline do not state alike, with the values that they have in each.
func (e *evaluation) changed() []string {
	var words []string
	axes := knobs.Axes()
	for i := range axes {
		a := &axes[i]
		if v, w := e.Candidate[a.Path], e.Baseline[a.Path]; v != w { // not stated is the empty value
			words = append(words, fmt.Sprintf("%s %s (%s in the baseline)", a.Path, a.Of(&e.candidate.Program.Config),
				a.Of(&e.baseline.Program.Config)))
		}
	}
	return words
}
