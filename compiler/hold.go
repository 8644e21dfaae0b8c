package compiler

import (
	"context"
	"fmt"
	"math"

	"amkc/codegen"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
	"amkc/refvm"
	"amkc/runtime/host"
)

// A HoldReport compares the results of stages with those of the reference VM for the same inputs.
type HoldReport struct {
	Bodies []*BodyReport
	Beyond []Beyond // the first of each body, in the order of the step
}

// A BodyReport is about all stages with one body of the device runtime.
type BodyReport struct {
	Body    string `json:"body"`
	Outputs int    `json:"outputs"` // compared
	// Exact are outputs whose bound leaves one value: they were compared to the bit.
	Exact int `json:"exact"`
	// Most is the largest error of an output whose bound leaves several values, as a fraction of its bound.
	Most float64 `json:"most"`
	// Unbounded are outputs without a bound: they are not compared.
	Unbounded int `json:"unbounded,omitempty"`
}

// Beyond is an output that differs from the reference VM by more than its bound.
type Beyond struct {
	Body     string
	Stage    string
	Position int
	Element  int
	Got      float32
	Want     float32 // before it is rounded
	Bound    float64
	Of       int // elements of the stage
	Wrong    int // how many of them are beyond their bounds
}

// String returns the finding as a sentence.
func (b *Beyond) String() string {
	return fmt.Sprintf("position %d: stage %s, by %s: element %d is %v; the reference VM makes %v of the same inputs, "+
		"and the body's bound is %.3g; %d of %d elements are beyond theirs", b.Position, b.Stage, b.Body, b.Element,
		b.Got, b.Want, b.Bound, b.Wrong, b.Of)
}

// Hold compares a kernel at position 0 with the reference VM, stage by stage at the first positions: the results of a
// stage, and the last hidden state, with those of the VM for the inputs that the kernel published. The bound of each
// element follows from its terms, by the rules of [refvm.Radii]. If it is 0, or leaves one value after rounding, both
// must have the same bits.
func Hold(ctx context.Context, b *PackedBuild, traced Tracer, positions int) (*HoldReport, error) {
	facts, err := codegen.Facts(b.Program)
	if err != nil {
		return nil, err
	}
	o, err := newOracle(b, b.Program, refvm.Options{Round: refvm.Device, Radii: true, Workers: 1})
	if err != nil {
		return nil, err
	}
	h := &holder{oracle: o, bodies: map[string]*BodyReport{}, seen: map[string]bool{}}
	for at, id := range host.CheckIDs(0, positions, facts.Model.Vocab) {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		trace, err := traced.Trace(ctx, []int{id})
		if err != nil {
			return nil, err
		}
		if err := h.step(at, id, trace); err != nil {
			return nil, err
		}
	}
	return &h.report, nil
}

type holder struct {
	*oracle
	report HoldReport
	bodies map[string]*BodyReport
	seen   map[string]bool // bodies of which something is beyond its bound
}

// step has the VM follow a step of the kernel.
func (h *holder) step(at, id int, trace *host.Trace) error {
	vm, err := h.session.At(at)
	if err != nil {
		return err
	}
	stages, err := h.stages(at)
	if err != nil {
		return err
	}
	for _, s := range stages {
		if got := trace.Published(s.name); got != nil && !vm.Give(s.buffer, got) {
			return diag.Errorf(codeTrace, "stage "+s.name, "the kernel publishes %d elements, and the program %d",
				len(got), len(vm.Reach(s.buffer)))
		}
	}
	if _, _, err := h.session.Step(id); err != nil {
		return err
	}
	compared := 0
	for _, s := range stages {
		got := trace.Published(s.name)
		switch {
		case s.hidden && trace.Hidden == nil:
			return diag.Errorf(codeTrace, "stage "+s.name, "the trace has no last hidden state")
		case s.hidden:
			h.compare(at, &s, trace.Hidden, vm.Reach(s.buffer))
			continue
		case got == nil:
			continue
		}
		compared++
		h.compare(at, &s, got, vm.Reach(s.buffer))
		vm.Give(s.buffer, nil)
	}
	if compared != len(trace.Vectors) {
		return diag.Errorf(codeTrace, "trace", "the kernel publishes %d vectors, and the program %d of these",
			len(trace.Vectors), compared)
	}
	return nil
}

// compare holds what a stage has published to its bounds.
func (h *holder) compare(at int, s *publisher, got []float32, want []refvm.Reach) {
	r := h.bodies[s.body]
	if r == nil {
		r = &BodyReport{Body: s.body}
		h.bodies[s.body], h.report.Bodies = r, append(h.report.Bodies, r)
	}
	worst, wrong, most := -1, 0, 0.0
	for i := range got {
		w := &want[i]
		if w.Value == w.Value && math.IsInf(w.Radius, 1) {
			r.Unbounded++
			continue
		}
		r.Outputs++
		if w.Lo == w.Hi {
			r.Exact++
		}
		switch inside := got[i] >= w.Lo && got[i] <= w.Hi; {
		case got[i] != got[i] && w.Value != w.Value: // no number, as it should be
			continue
		case inside && w.Lo != w.Hi:
			if part := w.Off(got[i]) / w.Radius; part < math.Inf(1) { // and a number, which JSON has
				r.Most = max(r.Most, part)
			}
			continue
		case inside:
			continue
		}
		wrong++
		off := w.Off(got[i]) - w.Radius
		if worst < 0 || off > most || off != off {
			worst, most = i, off
		}
	}
	if wrong > 0 && !h.seen[s.body] {
		h.seen[s.body] = true
		h.report.Beyond = append(h.report.Beyond, Beyond{Body: s.body, Stage: s.name, Position: at, Element: worst,
			Got: got[worst], Want: want[worst].Value, Bound: want[worst].Radius, Of: len(got),
			Wrong: wrong})
	}
}

// A publisher is a stage that publishes a buffer, and the body of the device runtime that computes it.
type publisher struct {
	name, buffer, body string
	hidden             bool // it keeps the last hidden state for the host
}

// stages lists the stages of the variant for a position that publish, in order.
func (o *oracle) stages(position int) (all []publisher, err error) {
	for i := range o.program.Variants {
		v := &o.program.Variants[i]
		if position < v.Lo || position > v.Hi {
			continue
		}
		err = eachStage(v, func(s *ir.Stage, layer int) error {
			name, err := ir.Resolve(s.Label(), layer)
			if err != nil {
				return err
			}
			buffer, err := o.published(s, layer)
			if err == nil && buffer != "" {
				hidden := kernel.Of(s) == kernel.KeepHidden
				all = append(all, publisher{name, buffer, codegen.BodyOf(o.program, s), hidden})
			}
			return err
		})
	}
	return all, err
}
