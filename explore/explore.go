// Package explore runs the kernels of a build on the CPU, under many schedules, and reports faults.
//
// [Compile] compiles the unedited sources of a build, and the machine: a CUDA driver of a simulated GPU, which runs the
// threads of a kernel one at a time, decides what each load sees and when each copy completes, and records who wrote
// what (explore/cpu). [Explore] opens the build through package host as on a GPU, has it decode in every way that its
// kernels support ([Jobs]), under schedules drawn from seeds, and compares the results: between schedules, to the bit;
// with the plain kernels and with the reference VM, within the bounds of those checks.
//
// Kernels run in worker processes of the same executable ([Work]), so that a crash is a finding. A schedule with a
// fault is reduced to few deviations from the default one, and written as a [Script].
//
// The kernels of a build are compiled and run on this machine: explore only builds that you trust.
package explore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"amkc/compiler"
	"amkc/compiler/objects"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/progress"
)

// Options say what to explore.
type Options struct {
	Build     string
	Cache     string          // where compiled objects are kept
	Schedules int             // of each job, the default one among them
	Seed      uint64          // of the first schedule that is drawn
	Time      time.Duration   // after which runs end, as soon as kernels are compiled; 0: no limit
	Jobs      []string        // none: all of the build
	Recording string          // file that Record has written; none: no job compares with it
	Assume    map[string]bool // named assumptions that are not as by default
	Shrink    int             // runs that one schedule may take to be cut down; 0: 64
	Workers   int             // 0: as many as there are cores
	Command   []string        // that starts a worker: it calls [Work] where [IsWorker] says so
	// Called: functions of kernels are called, and not inlined. The compiler takes a third of the time, runs have the
	// same steps and results, and findings name functions without their callers.
	Called bool
	Report progress.Func
}

const defaultShrink = 64

// A JobReport has the results of a job over its schedules.
type JobReport struct {
	Name      string `json:"name"`
	Doc       string `json:"doc"`
	Schedules int    `json:"schedules"`
	Launches  uint64 `json:"launches"`
	Steps     uint64 `json:"steps"`   // of the machine
	Choices   uint64 `json:"choices"` // that the schedules had
	Counts    Counts `json:"counts"`
	Values    int    `json:"values"`   // results that were compared
	Findings  int    `json:"findings"` // runs in which something went wrong
	Cut       int    `json:"cut"`      // runs that the time has ended: nothing is known of them
	// Bodies compares the outputs of each body with the reference VM, if the job does so.
	Bodies []*compiler.BodyReport `json:"bodies,omitempty"`
}

// A Found is a fault, the number of runs that show it, and the script of the first one.
type Found struct {
	Finding
	Job      string  `json:"job"`
	Schedule string  `json:"schedule"` // in which it was seen first
	Runs     int     `json:"runs"`
	Script   *Script `json:"script,omitempty"`
	// Repeats: the script was run and showed the same fault. The script of the default schedule is not run again.
	Repeats bool `json:"repeats"`
}

// A Report is the result of Explore.
type Report struct {
	Build    string       `json:"build"`
	Machine  string       `json:"machine"`
	Seed     uint64       `json:"seed"`
	Jobs     []*JobReport `json:"jobs"`
	Findings []*Found     `json:"findings"`
	// Stages, of a GPU and here: in the first run with a recording.
	Stages      []compiler.StageReport `json:"stages,omitempty"`
	Assumptions []Assumption           `json:"assumptions"`
	Stopped     bool                   `json:"stopped"` // by the time
}

// An explorer explores a build.
type explorer struct {
	o       Options
	facts   *host.Facts
	objects *Objects
	build   string // digest
	jobs    []Job
	pool    *pool
	symbols *symbols

	report  *Report
	reports map[string]*JobReport
	known   known
	found   map[string]*Found

	repeats bool // a script is run, and no other is made
}

// Explore explores a build. Faults of its kernels are in the report, which is partial if the time is over. The error is
// that the build could not be explored, or that the context was cancelled.
func Explore(ctx context.Context, o Options) (*Report, error) {
	return with(ctx, o, (*explorer).explore)
}

// Repeat runs the schedule of a script in a file, and the runs with which its results are compared.
func Repeat(ctx context.Context, o Options, file string, s *Script) (*Report, error) {
	return with(ctx, o, func(e *explorer) error { return e.repeat(file, s) })
}

func with(ctx context.Context, o Options, run func(e *explorer) error) (_ *Report, err error) {
	if o.Recording != "" && len(o.Jobs) > 0 && !slices.Contains(o.Jobs, gpuJob) {
		return nil, diag.Errorf(codeJob, "--trace", "nothing would be compared with %s, which job %s alone does; want "+
			"--job %s too, or no --job", o.Recording, gpuJob, gpuJob)
	}
	compiled := o
	if o.Recording != "" { // workers read it, too
		facts, err := host.ReadFacts(o.Build)
		if err != nil {
			return nil, err
		}
		if _, err := readRecording(o.Recording, o.Build, facts); err != nil {
			return nil, err
		}
		if len(o.Jobs) == 0 {
			for _, j := range withRecording(Jobs(facts), o.Recording) {
				compiled.Jobs = append(compiled.Jobs, j.Name)
			}
		}
	}
	objects, err := Compile(ctx, compiled)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "amkc-explore-")
	if err != nil {
		return nil, diag.Errorf(codeWorker, o.Build, "there is no temporary directory: %s", infile.Reason(err))
	}
	defer os.RemoveAll(dir)
	if err := layOut(dir, o.Build, objects); err != nil {
		return nil, diag.Errorf(codeWorker, dir, "cannot be written: %s", infile.Reason(err))
	}
	return explored(ctx, o, objects, dir, run)
}

// explored runs what is laid out in a directory.
func explored(ctx context.Context, o Options, objects *Objects, dir string, run func(e *explorer) error) (*Report,
	error) {
	facts, err := host.ReadFacts(dir)
	if err != nil {
		return nil, err
	}
	e := &explorer{o: o, facts: facts, objects: objects, symbols: symbolsOf(objects),
		jobs:    withRecording(Jobs(facts), o.Recording),
		reports: map[string]*JobReport{}, found: map[string]*Found{}, known: known{}}
	if e.build, err = digestOfBuild(dir, objects, o.Report); err != nil {
		return nil, err
	}
	if o.Workers == 0 {
		e.o.Workers = runtime.NumCPU()
	}
	if o.Shrink == 0 {
		e.o.Shrink = defaultShrink
	}
	build, err := filepath.Abs(o.Build)
	if err != nil {
		return nil, diag.Errorf(codeWorker, o.Build, "has no path: %s", infile.Reason(err))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	device, err := deviceOf(facts)
	if err != nil {
		return nil, &host.BuildError{Path: filepath.Join(dir, host.ManifestFile), What: err.Error()}
	}
	e.pool = newPool(ctx, e.o.Workers, o.Command, device,
		setup{objects.Library, dir, build, recordingPath(o.Recording)})
	defer e.pool.close()
	e.report = &Report{Build: e.build, Machine: objects.Machine, Seed: o.Seed, Findings: []*Found{}}
	if e.report.Assumptions, err = e.pool.assumptions(); err != nil {
		return nil, err
	}
	if err := e.checkAssumptions(); err != nil {
		return nil, err
	}
	if o.Time > 0 {
		e.pool.until = time.Now().Add(o.Time)
	}
	err = run(e)
	if err != nil && !errors.Is(err, errTime) {
		return nil, err
	}
	e.report.Stopped = err != nil
	return e.report, nil
}

// digestOfBuild is known by sources, manifest and weights: all that results depend on but the machine.
func digestOfBuild(dir string, o *Objects, report progress.Func) (string, error) {
	texts := []string{o.Sources}
	for _, name := range []string{host.ManifestFile, host.WeightsFile} {
		_, digest, err := infile.Digest(filepath.Join(dir, name), func(done, total int64) {
			report.Report(progress.Step{Activity: "reading " + name, Done: done, Total: total, Unit: progress.Bytes})
		})
		if err != nil {
			return "", &host.BuildError{Path: filepath.Join(dir, name), What: "it cannot be read", Err: err}
		}
		texts = append(texts, digest)
	}
	return objects.Digest(nil, texts...), nil
}

// checkAssumptions refuses names that the machine does not know.
func (e *explorer) checkAssumptions() error {
	var names []string
	for _, a := range e.report.Assumptions {
		names = append(names, a.Name)
	}
	for _, name := range sorted(e.o.Assume) {
		if !slices.Contains(names, name) {
			return diag.Errorf(codeJob, "--without", "%q is not known; %s", name,
				diag.Guess(name, names, "want one of "+fmt.Sprint(names)))
		}
	}
	return nil
}

// errTime says that the time is over, and errCut that it was while a run was under way.
var (
	errTime = errors.New("the time is over")
	errCut  = fmt.Errorf("in the middle of a run: %w", errTime)
)

// selected are the jobs that were asked for, or all of them.
func (e *explorer) selected() ([]Job, error) {
	if len(e.o.Jobs) == 0 {
		return e.jobs, nil
	}
	for _, name := range e.o.Jobs {
		if _, ok := jobNamed(e.jobs, name); !ok {
			var names []string
			for _, j := range e.jobs {
				names = append(names, j.Name)
			}
			return nil, diag.Errorf(codeJob, "--job", "%q is not one of this build; %s", name,
				diag.Guess(name, names, "want one of "+fmt.Sprint(names)))
		}
	}
	return slices.DeleteFunc(slices.Clone(e.jobs), func(j Job) bool { return !slices.Contains(e.o.Jobs, j.Name) }), nil
}

// explore runs all jobs under one schedule after the other, so that each has had as many when the time is over.
func (e *explorer) explore() error {
	jobs, err := e.selected()
	if err != nil {
		return err
	}
	for _, j := range jobs {
		e.reportOf(&j)
	}
	all := schedules(max(1, e.o.Schedules), e.o.Seed, e.o.Assume)
	step := progress.Step{Activity: "exploring", Unit: "runs"}
	for _, j := range jobs {
		step.Total += int64(len(all))
		if j.Once {
			step.Total -= int64(len(all) - 1)
		}
	}
	for i, s := range all {
		var orders []order
		for _, j := range jobs {
			if i > 0 && j.Once {
				continue
			}
			orders = append(orders, order{Job: j.Name, Schedule: e.fitted(&j, s, i)})
		}
		err := e.round(orders, func(o *order, outcome *Outcome) {
			step.Done++
			step.Activity = "exploring " + o.Job
			e.o.Report.Report(step)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fitted makes a schedule one of a job, of which the first run has shown how long it is. pct spreads its changes over
// that, and the host ends a launch somewhere in its first half where the job is about that.
func (e *explorer) fitted(j *Job, s Schedule, i int) Schedule {
	steps, choices := e.known.lengths(j.Name)
	if s.Strategy == PCT {
		s.Expected = choices
	}
	if j.Aborts && i > 0 && steps >= 4 {
		x := (e.o.Seed + uint64(i)) * 0x9E3779B97F4A7C15 // spreads seeds over the steps
		at := (x ^ x>>29) % (steps / 2)
		if i == 1 { // in the launch of several steps, and in the default order (mayGoOn)
			s, at = s.replayOf(nil), steps/3
		}
		s.HostStores = []HostStore{{Step: at, PointerAt: abortPointer, Value: 1}}
	}
	return s
}

// round runs orders concurrently, and takes their outcomes in order: what is found depends on seeds,
// not on which process was faster.
func (e *explorer) round(orders []order, done func(*order, *Outcome)) error {
	outcomes := make([]*Outcome, len(orders))
	cut := make([]bool, len(orders))
	var over error // errTime, which must not hide what else goes wrong
	var mu sync.Mutex
	failed := objects.SideBySide(len(orders), e.o.Workers, func(i int) (err error) {
		outcomes[i], err = e.pool.run(&orders[i])
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, errTime):
			cut[i], over = errors.Is(err, errCut), errTime
			return nil
		case err == nil && done != nil:
			done(&orders[i], outcomes[i])
		}
		return err
	})
	if failed != nil {
		return failed
	}
	for i := range orders {
		if cut[i] {
			j, _ := jobNamed(e.jobs, orders[i].Job)
			e.reportOf(&j).Cut++
		}
		if outcomes[i] == nil {
			continue
		}
		if err := e.take(&orders[i], outcomes[i]); err != nil {
			return err
		}
	}
	return over
}

func (e *explorer) reportOf(j *Job) *JobReport {
	r := e.reports[j.Name]
	if r == nil {
		r = &JobReport{Name: j.Name, Doc: j.Doc}
		e.reports[j.Name] = r
		e.report.Jobs = append(e.report.Jobs, r)
	}
	return r
}

// take adds what came of an order to the report. What goes wrong for the first time is cut down to a script.
func (e *explorer) take(o *order, outcome *Outcome) error {
	if outcome.Problem != "" {
		return outcome.err("job "+o.Job, "cannot be run")
	}
	j, _ := jobNamed(e.jobs, o.Job)
	r := e.reportOf(&j)
	r.Schedules++
	r.Launches, r.Steps, r.Choices = r.Launches+outcome.Launches, r.Steps+outcome.Steps, r.Choices+outcome.Choices
	r.Values += len(outcome.Values)
	r.Counts.add(&outcome.Counts)
	if r.Bodies == nil { // other schedules give the same bits
		r.Bodies = outcome.Bodies
	}
	if e.report.Stages == nil {
		e.report.Stages = outcome.Stages
	}
	findings := e.judge(&j, o, outcome, true)
	if len(findings) > 0 {
		r.Findings++
	}
	for _, f := range findings {
		key := f.key()
		if seen := e.found[key]; seen != nil {
			seen.Runs++
			continue
		}
		found := &Found{Finding: f, Job: o.Job, Schedule: o.Schedule.String(), Runs: 1}
		e.found[key] = found
		e.report.Findings = append(e.report.Findings, found)
		if e.repeats || len(e.report.Findings) > mostScripts {
			continue
		}
		if err := e.script(found, &j, o, outcome); err != nil && !errors.Is(err, errTime) {
			return err
		}
	}
	return nil
}

// mostScripts is how many findings are cut down to scripts: where more goes wrong, the first are the ones to look at.
const mostScripts = 8

// judge are the findings of a run, each kind and place once: those of the machine, and results that are not as others
// are. keep has results compared with from then on that nothing was compared with yet.
func (e *explorer) judge(j *Job, o *order, outcome *Outcome, keep bool) []Finding {
	all := slices.Clone(outcome.Findings)
	if len(all) == 0 {
		all = e.known.differences(j, o, outcome, keep)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(f Finding) bool {
		e.symbols.resolve(&f)
		key := f.key()
		defer func() { seen[key] = true }()
		return seen[key]
	})
}
