package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// BisectReport is the result of [Session.Bisect].
type BisectReport struct {
	Passed    bool             `json:"passed"`
	Tolerance StageTolerances  `json:"tolerance"` // of one stage, from the megakernel's inputs
	Positions int              `json:"positions"` // compared
	Stages    int              `json:"stages"`    // compared, over all positions
	Seen      Tolerance        `json:"seen"`      // the largest errors of correct stages
	First     *StageDifference `json:"first,omitempty"`
}

// Bisect decodes what [Session.Check] decodes, step by step with the traced form of the megakernel, and compares the
// result of every stage with the reference's result from the same inputs, until one is wrong. The error is in that
// stage, not in its inputs. Rows that a stage appends to the cache are compared too. The session is at position 0
// afterwards.
func (s *Session) Bisect(ctx context.Context, progress Progress) (_ *BisectReport, err error) {
	if s.closed {
		return nil, ErrClosed
	}
	if err := s.onlyOne("tracing a step"); err != nil {
		return nil, err
	}
	ref, err := s.openReference(s.resident())
	if err != nil {
		return nil, err
	}
	t, err := s.newTracer(s.one)
	if err != nil {
		return nil, errors.Join(err, ref.Close())
	}
	defer func() {
		s.Reset()
		err = errors.Join(err, t.close(), ref.Close())
	}()
	report := &BisectReport{Tolerance: TolerancesOfStages(&s.facts.Model, false)}
	spans := checkSpans(s.info)
	for i, span := range spans {
		if err := s.bisectSpan(ctx, ref, t, span, report); err != nil {
			return nil, err
		}
		if report.First != nil {
			return report, nil
		}
		if progress != nil {
			progress("tracing", int64(i+1), int64(len(spans)))
		}
	}
	report.Passed = true
	return report, nil
}

// bisectSpan compares the stages of some positions, the first of which and their number are given, and adds to the
// report.
func (s *Session) bisectSpan(ctx context.Context, ref Reference, t *tracer, span [2]int,
	report *BisectReport) error {
	if err := s.setCache(span[0]); err != nil {
		return err
	}
	s.position = span[0]
	for _, id := range CheckIDs(span[0], span[1], s.info.Vocab) {
		trace, err := t.step(ctx, id)
		if err != nil {
			return err
		}
		pairs, err := ref.Follow(id, trace)
		if err != nil {
			return err
		}
		report.Positions++
		report.Stages += len(pairs)
		first, seen := FirstDifference(s.facts, trace.Position, pairs, report.Tolerance)
		report.Seen.RMS, report.Seen.Max = max(report.Seen.RMS, seen.RMS), max(report.Seen.Max, seen.Max)
		if report.First = first; first != nil {
			return nil
		}
	}
	return nil
}

// A StagePair is the result of one stage as the megakernel has it, and as it should be.
type StagePair struct {
	Stage     string // label, layer included
	Got, Want []float32
}

// PairStages matches the stages of two runs of the same step by name, in the order of the first. Stages that only one
// of them has are left out: a schedule may cut a step differently.
func PairStages(got, want []StageVector) []StagePair {
	byName := map[string][]float32{}
	for _, v := range want {
		byName[v.Stage] = v.Values
	}
	var pairs []StagePair
	for _, v := range got {
		if w, ok := byName[v.Stage]; ok {
			pairs = append(pairs, StagePair{v.Stage, v.Values, w})
		}
	}
	return pairs
}

// A StageDifference is the first stage of a step whose result is wrong, and the element that is furthest off. RMS and
// Max are as in [StageTolerances]: relative to the values that are right, and without what is forgiven every element.
type StageDifference struct {
	Position int     `json:"position"`
	Stage    string  `json:"stage"`
	Element  int     `json:"element"` // of the stage's vector
	Place    string  `json:"place"`   // the element in words: "row 17 (q of head 0, dim 8)"
	Got      Value   `json:"got"`
	Want     Value   `json:"want"`
	Wrong    int     `json:"wrong"` // elements of which each alone breaks the tolerance
	Of       int     `json:"of"`
	RMS      float64 `json:"rms"`
	Max      float64 `json:"max"`
}

// String is the finding in a sentence.
func (d *StageDifference) String() string {
	if d.Of == 0 {
		return fmt.Sprintf("position %d: stage %s: %s", d.Position, d.Stage, d.Place)
	}
	return fmt.Sprintf("position %d: stage %s is the first that is wrong: element %d, %s, is %v instead of %v; "+
		"%d of %d elements are far off, error %.2e RMS, %.2e max", d.Position, d.Stage, d.Element, d.Place,
		float32(d.Got),
		float32(d.Want), d.Wrong, d.Of, d.RMS, d.Max)
}

// A Value is a float that JSON can hold: one that is not finite is a string.
type Value float32

// MarshalJSON implements [json.Marshaler].
func (v Value) MarshalJSON() ([]byte, error) {
	if x := float64(v); math.IsNaN(x) || math.IsInf(x, 0) {
		return json.Marshal(strconv.FormatFloat(x, 'g', -1, 32))
	}
	return json.Marshal(float32(v))
}

// FirstDifference returns the first pair that differs by more than the tolerance, nil when there is none, and the
// largest errors of the pairs before it, roundings left out.
func FirstDifference(f *Facts, position int, pairs []StagePair, tolerances StageTolerances) (first *StageDifference,
	seen Tolerance) {
	for _, p := range pairs {
		d := StageDifference{Position: position, Stage: p.Stage}
		if len(p.Got) != len(p.Want) {
			d.Place = fmt.Sprintf("it has %d elements, and %d are expected", len(p.Got), len(p.Want))
			return &d, seen
		}
		tolerance := tolerances.of(p.Stage)
		e := measure(p.Got, p.Want, tolerances.Rounding, 0)
		if tolerance.holds(e) {
			seen.RMS, seen.Max = max(seen.RMS, e.rms), max(seen.Max, e.max)
			continue
		}
		d.Element, d.Place, d.Of = e.worst, f.place(p.Stage, e.worst), len(p.Want)
		d.Got, d.Want = Value(p.Got[e.worst]), Value(p.Want[e.worst])
		d.RMS, d.Max = e.rms, e.max
		bound := min(tolerance.Max*e.largest, tolerance.RMS*e.norm)
		for i := range p.Want {
			if distance(p.Got[i], p.Want[i], tolerances.Rounding) > bound {
				d.Wrong++
			}
		}
		return &d, seen
	}
	return nil, seen
}

// place says what an element of a stage's vector is: its row, and in whose head it lies.
func (f *Facts) place(stage string, element int) string {
	of, kind, _ := strings.Cut(stage, ".")
	layer, err := strconv.Atoi(strings.TrimPrefix(of, "L"))
	if err != nil {
		layer = -1 // of none
	}
	m := f.ModelOf(layer)
	if m.HeadDim <= 0 {
		kind = ""
	}
	switch kind {
	case "qkv", "kv":
		row := element
		if kind == "kv" { // the same rows, without q
			row += m.Heads * m.HeadDim
		}
		return fmt.Sprintf("row %d (%s)", row, m.qkvRow(row))
	case "attn":
		return fmt.Sprintf("head %d, dim %d", element/m.HeadDim, element%m.HeadDim)
	case "part": // for each unit and head: dims, maximum, sum
		group := m.Heads / max(1, m.KVHeads)
		what := [...]string{"the maximum", "the sum"}
		dim := element % (m.HeadDim + 2)
		name := fmt.Sprintf("dim %d", dim)
		if dim >= m.HeadDim {
			name = what[dim-m.HeadDim]
		}
		return fmt.Sprintf("unit %d, head %d of its group, %s", element/(m.HeadDim+2)/max(1, group),
			element/(m.HeadDim+2)%max(1, group), name)
	case "gate_up":
		return fmt.Sprintf("rows %d and %d", 2*element, 2*element+1)
	}
	return fmt.Sprintf("row %d", element)
}

// qkvRow names a row of q, k and v. Rows of q and k are in rotation pairs: dims j and j + half of what is rotated side
// by side.
func (m *Model) qkvRow(row int) string {
	head, dim := row/m.HeadDim, row%m.HeadDim
	paired, rotated := dim, cmp.Or(m.Rotated, m.HeadDim)
	if dim < rotated {
		paired = dim/2 + dim%2*(rotated/2)
	}
	switch {
	case head < m.Heads:
		return fmt.Sprintf("q of head %d, dim %d", head, paired)
	case head < m.Heads+m.KVHeads:
		return fmt.Sprintf("k of head %d, dim %d", head-m.Heads, paired)
	}
	return fmt.Sprintf("v of head %d, dim %d", head-m.Heads-m.KVHeads, dim)
}
