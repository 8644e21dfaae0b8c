package cli

import (
	"context"
	"fmt"

	"amkc/runtime/host"
)

// checkResult is what check prints as JSON.
type checkResult struct {
	Version int `json:"version"`
	*host.CheckReport
	Bisect *host.BisectReport `json:"bisect,omitempty"`
}

func (c *command) check(ctx context.Context, args []string) error {
	set := c.flags("check")
	bisect := set.Bool("bisect", false, "compare stage by stage too, and name the first that is wrong")
	if err := c.parse(set, args); err != nil {
		return err
	}
	if _, err := c.facts(); err != nil {
		return err
	}
	return c.withSession(ctx, func(s *host.Session) error {
		r, err := c.runCheck(ctx, s)
		if err != nil {
			return err
		}
		result, text := checkResult{1, r, nil}, checkText(r)
		if *bisect {
			if result.Bisect, err = c.runBisect(ctx, s); err != nil {
				return err
			}
			text += bisectText(result.Bisect)
		}
		if err := c.print(result, text); err != nil {
			return err
		}
		if err := checkFailure(r); err != nil {
			return err
		}
		return bisectFailure(result.Bisect)
	})
}

func (c *command) runBisect(ctx context.Context, s *host.Session) (*host.BisectReport, error) {
	line := c.newProgress()
	defer line.Clear()
	return s.Bisect(ctx, line.Report)
}

// bisectFailure is for a nil report too: nothing was asked, and nothing was found.
func bisectFailure(r *host.BisectReport) error {
	if r == nil || r.Passed {
		return nil
	}
	return &failure{fmt.Sprintf("check failed: stage %s is wrong at position %d", r.First.Stage, r.First.Position)}
}

func bisectText(r *host.BisectReport) string {
	found := fmt.Sprintf("all agree: error %.2e RMS, %.2e max", r.Seen.RMS, r.Seen.Max)
	if r.First != nil {
		found = r.First.String()
	}
	return fmt.Sprintf("%d stages of %d positions compared, each from the megakernel's own inputs\n%s (allowed "+
		"besides one rounding: "+
		"%.0e RMS, %.0e max; attention %.0e and %.0e)\n", r.Stages, r.Positions, found, r.Tolerance.Other.RMS,
		r.Tolerance.Other.Max,
		r.Tolerance.Attention.RMS, r.Tolerance.Attention.Max)
}

func (c *command) runCheck(ctx context.Context, s *host.Session) (*host.CheckReport, error) {
	line := c.newProgress()
	defer line.Clear()
	return s.Check(ctx, line.Report)
}

func checkFailure(r *host.CheckReport) error {
	if r.Passed {
		return nil
	}
	return &failure{fmt.Sprintf("check failed: the megakernel and the reference kernels differ (%d findings)",
		len(r.Failures))}
}

func checkText(r *host.CheckReport) string {
	verdict := "passed"
	if !r.Passed {
		verdict = "FAILED"
	}
	return fmt.Sprintf("%v%s (allowed: %.0e RMS, %.0e max, relative to the reference logits)\n", r, verdict,
		r.Tolerance.RMS, r.Tolerance.Max)
}
