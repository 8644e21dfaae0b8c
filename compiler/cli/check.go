package cli

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/compiler"
	"amkc/explore"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
)

// checkFlags are the flags of check.
type checkFlags struct {
	gpu    int
	bisect bool
	trace  string
}

func checkVerb() verb {
	f := &checkFlags{}
	return verb{
		name: "check", synopsis: "DIR [--bisect] [--trace FILE] [--gpu N]", min: 1, max: 1,
		summary: "compare the kernel of a build with its plain kernels",
		details: `
Decodes fixed ids on the GPU with the megakernel and with the plain kernels of reference.cu, and compares the logits.
--bisect also compares the result of every stage with the reference VM, which shares no code with either, and names
the first stage, row and element that is wrong. Exit code 0: all agree; 1: they do not.`,
		flags: f.define,
		run:   f.run,
	}
}

func (f *checkFlags) define(set *pflag.FlagSet) {
	set.BoolVar(&f.bisect, "bisect", false, "compare stage by stage with the reference VM too; slow for large models")
	set.Var(front.NewWord(&f.trace, ""), "trace", "write what each stage publishes to `FILE`, for amkc explore --trace")
	set.Var(newGPU(&f.gpu), "gpu", "use GPU number `N`")
}

// checked is the result of check in JSON.
type checked struct {
	*host.CheckReport
	Bisect *host.BisectReport `json:"bisect,omitempty"`
}

func (f *checkFlags) run(c *call) error {
	dir := c.args[0]
	if !isBuild(dir) {
		return notBuild(dir)
	}
	ctx, cancel := interruptible()
	defer cancel()
	s, err := openSession(ctx, c, dir, f.gpu, "amkc verify and amkc explore need no GPU")
	if err != nil {
		return err
	}
	defer s.Close()
	line := c.progress()
	defer line.Clear()
	var result checked
	if result.CheckReport, err = s.Check(ctx, line.Report); err != nil {
		return hostError(dir, err)
	}
	line.Clear()
	if err := c.printf("%s", checkText(result.CheckReport)); err != nil {
		return err
	}
	c.payload = &result
	if f.bisect {
		if result.Bisect, err = bisect(ctx, dir, s, line); err != nil {
			return err
		}
		line.Clear()
		if err := c.printf("%s", bisectText(result.Bisect)); err != nil {
			return err
		}
	}
	if f.trace != "" {
		if err := record(ctx, dir, s, f.trace); err != nil {
			return err
		}
	}
	if !result.Passed || f.bisect && !result.Bisect.Passed {
		return errDifferent
	}
	return nil
}

// bisect holds the kernel of a session at position 0 to the reference VM.
func bisect(ctx context.Context, dir string, s *host.Session, line watcher) (*host.BisectReport, error) {
	b, err := compiler.OpenBuild(dir)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	report, err := compiler.Bisect(ctx, b, s, line.Show)
	return report, hostError(dir, err)
}

// record has the GPU of a session decode some steps, and writes what each stage has published.
func record(ctx context.Context, dir string, s *host.Session, file string) error {
	r, err := explore.Record(ctx, dir, s)
	if err != nil {
		return hostError(dir, err)
	}
	if err := r.Write(file); err != nil {
		return diag.Errorf(codeOutput, file, "cannot write: %s", infile.Reason(err))
	}
	return nil
}

func checkText(r *host.CheckReport) string {
	return fmt.Sprintf("%vreference kernels: %s (allowed: %.0e RMS, %.0e max, relative to the reference logits)\n", r,
		verdict(r.Passed), r.Tolerance.RMS, r.Tolerance.Max)
}

func bisectText(r *host.BisectReport) string {
	found := fmt.Sprintf("largest error of a stage %.2e RMS, %.2e max", r.Seen.RMS, r.Seen.Max)
	if r.First != nil {
		found = r.First.String()
	}
	return fmt.Sprintf("%s\nreference VM: %s, %d stages of %d positions compared (allowed: %.0e RMS, %.0e max, "+
		"relative to the stage's vector)\n",
		found, verdict(r.Passed), r.Stages, r.Positions, r.Tolerance.Other.RMS, r.Tolerance.Other.Max)
}

func verdict(passed bool) string {
	if passed {
		return "passed"
	}
	return "FAILED"
}
