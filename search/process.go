package search

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"time"

	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/runtime/printable"
)

// A Process is a command to run, in a separate process group.
type Process struct {
	Args  []string
	Dir   string // where it runs; empty: here
	Stdin []byte
	Limit time.Duration // after which it is asked to end
	Grace time.Duration // after which it is killed
	Said  io.Writer     // what else gets its standard error, as it comes; may be nil
}

// mostOutput is how much of what a process says is kept.
const mostOutput = 16 << 20

// capped keeps the first bytes.
type capped struct {
	bytes.Buffer
	most int
}

func (c *capped) Write(p []byte) (int, error) {
	c.Buffer.Write(p[:min(len(p), max(0, c.most-c.Len()))])
	return len(p), nil
}

// A trailing keeps the last bytes: of what went wrong the end says most.
type trailing struct {
	kept []byte
	most int
}

func (t *trailing) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.most; over > t.most { // now and then, so that it costs little
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *trailing) String() string { return string(t.kept[max(0, len(t.kept)-t.most):]) }

// ErrKilled reports that a process was killed.
var ErrKilled = errors.New("did not end in time, and was killed")

// Run runs the process, and returns its output and the last line of its stderr. It returns ErrKilled after a timeout,
// and the cause of a cancelled context. The process has its own process group, whose remaining processes are killed at
// the end.
func (p *Process) Run(ctx context.Context) (out []byte, said string, err error) {
	late, cancel := context.WithTimeout(ctx, p.Limit)
	defer cancel()
	cmd := exec.CommandContext(late, p.Args[0], p.Args[1:]...)
	stdout, stderr := &capped{most: mostOutput}, &trailing{most: 64 << 10}
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Dir, bytes.NewReader(p.Stdin), stdout, stderr
	if p.Said != nil {
		cmd.Stderr = io.MultiWriter(stderr, p.Said)
	}
	apart(cmd)
	cmd.Cancel = func() error { return ask(cmd) }
	cmd.WaitDelay = p.Grace
	err = cmd.Run()
	end(cmd)
	switch {
	case ctx.Err() != nil:
		return nil, "", context.Cause(ctx)
	case late.Err() != nil:
		return stdout.Bytes(), lastLine(stderr.String()), ErrKilled
	}
	return stdout.Bytes(), lastLine(stderr.String()), err
}

// lastLine is the last thing that a process has said, safe for a terminal.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := printable.Text(lines[len(lines)-1])
	return strings.ToValidUTF8(line[:min(len(line), 500)], "")
}

// A Worker judges jobs in separate processes, so that a crash or a hang affects one job and becomes its verdict.
type Worker struct {
	Campaign *Campaign
	Key      Key
	Limit    time.Duration // for an evaluation
	Waits    time.Duration // that it may wait besides, for a GPU that another one has
	Builds   time.Duration // for a build on its own; 0: as an evaluation
	// Attempts is the number of times that a process is started if it ends without output, as when its machine is lost.
	// 0: once.
	Attempts int
	// Command returns the arguments of the process for a job, or for its builds alone, and a cleanup function. The
	// process prints an object with a field verdict, or with a field built for builds alone.
	Command func(j *Job, build bool) (args []string, done func(), err error)
}

// Evaluate returns the verdict on a job. An error ends the search: it is for faults that are not those of a
// configuration.
func (w *Worker) Evaluate(ctx context.Context, j *Job) (*Verdict, error) {
	return w.judge(ctx, j, false)
}

// Build proves a job's configurations and builds them. The verdict is nil if that succeeds.
func (w *Worker) Build(ctx context.Context, j *Job) (*Verdict, error) { return w.judge(ctx, j, true) }

func (w *Worker) judge(ctx context.Context, j *Job, build bool) (v *Verdict, err error) {
	for range max(1, w.Attempts) {
		var silent bool
		if v, silent, err = w.attempt(ctx, j, build); !silent {
			break
		}
	}
	return v, err
}

// attempt runs the process once. silent: it has ended without a verdict, which is one of class CRASH.
func (w *Worker) attempt(ctx context.Context, j *Job, build bool) (v *Verdict, silent bool, err error) {
	args, done, err := w.Command(j, build)
	if err != nil {
		return nil, false, err
	}
	defer done()
	began := time.Now()
	limit, class, late := w.Limit+w.Waits, Timeout, diag.Errorf(codeKilled, "eval", "the evaluation took longer than "+
		"%v, and was killed", w.Limit)
	if build {
		limit = cmp.Or(w.Builds, w.Limit)
		class = Rejected
		late = diag.Errorf(codeSlowBuild, "eval", "building it took longer than the %v that it may, and "+
			"was ended; want a larger --timeout", limit)
		limit += w.Waits
	}
	p := Process{Args: args, Limit: limit + 10*time.Second, Grace: 5 * time.Second} // it ends on its own before that
	out, said, err := p.Run(ctx)
	switch {
	case errors.Is(err, ErrKilled):
		return w.lost(j, class, time.Since(began), late), false, nil
	case ctx.Err() != nil:
		return nil, false, context.Cause(ctx)
	}
	var printed struct {
		Verdict json.RawMessage `json:"verdict"`
		Built   bool            `json:"built"`
		Errors  []*diag.Diagnostic
	}
	if json.Unmarshal(out, &printed) == nil {
		if printed.Built && build && err == nil {
			return nil, false, nil
		}
		if printed.Verdict == nil && len(printed.Errors) > 0 && printed.Errors[0] != nil {
			return nil, false, printed.Errors[0] // the model, the machine or the baseline is at fault
		}
		if v, err := ParseVerdict(printed.Verdict, "eval"); err == nil {
			if build && v.Class == Timeout {
				v = w.lost(j, class, time.Since(began), late)
			}
			return v, false, w.Key.Public().Check(v)
		}
	}
	what := "printed no verdict"
	if err != nil {
		what = infile.Reason(err)
	}
	return w.lost(j, Crash, time.Since(began), diag.Errorf(codeVerdictLost, "eval", "the evaluation ended without a "+
		"verdict: %s: %s", what, said)), true, nil
}

// lost is the verdict on a job whose process has given none.
func (w *Worker) lost(j *Job, class Class, took time.Duration, reason *diag.Diagnostic) *Verdict {
	c := w.Campaign
	v := &Verdict{Schema: VerdictSchema, Rung: j.Rung, Class: class, Reason: reason, Seconds: took.Seconds(),
		Subject: Subject{ID: IDOf(j.Settings), Settings: j.Settings, BaselineID: IDOf(j.Against), Baseline: j.Against,
			Model: c.Model, Source: c.Source, Target: c.Target, Device: c.Device, Positions: c.PositionsOf(j),
			SameBits: c.SameBits}}
	c.Rules.Decide(v)
	w.Key.Sign(v)
	return v
}
