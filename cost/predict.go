package cost

import (
	"fmt"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// A Prediction is the predicted time of a step. Times are microseconds.
type Prediction struct {
	Target        string  `json:"target"`
	Arch          string  `json:"arch"`
	Label         string  `json:"label"` // how far it is to be trusted: Predicted or NeverMeasured
	Position      int     `json:"position"`
	Variant       string  `json:"variant"`
	BytesPerToken int64   `json:"bytes_per_token"` // weights and earlier cache rows that a step reads
	Ceiling       float64 `json:"ceiling_us"`      // the same bytes through the same ring, nothing waited for
	Latency       float64 `json:"latency_us"`      // of a step in the middle of a launch
	// the same with its stream taken away: every byte is there when it is wanted
	Drain   float64 `json:"drain_us"`
	Share   float64 `json:"share_of_ceiling"`
	Stages  []Stage `json:"stages"`
	StepEnd float64 `json:"step_end_us"` // the join of all SMs, and waiting for the last of them
	// of the latency: the mean SM's ring was full, and its stream stood still
	RingFull    float64  `json:"ring_full_us"`
	Ring        Ring     `json:"ring"`
	Link        *Link    `json:"link,omitempty"` // of several GPUs; bytes and stages are those of one
	Assumptions []string `json:"assumptions"`
}

// A Stage is the time of one stage: all iterations together, averaged over SMs.
type Stage struct {
	Name  string `json:"name"`
	Times int    `json:"times"` // iterations
	Bytes int64  `json:"bytes"` // streamed, padding included
	Parts
	// Slowest is what the slowest SM of each iteration takes from when it is there and what it reads was published
	// until what it makes is: what a stage on its own is judged by, since all that reads the stage waits for that SM.
	// The mean SM has little to do in a stage that few SMs compute, however long these take. No part of Total.
	Slowest float64 `json:"-"`
}

// Ring is the machine as the model sees it: sizes in bytes per SM, speeds in 10^9 bytes per second.
type Ring struct {
	Slots     int     `json:"slots"`
	InFlight  float64 `json:"in_flight_bytes"`
	Ahead     float64 `json:"ahead_bytes"` // that may wait in L2
	Bandwidth float64 `json:"gbs"`         // of all SMs
}

// Labels of predictions.
const (
	Predicted     = "predicted"
	NeverMeasured = "predicted, never measured"
)

// A Model predicts the steps of one program.
type Model struct {
	program *ir.Program
	reader  *reader
	fit     Calibration
	formats FormatCalibration
	passes  *PassCalibration // nil: a step is predicted
	link    *Link            // nil: there is one GPU
}

// New takes a program that ir.Check accepts. The error is a diagnostic: the program has no target, or one of unknown
// bandwidth.
func New(p *ir.Program) (*Model, error) { return NewWith(p, Calibrated()) }

// NewWith is New with another calibration, for fitting one.
func NewWith(p *ir.Program, fit Calibration) (*Model, error) {
	if p.Pass.NumTokens() > 1 {
		return nil, diag.Errorf(codeJudge, "program", "takes %d rows of %d sequences in a pass; want one row of one",
			p.Pass.NumRows(), p.Pass.NumSequences())
	}
	return newModel(p, fit, nil)
}

func newModel(p *ir.Program, fit Calibration, passes *PassCalibration) (*Model, error) {
	switch t := p.Target; {
	case t == nil:
		return nil, diag.Errorf(codeTarget, "program", "names no target; want a program that was compiled for a GPU")
	case t.HBMGBs <= 0 || t.SMs < 1 || t.SMs > ir.MaxTargetSMs:
		return nil, diag.Errorf(codeTarget, "target "+t.Name,
			"has %d SMs and a memory of %g GB/s; want a GPU with both, which amkc targets lists", t.SMs, t.HBMGBs)
	}
	link, err := linkOf(p)
	if err != nil {
		return nil, err
	}
	return &Model{p, newReader(p), fit, FormatsCalibrated(), passes, link}, nil
}

// NewFormatsWith is New with another calibration of formats.
func NewFormatsWith(p *ir.Program, fit FormatCalibration) (*Model, error) {
	m, err := New(p)
	if err == nil {
		m.formats = fit
	}
	return m, err
}

// planAt unrolls the variant of a position, for the machine that its chunks make of the target.
func (m *Model) planAt(pos int) (*ir.Variant, *plan, machine, error) {
	v, err := m.variant(pos)
	if err != nil {
		return nil, nil, machine{}, err
	}
	stages, err := m.reader.stages(v, pos)
	if err != nil {
		return nil, nil, machine{}, err
	}
	p, err := newPlan(m.program, stages)
	if err != nil {
		return nil, nil, machine{}, err
	}
	chunk := float64(m.reader.chunk)
	if p.chunks > 0 {
		chunk = min(chunk, p.bytes/p.chunks)
	}
	machine := newMachine(m, v.Lo, chunk, p.kept)
	machine.coldLines = p.bytes > float64(m.program.Target.L2Bytes)
	return v, p, machine, nil
}

// latencyAt is how long a pass takes in the middle of a launch, and nothing else.
func (m *Model) latencyAt(pos int) (float64, error) {
	_, p, machine, err := m.planAt(pos)
	if err != nil {
		return 0, err
	}
	return p.run(&machine, decode).time, nil
}

// At predicts the step at a position. The error is a diagnostic.
func (m *Model) At(pos int) (*Prediction, error) {
	v, p, machine, err := m.planAt(pos)
	if err != nil {
		return nil, err
	}
	step, streams, waits := p.run(&machine, decode), p.run(&machine, ceiling), p.run(&machine, drained)
	weights, rows := m.reader.traffic(v, pos)
	out := &Prediction{
		Target: m.program.Target.Name, Arch: m.program.Target.Arch, Label: NeverMeasured, Position: pos,
		Variant:       v.Name,
		BytesPerToken: int64(min(weights+rows, 1<<62)), Ceiling: streams.time, Latency: step.time, Drain: waits.time,
		StepEnd: step.end, RingFull: step.halted,
		Ring: Ring{machine.slots, machine.inFlight(), machine.feed.ahead,
			machine.bandwidth(machine.inFlight()) / 1e3},
		Assumptions: append([]string{}, machine.assumptions(m.program, weights)...),
	}
	switch {
	case m.link != nil:
		out.Link = m.link.exchanged(p.stages)
	case Held(m.program.Target.Name):
		out.Label = Predicted
	}
	if step.time > 0 {
		out.Share = min(1, streams.time/step.time)
	}
	for n, s := range p.stages {
		bytes := 0.0
		for k := range s.tasks {
			bytes += s.tasks[k].streamed
		}
		times := len(s.indices())
		out.Stages = append(out.Stages, Stage{Name: s.ir.Label(), Times: times,
			Bytes: int64(min(bytes*float64(times), 1<<62)), Parts: step.parts[n], Slowest: step.slowest[n]})
	}
	return out, nil
}

func (m *Model) variant(pos int) (*ir.Variant, error) {
	var intervals []string
	for i := range m.program.Variants {
		v := &m.program.Variants[i]
		if v.Lo <= pos && pos <= v.Hi {
			return v, nil
		}
		intervals = append(intervals, fmt.Sprintf("%d to %d", v.Lo, v.Hi))
	}
	return nil, diag.Errorf(codePosition, "position", "%d; the program has variants for positions %s", pos,
		strings.Join(intervals, ", "))
}
