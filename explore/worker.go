package explore

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"amkc/compiler"
	"amkc/ir/diag"
	"amkc/runtime/driver"
	"amkc/runtime/host"
)

// WorkerVariable is the environment variable that amkc sets for a process that runs kernels. Kernels run in a separate
// process, so that a crash is a finding.
const WorkerVariable = "AMKC_EXPLORE_WORKER"

// IsWorker reports whether this process was started to run kernels.
func IsWorker() bool { return os.Getenv(WorkerVariable) != "" }

// setup is the first line that a worker reads.
type setup struct {
	Library string `json:"library"`
	Dir     string `json:"dir"`   // that layOut has made
	Build   string `json:"build"` // whose program the reference VM runs
	// Recording is the file of a recording, or none.
	Recording string `json:"recording,omitempty"`
}

// hello is the first line that it writes.
type hello struct {
	Assumptions []Assumption `json:"assumptions"`
	problem                  // why it cannot run anything
}

// A problem says why something could not be done, where that is not a finding.
type problem struct {
	Problem string `json:"problem,omitempty"`
	// Diagnostics are those that say so, with their codes.
	Diagnostics diag.List `json:"diagnostics,omitempty"`
}

func problemOf(err error) problem {
	p := problem{Problem: err.Error()}
	var one *diag.Diagnostic
	if !errors.As(err, &p.Diagnostics) && errors.As(err, &one) {
		p.Diagnostics = diag.List{one}
	}
	return p
}

// err is the problem as an error: what the worker has reported, or codeWorker at a place.
func (p *problem) err(at, what string) error {
	if len(p.Diagnostics) > 0 {
		return p.Diagnostics
	}
	return diag.Errorf(codeWorker, at, "%s: %s", what, p.Problem)
}

// order is each further line that it reads: a job and a schedule.
type order struct {
	Job      string   `json:"job"`
	Schedule Schedule `json:"schedule"`
}

// Outcome is each further line that it writes.
type Outcome struct {
	Run
	Values []Value `json:"values"`
	// Bodies has the comparisons of stages with the reference VM, in the job that makes them.
	Bodies  []*compiler.BodyReport `json:"bodies,omitempty"`
	Stages  []compiler.StageReport `json:"stages,omitempty"` // compared with a GPU's
	problem                        // why the job could not be run
}

// Work is the main function of a worker: it executes the commands of in until it ends, and returns the exit code.
func Work(in io.Reader, out io.Writer) int {
	lines, results := bufio.NewReader(in), json.NewEncoder(out)
	var s setup
	if err := readLine(lines, &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	w, failed := newWorker(s)
	greeting := hello{}
	if failed == nil {
		greeting.Assumptions, failed = w.machine.assumptions()
	}
	if failed != nil {
		greeting.problem = problemOf(failed)
	}
	if err := results.Encode(greeting); err != nil || failed != nil {
		return 2
	}
	for {
		var o order
		switch err := readLine(lines, &o); {
		case errors.Is(err, io.EOF):
			return 0
		case err != nil:
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		if err := results.Encode(w.carryOut(&o)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
	}
}

func readLine(r *bufio.Reader, into any) error {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}

// A worker runs jobs in this process.
type worker struct {
	setup
	machine *control
	facts   *host.Facts
	jobs    []Job
}

func newWorker(s setup) (*worker, error) {
	facts, err := host.ReadFacts(s.Dir)
	if err != nil {
		return nil, err
	}
	machine, err := startMachine(s.Library)
	if err != nil {
		return nil, err
	}
	return &worker{s, machine, facts, withRecording(Jobs(facts), s.Recording)}, nil
}

// carryOut runs a job under a schedule.
func (w *worker) carryOut(o *order) *Outcome {
	job, ok := jobNamed(w.jobs, o.Job)
	if !ok {
		return &Outcome{problem: problem{Problem: fmt.Sprintf("there is no job %q", o.Job)}}
	}
	if err := w.machine.begin(&o.Schedule); err != nil {
		return &Outcome{problem: problemOf(err)}
	}
	a := &attempt{ctx: context.Background(), dir: w.Dir, build: w.Build, recording: w.Recording, facts: w.facts,
		schedule: &o.Schedule, machine: w.machine}
	failed := job.run(a)
	if a.program != nil {
		failed = errors.Join(failed, a.program.Close())
	}
	run, err := w.machine.result()
	if err != nil {
		return &Outcome{problem: problemOf(err)}
	}
	outcome := &Outcome{Run: *run, Values: a.values, Bodies: a.bodies, Stages: a.stages}
	outcome.Findings = append(a.withoutGarbage(run.Findings), a.findings...)
	var stall *host.StallError
	switch {
	case failed == nil:
	case errors.As(failed, &stall):
		outcome.Findings = append(outcome.Findings, Finding{Kind: "stall", Message: failed.Error()})
	case isProblem(failed):
		outcome.problem = problemOf(failed)
	case len(outcome.Findings) == 0: // otherwise the machine has said why
		outcome.Findings = append(outcome.Findings, Finding{Kind: "error", Message: failed.Error()})
	}
	return outcome
}

// isProblem reports whether an error is about the build or this machine, and not about what the kernel did.
func isProblem(err error) bool {
	var (
		build    *host.BuildError
		device   *host.DeviceError
		memory   *host.MemoryError
		position *host.PositionError
		token    *host.TokenError
		request  *driver.Problem
		one      *diag.Diagnostic
		list     diag.List
	)
	return errors.As(err, &build) || errors.As(err, &device) || errors.As(err, &memory) || errors.As(err, &position) ||
		errors.As(err, &token) || errors.As(err, &request) || errors.As(err, &one) || errors.As(err, &list)
}

func jobNamed(jobs []Job, name string) (Job, bool) {
	for _, j := range jobs {
		if j.Name == name {
			return j, true
		}
	}
	return Job{}, false
}
