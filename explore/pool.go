package explore

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// hangLimit is how much processor time a run may take. The machine ends kernels that wait in vain, so that one that
// takes longer is in a loop that never waits. One that sleeps, and no kernel of a build does, may take mostSleeping
// times as long.
const (
	hangLimit    = 15 * time.Minute
	mostSleeping = 10
)

// A process is a worker in a process of its own.
type process struct {
	cmd         *exec.Cmd
	in          io.WriteCloser
	out         *bufio.Reader
	complaints  *tail
	assumptions []Assumption
}

// startProcess starts a worker. Its error is codeWorker, and the context's.
func startProcess(ctx context.Context, command []string, device string, s setup) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, command[0], command[1:]...), complaints: &tail{}}
	p.cmd.Env = append(os.Environ(), WorkerVariable+"=1", deviceVariable+"="+device)
	p.cmd.Stderr, p.cmd.WaitDelay = p.complaints, killDelay
	var out io.ReadCloser
	var err error
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		if out, err = p.cmd.StdoutPipe(); err == nil {
			err = p.cmd.Start()
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, diag.Errorf(codeWorker, command[0], "cannot be started: %s", infile.Reason(err))
	}
	p.out = bufio.NewReader(out)
	var h hello
	if err := p.ask(s, &h); err != nil {
		p.end()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, diag.Errorf(codeWorker, command[0], "it ended at once: %s", infile.Reason(err)).
			With(p.complaints.lines()...)
	}
	if h.Problem != "" {
		p.end()
		return nil, h.err(s.Library, "cannot be used")
	}
	p.assumptions = h.Assumptions
	return p, nil
}

// ask writes a line and reads the answer.
func (p *process) ask(question, answer any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		return err
	}
	return readLine(p.out, answer)
}

// carryOut has a worker run a job. One that ends meanwhile, or takes longer than limit, is a finding. If it has not
// ended until then, unless that is the zero time, the error is errCut. After any of these alive is false: the process
// has ended.
func (p *process) carryOut(ctx context.Context, o *order, limit time.Duration, until time.Time) (outcome *Outcome,
	alive bool, err error) {
	outcome = &Outcome{}
	answered := make(chan error, 1)
	go func() { answered <- p.ask(o, outcome) }()
	kill := func() {
		p.cmd.Process.Kill()
		<-answered
		p.end()
	}
	var over <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		over = timer.C
	}
	begin, used := time.Now(), processorTime(p.cmd.Process.Pid)
	looks := time.NewTicker(limit)
	defer looks.Stop()
	for waits := true; waits; {
		select {
		case err = <-answered:
			waits = false
		case <-over:
			kill()
			return nil, false, errCut
		case <-looks.C:
			if processorTime(p.cmd.Process.Pid)-used < limit && time.Since(begin) < mostSleeping*limit {
				continue // others have the processor
			}
			kill()
			return &Outcome{Run: Run{Findings: []Finding{{Kind: "hang",
				Message: fmt.Sprintf("the kernel was not done after %v, and waited for nothing", limit)}}}}, false, nil
		}
	}
	switch {
	case err == nil:
		return outcome, true, nil
	case ctx.Err() != nil:
		p.end()
		return nil, false, context.Cause(ctx)
	}
	how := p.end()
	return &Outcome{Run: Run{Findings: []Finding{{Kind: "crash",
		Message: "the process that ran the kernel ended: " + how, Output: p.complaints.lines()}}}}, false, nil
}

// processorTime is how long a process has run until now, or 0 where nobody says.
func processorTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name of the process, in parentheses, may have spaces. Times of user and system are the 14th and 15th field.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * (time.Second / 100)
}

// end ends the process, and says how it ended.
func (p *process) end() string {
	p.in.Close()
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.String()
	}
	if err != nil {
		return infile.Reason(err)
	}
	return "exit status 0"
}

// A tail keeps the beginning of what is written to it: a crash says first what it is.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// mostOutput is how many bytes are kept.
const mostOutput = 16 << 10

// Write implements [io.Writer].
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := mostOutput - t.text.Len(); room > 0 {
		t.text.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return firstLines(t.text.String(), mostLines)
}

// A pool runs orders on several workers.
type pool struct {
	ctx     context.Context
	command []string
	device  string
	setup   setup
	limit   time.Duration // of a run
	until   time.Time     // when all runs end, if there is such a time
	free    chan *process // nil: one is to be started
}

func newPool(ctx context.Context, size int, command []string, device string, s setup) *pool {
	p := &pool{ctx: ctx, command: command, device: device, setup: s, limit: hangLimit, free: make(chan *process, size)}
	for range size {
		p.free <- nil
	}
	return p
}

// run runs an order on a free worker, and waits for one. When the time is over the error is errTime.
func (p *pool) run(o *order) (*Outcome, error) {
	w := <-p.free
	if err := p.ctx.Err(); err != nil {
		p.free <- w
		return nil, context.Cause(p.ctx)
	}
	if !p.until.IsZero() && !time.Now().Before(p.until) {
		p.free <- w
		return nil, errTime
	}
	if w == nil {
		var err error
		if w, err = startProcess(p.ctx, p.command, p.device, p.setup); err != nil {
			p.free <- nil
			return nil, err
		}
	}
	outcome, alive, err := w.carryOut(p.ctx, o, p.limit, p.until)
	if !alive {
		w = nil
	}
	p.free <- w
	return outcome, err
}

// assumptions asks a worker what the machine assumes.
func (p *pool) assumptions() ([]Assumption, error) {
	w := <-p.free
	if w == nil {
		var err error
		if w, err = startProcess(p.ctx, p.command, p.device, p.setup); err != nil {
			p.free <- nil
			return nil, err
		}
	}
	p.free <- w
	return w.assumptions, nil
}

// close ends all workers.
func (p *pool) close() {
	for range cap(p.free) {
		if w := <-p.free; w != nil {
			w.end()
		}
	}
}
