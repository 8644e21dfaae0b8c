package evaluate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"amkc/compiler"
	"amkc/cost"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/search"
)

// Stages are those that can be tuned on their own, as knobs and regions name them, in the order of a step. A model may
// not have all of them.
func Stages() []string {
	stages := slices.Clone(knobs.Warps.Row().Stages)
	return slices.Insert(stages, 1, attention)
}

const attention = "attention"

// stageNamed is what knobs and regions call the stage of a label, which may have a layer. A context that is split has
// two, which are both attention.
func stageNamed(label string) string {
	switch name := label[strings.LastIndexByte(label, '.')+1:]; name {
	case "attn", "part":
		return attention
	default:
		return name
	}
}

// stageTexts says what the stages are in a program: by name, what each computes on which SM, at the positions that this
// is for. What a stage waits for is about others: on its own it has all of that.
func stageTexts(p *ir.Program) map[string]string {
	stages, last := map[string]string{}, map[string]string{}
	for i := range p.Variants {
		v := &p.Variants[i]
		here := map[string]string{}
		v.Each(func(s *ir.Stage, _ *ir.Loop) {
			name := stageNamed(s.Label())
			text, err := json.Marshal(struct {
				Layer ir.Layer
				Kind  int
				Dist  ir.Dist
				Ops   []ir.Op
			}{s.Layer, s.Kind, s.Dist, s.Ops})
			if err != nil {
				panic(err) // of types that have a JSON
			}
			here[name] += string(text) + "\n"
		})
		for name, text := range here {
			if text != last[name] { // variants that do not differ in a stage have no boundary for it
				stages[name] += fmt.Sprintf("from %d: %s", v.Lo, text)
				last[name] = text
			}
		}
	}
	return stages
}

// bears lists the stages that a value of a knob, which makes another build, has a say in: its own; all of them where it
// sets the ring that they stream through or the vectors that they read and publish; and else those about which
// something else stands in the program. A stage on its own is in no loop over layers.
func bears(a *knobs.Axis, is, was *emitted) []string {
	var all []string
	for _, stage := range Stages() {
		_, there := was.stages[stage]
		own := a.Stage == stage
		every := regionOf(a) == "ring" || a.Group == "exchange"
		other := a.Stage == "" && a.Group != "loop" && is.stages[stage] != was.stages[stage]
		if there && (own || every || other) {
			all = append(all, stage)
		}
	}
	return all
}

// missing says that a program has no such stage, if it has none.
func missing(p *ir.Program, stage string) error {
	is := stageTexts(p)
	if _, there := is[stage]; there && slices.Contains(Stages(), stage) {
		return nil
	}
	known := slices.DeleteFunc(Stages(), func(name string) bool { return is[name] == "" })
	return diag.Errorf(codeStage, "stage", "the schedule has no %s to be tuned; %s", stage, diag.Guess(stage, known,
		"want "+strings.Join(known, ", ")))
}

// SpaceOf is the part of a model's space that has a say in a stage on its own. The error is a diagnostic.
func SpaceOf(o compiler.Options, s *search.Space, stage string) (*search.Space, error) {
	o.Config, o.ConfigOnly = ir.ScheduleConfig{}, true
	l, err := compiler.RunPasses(o)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	if err := missing(l.Program, stage); err != nil {
		return nil, err
	}
	return s.Of(stage), nil
}

// predictAlone is what is predicted of a stage on its own in a step, at a position. It has no ceiling, and no traits:
// it teaches a prior nothing of steps.
func predictAlone(is, was *cost.Prediction, stage string) (at search.At, err error) {
	p := search.Predicted{}
	if p.Candidate, err = alone(is, stage); err != nil {
		return at, err
	}
	if p.Baseline, err = alone(was, stage); err != nil {
		return at, err
	}
	return search.At{Position: is.Position, Candidate: always(p.Candidate), Baseline: always(p.Baseline),
		Predicted: &p}, nil
}

// alone is what the cost model takes the slowest SM of a stage to take, in all layers together. To the mean SM a stage
// that few SMs compute seems to be fast.
func alone(p *cost.Prediction, stage string) (us float64, err error) {
	for i := range p.Stages {
		if stageNamed(p.Stages[i].Name) == stage {
			us += p.Stages[i].Slowest
		}
	}
	if us <= 0 {
		return 0, diag.Errorf(codeStage, "stage", "nothing is predicted of %s at position %d; want a stage and a "+
			"position at which it takes time", stage, p.Position)
	}
	return us, nil
}
