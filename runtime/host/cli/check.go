package cli

import (
	"context"
	"fmt"
	"strings"

	"amkc/runtime/host"
)

// checkResult is what check prints as JSON.
type checkResult struct {
	Version int `json:"version"`
	*host.CheckReport
}

func (c *command) check(ctx context.Context, args []string) error {
	if err := c.parse(c.flags("check"), args); err != nil {
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
		if err := c.print(checkResult{1, r}, checkText(r)); err != nil {
			return err
		}
		return checkFailure(r)
	})
}

func (c *command) runCheck(ctx context.Context, s *host.Session) (*host.CheckReport, error) {
	progress := c.newProgress()
	defer progress.done()
	return s.Check(ctx, progress.report)
}

func checkFailure(r *host.CheckReport) error {
	if r.Passed {
		return nil
	}
	return &failure{fmt.Sprintf("check failed: the megakernel and the reference kernels differ (%d findings)", len(r.Failures))}
}

func checkText(r *host.CheckReport) string {
	var b strings.Builder
	for _, s := range r.Spans {
		same := "two runs bit-identical"
		if !s.Deterministic {
			same = "two runs differ"
		}
		fmt.Fprintf(&b, "positions %d to %d: logit error %.2e RMS, %.2e max; %s\n", s.First, s.Last, s.RMS, s.Max, same)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "%s\n", f)
	}
	verdict := "passed"
	if !r.Passed {
		verdict = "FAILED"
	}
	fmt.Fprintf(&b, "%s (allowed: %.0e RMS, %.0e max, relative to the reference logits)\n", verdict, r.Tolerance.RMS, r.Tolerance.Max)
	return b.String()
}
