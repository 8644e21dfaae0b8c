package host

import (
	"context"
	"errors"
)

// BisectReport is the result of [Session.Bisect].
type BisectReport struct {
	Passed    bool             `json:"passed"`
	Tolerance StageTolerances  `json:"tolerance"` // of one stage that is given the megakernel's own inputs
	Positions int              `json:"positions"` // compared
	Stages    int              `json:"stages"`    // compared, over all positions
	Seen      Tolerance        `json:"seen"`      // the largest errors of stages that are right
	First     *StageDifference `json:"first,omitempty"`
}

// Bisect decodes what [Session.Check] decodes, step by step with the traced form of the megakernel, and holds the
// result of every stage to the reference's result from the same inputs, until one is wrong: that is the stage that is
// at fault, and not one that was misled. What a stage leaves in the cache is compared too. The session stands at
// position 0 afterwards.
func (s *Session) Bisect(ctx context.Context, progress Progress) (_ *BisectReport, err error) {
	if s.closed {
		return nil, ErrClosed
	}
	ref, err := s.openReference(s.resident())
	if err != nil {
		return nil, err
	}
	t, err := s.newTracer()
	if err != nil {
		return nil, errors.Join(err, ref.Close())
	}
	defer func() {
		s.Reset()
		err = errors.Join(err, t.close(), ref.Close())
	}()
	report := &BisectReport{Tolerance: TolerancesOfStages(s.facts.Model.DType, false)}
	spans := checkSpans(s.info)
	for i, span := range spans {
		if err := s.bisectSpan(ctx, ref, t, span[0], span[1], report); err != nil {
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

// bisectSpan compares the stages of n positions from first on, and adds to the report.
func (s *Session) bisectSpan(ctx context.Context, ref Reference, t *tracer, first, n int, report *BisectReport) error {
	if err := s.setCache(first); err != nil {
		return err
	}
	s.position = first
	for _, id := range CheckIDs(first, n, s.info.Vocab) {
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
		first, seen := FirstDifference(s.facts.Model, trace.Position, pairs, report.Tolerance)
		report.Seen.RMS, report.Seen.Max = max(report.Seen.RMS, seen.RMS), max(report.Seen.Max, seen.Max)
		if report.First = first; first != nil {
			return nil
		}
	}
	return nil
}
