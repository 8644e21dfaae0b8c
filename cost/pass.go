package cost

import (
	"fmt"
	"slices"

	"amkc/ir"
)

// A Pass is a prediction for a pass of a program, of several tokens or of one: what it moves, and how long it takes.
// All sequences are at the same position. Times are microseconds.
type Pass struct {
	Traffic
	Arch    string  `json:"arch"`
	Label   string  `json:"label"` // Predicted or NeverMeasured
	Ceiling float64 `json:"ceiling_us"`
	Latency float64 `json:"latency_us"`
	Drain   float64 `json:"drain_us"`
	// TokensPerSecond counts all tokens of the pass, as a pass that verifies drafts has if all are right.
	TokensPerSecond float64 `json:"tokens_per_second"`
	// OneToken is a pass of one token of the same build, by the same rules, so that the two can be compared, and Times
	// how many times as long this pass takes. It is not the Latency of a Prediction, whose rule for the memory is
	// another (New). 0, and left out, if nobody has said which program that is.
	OneToken    float64  `json:"one_token_us,omitempty"`
	Times       float64  `json:"times_one_token,omitempty"`
	Stages      []Stage  `json:"stages"`
	StepEnd     float64  `json:"step_end_us"`
	RingFull    float64  `json:"ring_full_us"`
	Ring        Ring     `json:"ring"`
	Assumptions []string `json:"assumptions"`
}

// A PassModel predicts the passes of one program.
type PassModel struct {
	pass Model
	one  *Model
}

// NewPass takes a program that ir.Check accepts, and that of one token of the same build, or nil. The error is a
// diagnostic, as of New.
func NewPass(p, one *ir.Program) (*PassModel, error) { return NewPassWith(p, one, PassCalibrated()) }

// NewPassWith is NewPass with another calibration, for fitting one.
func NewPassWith(p, one *ir.Program, fit PassCalibration) (*PassModel, error) {
	m, err := newModel(p, Calibrated(), &fit)
	if err != nil {
		return nil, err
	}
	out := &PassModel{pass: *m}
	if one != nil {
		if out.one, err = newModel(one, Calibrated(), &fit); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// At predicts the pass whose rows begin at a position. The error is a diagnostic.
func (m *PassModel) At(pos int) (*Pass, error) {
	p := m.pass.program
	traffic, err := TrafficAt(p, pos)
	if err != nil {
		return nil, err
	}
	of, err := m.pass.At(pos)
	if err != nil {
		return nil, err
	}
	out := &Pass{Traffic: *traffic, Arch: of.Arch, Label: NeverMeasured, Ceiling: of.Ceiling, Latency: of.Latency,
		Drain: of.Drain, Stages: of.Stages, StepEnd: of.StepEnd, RingFull: of.RingFull, Ring: of.Ring,
		Assumptions: append(of.Assumptions, passAssumptions(p)...)}
	if PassesHeld(p.Target.Name, p.Pass) && tensor(p) && !usesHalves(p) {
		out.Label = Predicted
	}
	if of.Latency > 0 {
		out.TokensPerSecond = 1e6 * float64(p.Pass.NumTokens()) / of.Latency
	}
	if m.one == nil {
		return out, nil
	}
	if out.OneToken, err = m.one.latencyAt(pos); out.OneToken > 0 {
		out.Times = of.Latency / out.OneToken
	}
	return out, err
}

// measuredTokens is how many tokens the passes had that were measured.
const measuredTokens = 8

// PassesHeld reports whether internal/costcheck holds predictions for such passes of a target to measurements in
// docs/results.
func PassesHeld(target string, pass ir.Pass) bool {
	switch max(pass.NumSequences(), pass.NumRows()) {
	case 1:
		return Held(target)
	case pass.NumTokens(): // of one sequence, or of one row of each
		return pass.NumTokens() == measuredTokens && (target == "h100" || target == CalibratedOn)
	}
	return false
}

// usesHalves reports whether a matrix is multiplied by halves of activations.
func usesHalves(p *ir.Program) bool {
	return slices.ContainsFunc(p.Buffers, func(b ir.Buffer) bool { f := b.Format(); return f != nil && halved(f) })
}

// passAssumptions is what a prediction for a pass takes for granted besides what one for a step does.
func passAssumptions(p *ir.Program) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	tokens := p.Pass.NumTokens()
	switch {
	case tokens == 1:
		return nil
	case min(p.Pass.NumRows(), p.Pass.NumSequences()) > 1:
		say("passes of several rows of several sequences were not measured")
	case tokens != measuredTokens:
		say("passes of %d tokens were measured; what %d take follows from the code", measuredTokens, tokens)
	}
	if !tensor(p) {
		say("products of several tokens on the ordinary units are limited by reading activations (estimated)")
	}
	if usesHalves(p) {
		say("fp8: activations take half the work of those of integers, and products as much (estimated)")
	}
	return out
}
