package cli

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/compiler"
	"amkc/explore"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
)

// exploreFlags are the flags of explore.
type exploreFlags struct {
	schedules int
	seed      int
	seconds   float64
	jobs      []string
	without   []string
	replay    string
	trace     string
	out       string
}

func exploreVerb() verb {
	f := &exploreFlags{}
	return verb{
		name: "explore",
		synopsis: "DIR [--schedules N] [--seed N] [--time SECONDS] [--job NAME] [--trace FILE] " +
			"[--replay FILE]",
		min: 1, max: 1,
		summary: "run the kernels of a build on the CPU, in many orders",
		details: `
Compiles the kernels of a build for the CPU and runs them on a simulated GPU. In each schedule, its threads, loads,
stores and copies take another order that PTX allows. Reports data races, reads of uninitialised memory, accesses out
of bounds, stalls, crashes, and results that differ: between schedules, between steps, passes and prompts, or from the
reference (docs/explore.md). A schedule with a fault is written as a script, which --replay repeats. DIR is a build
for few SMs; this needs neither a GPU nor nvcc:

    amkc model/ -o build/ --target sm_90 --num-sms 4 --no-build
    amkc explore build/

The sources in DIR are compiled and run: name only a build that you trust. Exit code 0: no fault; 1: a fault.`,
		flags: f.define,
		run:   f.run,
	}
}

func (f *exploreFlags) define(set *pflag.FlagSet) {
	set.Var(front.NewCount(&f.schedules, 8, 1, math.MaxInt32), "schedules", "run each job under `N` schedules")
	set.Var(front.NewCount(&f.seed, 1, 0, math.MaxInt32), "seed", "the schedules follow from `N`, N+1, and so on")
	set.Var(newAmount(&f.seconds), "time", "end after `SECONDS`, and cut what runs; 0: no limit; default: "+
		"60, or with --schedules no limit")
	set.Var(&words{&f.jobs}, "job", "run job `NAME` alone, as the table lists it; may be repeated")
	set.Var(&words{&f.without}, "without", "do without the assumption `NAME` about hardware; may be repeated")
	set.Var(front.NewWord(&f.trace, ""), "trace",
		"job gpu: compare with the `FILE` that amkc check --trace has written")
	set.Var(front.NewWord(&f.replay, ""), "replay", "run the schedule of the script in `FILE`")
	set.VarP(front.NewWord(&f.out, "."), "out", "o", "write scripts into `DIR`: explore-1.json and so on")
}

// defaultTime is how long kernels are run if nobody says how long, or how often.
const defaultTime = time.Minute

// mostSMs is how many SMs a program may be for: each has hundreds of threads, which take turns.
const mostSMs = 16

// explored is the result of explore in JSON.
type explored struct {
	*explore.Report
	Scripts []string `json:"scripts"` // files, of findings in their order
}

func (f *exploreFlags) run(c *call) error {
	if explore.IsWorker() {
		c.raw = true
		if code := explore.Work(c.stdin, c.stdout); code != 0 {
			return errDifferent // what was wrong is said
		}
		return nil
	}
	dir := c.args[0]
	if !isBuild(dir) {
		return notBuild(dir).(*diag.Diagnostic).With("explore takes a program for few SMs, and needs no nvcc: amkc " +
			shellWord(dir) + " -o build/ --target sm_90 --num-sms 4 --no-build")
	}
	facts, err := host.ReadFacts(dir)
	if err != nil {
		return hostError(dir, err)
	}
	if facts.Target.SMs > mostSMs {
		return diag.Errorf(codeManySMs, dir, "its program is for %d SMs, whose threads would take hours for a step; "+
			"want a build for %d at most", facts.Target.SMs, mostSMs).
			With("compile the model for fewer: amkc MODEL -o DIR --target " + facts.Target.Arch +
				" --num-sms 4 --no-build")
	}
	ctx, cancel := interruptible()
	defer cancel()
	o, err := f.options(c, dir)
	if err != nil {
		return err
	}
	line := c.progress()
	defer line.Clear()
	o.Report = line.Show
	report, err := f.explore(ctx, o)
	line.Clear()
	switch {
	case ctx.Err() != nil:
		return diag.Errorf(codeInterrupted, dir, "interrupted")
	case err != nil:
		return hostError(dir, err)
	}
	return f.tell(c, dir, report)
}

func (f *exploreFlags) options(c *call, dir string) (explore.Options, error) {
	o := explore.Options{Build: dir, Schedules: f.schedules, Seed: uint64(f.seed), Jobs: f.jobs,
		Recording: f.trace, Time: time.Duration(f.seconds * float64(time.Second)), Assume: map[string]bool{}}
	for _, name := range f.without {
		o.Assume[name] = false
	}
	if !c.flags.Changed("time") && !c.flags.Changed("schedules") && f.replay == "" {
		o.Time = defaultTime
	}
	if f.replay != "" {
		for _, name := range []string{"schedules", "seed", "time", "job", "without", "out"} {
			if c.flags.Changed(name) {
				return o, c.usage("--%s does not go with --replay, whose script says all", name)
			}
		}
	}
	var err error
	if o.Cache, err = compiler.CacheDir(); err != nil {
		return o, err
	}
	exe, err := os.Executable()
	if err != nil {
		return o, diag.Errorf(codeFailed, "amkc", "does not know where it is: %s", infile.Reason(err))
	}
	o.Command = []string{exe, "explore", dir}
	return o, nil
}

func (f *exploreFlags) explore(ctx context.Context, o explore.Options) (*explore.Report, error) {
	if f.replay == "" {
		return explore.Explore(ctx, o)
	}
	script, err := explore.ReadScript(f.replay)
	if err != nil {
		return nil, err
	}
	return explore.Repeat(ctx, o, f.replay, script)
}

// tell prints a report and writes the scripts of what was found.
func (f *exploreFlags) tell(c *call, dir string, r *explore.Report) error {
	result := &explored{Report: r, Scripts: []string{}}
	c.payload = result
	if err := c.printf("%s", exploredTable(dir, r)); err != nil {
		return err
	}
	var unwritten error
	for i, found := range r.Findings {
		d := found.Diagnostic()
		if found.Script != nil {
			file := filepath.Join(f.out, fmt.Sprintf("explore-%d.json", i+1))
			if err := f.write(found.Script, file); err != nil {
				unwritten = err
			} else {
				result.Scripts = append(result.Scripts, file)
				again := "again: amkc explore " + shellWord(dir) + " --replay " + shellWord(file)
				if f.trace != "" {
					again += " --trace " + shellWord(f.trace)
				}
				d.With(again)
			}
		}
		c.report(diag.List{d})
	}
	switch {
	case unwritten != nil:
		return unwritten
	case len(r.Findings) > 0:
		return errDifferent
	}
	return nil
}

// write writes a script, and makes the directory for it.
func (f *exploreFlags) write(s *explore.Script, file string) error {
	err := os.MkdirAll(f.out, 0o777)
	if err == nil {
		err = s.Write(file)
	}
	if err != nil {
		return diag.Errorf(codeOutput, file, "cannot write: %s", infile.Reason(err))
	}
	return nil
}

// bodiesTable lists how close bodies are to the reference VM.
func bodiesTable(bodies []*compiler.BodyReport) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "body\toutputs\tto the bit\tlargest error, of its bound\twithout a bound, not compared\t")
	for _, r := range bodies {
		most := "-"
		if r.Exact < r.Outputs {
			most = fmt.Sprintf("%.3f", r.Most)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%d\t\n", r.Body, r.Outputs, r.Exact, most, r.Unbounded)
	}
	w.Flush()
	return b.String()
}

// exploredTable lists what was run.
func exploredTable(dir string, r *explore.Report) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "job\tschedules\tlaunches\tsteps\tchoices\tresults\tfailed\t")
	cut := 0
	for _, j := range r.Jobs {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", j.Name, j.Schedules, j.Launches, j.Steps, j.Choices, j.Values,
			j.Findings)
		cut += j.Cut
	}
	w.Flush()
	for _, j := range r.Jobs {
		if len(j.Bodies) > 0 {
			b.WriteString(bodiesTable(j.Bodies))
		}
	}
	if len(r.Stages) > 0 {
		fmt.Fprintln(w, "\nkernel\tstage\telements\texact\tdifferent\tulp\tallowed\tshare\t")
		for _, s := range r.Stages {
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%.3g\t%.3g\t%.2g\t\n", s.Kernel, s.Stage, s.Elements, s.Exact,
				s.Different, s.Ulp, s.Bound, s.Share)
		}
		w.Flush()
	}
	switch {
	case len(r.Findings) > 0:
		fmt.Fprintf(&b, "%s: %s\n", dir, counted(len(r.Findings), "finding", "s"))
	default:
		fmt.Fprintf(&b, "%s: nothing went wrong", dir)
		if r.Stopped {
			b.WriteString(" until the time was over")
		}
		b.WriteString("\n")
	}
	if cut > 0 {
		fmt.Fprintf(&b, "cut when the time was over, and not counted above: %s\n", counted(cut, "run", "s"))
	}
	return b.String()
}
