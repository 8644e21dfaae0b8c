package cli

import (
	"context"
	"errors"
	"time"

	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
)

// A limit ends a context when an evaluation has taken so long, without what it waits for its turn.
type limit struct {
	ctx   context.Context
	timer *time.Timer
	ends  time.Time
	stop  context.CancelCauseFunc
}

func limitTo(ctx context.Context, most time.Duration) *limit {
	l := &limit{ends: time.Now().Add(most)}
	l.ctx, l.stop = context.WithCancelCause(ctx)
	l.timer = time.AfterFunc(most, func() { l.stop(context.DeadlineExceeded) })
	return l
}

// left is how much time there is.
func (l *limit) left() time.Duration { return time.Until(l.ends) }

func (l *limit) end() {
	l.timer.Stop()
	l.stop(nil)
}

// turnPoll is how often a process looks whether it is its turn.
const turnPoll = 10 * time.Millisecond

// turn returns what waits until no other process holds a file, and holds it. It is nil where there is no file.
func (l *limit) turn(path string) func(context.Context) (func(), error) {
	if path == "" {
		return nil
	}
	return func(ctx context.Context) (func(), error) {
		left := l.left()
		l.timer.Stop()
		for {
			claim, _, err := outfile.Hold(path)
			switch {
			case err == nil:
				l.ends = time.Now().Add(left)
				l.timer.Reset(max(0, left))
				return func() { claim.Release() }, nil
			case !errors.Is(err, outfile.ErrBusy):
				return nil, diag.Errorf(codeOutput, path, "cannot be held: %s", infile.Reason(err))
			}
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(turnPoll):
			}
		}
	}
}
