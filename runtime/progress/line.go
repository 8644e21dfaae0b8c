// Package progress shows the progress of a long activity on a terminal: one line of stderr, which is updated in place
// and removed at the end. Nothing is written if stderr is not a terminal, or one that cannot update a line (TERM=dumb).
// The line has no colour, so NO_COLOR changes nothing.
//
// It is copied into every launcher. It imports runtime/printable and the standard library, and must not import any
// other package of amkc.
package progress

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"amkc/runtime/printable"
)

// A Step is the progress of an activity. Total is 0 if it is unknown.
type Step struct {
	Activity    string
	Done, Total int64
	Unit        string // of Done and Total: Bytes, or a noun in the plural; empty where a rate would say nothing
}

// Bytes is the unit that is shown as KiB, MiB and so on.
const Bytes = "bytes"

// A Func receives the progress of an activity. Reporting to a nil Func does nothing.
type Func func(Step)

// Report calls f unless it is nil.
func (f Func) Report(s Step) {
	if f != nil {
		f(s)
	}
}

const (
	often   = 100 * time.Millisecond // between two writes of the line
	settled = time.Second            // after which a rate is worth showing
)

// A Line is the progress line of a terminal. The zero Line shows nothing. It is for one goroutine at a time.
type Line struct {
	w     io.Writer // nil: nobody watches
	width func() int
	now   func() time.Time

	activity string
	began    time.Time // of the activity, and what had been done by then
	offset   int64
	written  time.Time
	shown    bool
}

// New returns a line on w, which shows nothing unless w is a terminal that can rewrite it.
func New(w io.Writer) *Line {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !IsTerminal(w) {
		return &Line{}
	}
	return &Line{w: w, width: func() int { return columns(f) }, now: time.Now}
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isTerminal(f)
}

// Colourful reports whether colour may be written to w: to a terminal that has it, unless NO_COLOR is set.
func Colourful(w io.Writer) bool {
	_, refused := os.LookupEnv("NO_COLOR")
	return !refused && os.Getenv("TERM") != "dumb" && IsTerminal(w)
}

// Report shows a step without a rate.
func (l *Line) Report(activity string, done, total int64) {
	l.Show(Step{Activity: activity, Done: done, Total: total})
}

// ReportBytes shows a step whose done and total are bytes, with its rate.
func (l *Line) ReportBytes(activity string, done, total int64) {
	l.Show(Step{Activity: activity, Done: done, Total: total, Unit: Bytes})
}

// Show replaces the line. Updates of one activity are rate-limited.
func (l *Line) Show(s Step) {
	if l.w == nil {
		return
	}
	now := l.now()
	if s.Activity != l.activity {
		l.activity, l.began, l.offset = s.Activity, now, s.Done
	} else if now.Sub(l.written) < often {
		return
	}
	text := []rune(s.text(s.Done-l.offset, now.Sub(l.began)))
	if most := l.width() - 1; len(text) > most {
		text = text[:max(0, most)] // a line that wraps cannot be rewritten
	}
	fmt.Fprintf(l.w, "\r\x1b[K%s", string(text))
	l.written, l.shown = now, true
}

// Clear removes the line, so that what is printed next starts at the left.
func (l *Line) Clear() {
	if l.shown {
		fmt.Fprint(l.w, "\r\x1b[K")
	}
	l.shown, l.activity = false, ""
}

// Reading returns a function that shows how many tokens of a prompt have been read. It removes the line when all have
// been, because the answer may be printed next.
func Reading(line interface {
	Show(Step)
	Clear()
}) func(activity string, done, total int64) {
	return func(activity string, done, total int64) {
		if line.Show(Step{Activity: activity, Done: done, Total: total, Unit: "tokens"}); done == total {
			line.Clear()
		}
	}
}

// text is the line: how far it is and, when so much was done in the time, how fast and how long to go.
func (s *Step) text(done int64, elapsed time.Duration) string {
	parts := []string{printable.Line(s.Activity)} // which may have the name of a file in it
	switch {
	case s.Total > 0 && (s.Unit == Bytes || s.Unit == ""):
		parts = append(parts, fmt.Sprintf("%d %%", int(100*float64(s.Done)/float64(s.Total))))
	case s.Total > 0:
		parts = append(parts, fmt.Sprintf("%d of %d %s", s.Done, s.Total, s.Unit))
	}
	if done > 0 && elapsed >= settled {
		rate := float64(done) / elapsed.Seconds()
		switch s.Unit {
		case "":
		case Bytes:
			parts = append(parts, size(rate)+"/s")
		default:
			parts = append(parts, fmt.Sprintf("%.3g %s/s", rate, s.Unit))
		}
		if s.Total > s.Done {
			parts = append(parts, duration(float64(s.Total-s.Done)/rate)+" left")
		}
	}
	return parts[0] + strings.TrimSuffix(": "+strings.Join(parts[1:], ", "), ": ")
}

func size(bytes float64) string {
	for _, unit := range []string{"bytes", "KiB", "MiB", "GiB"} {
		if bytes < 1024 {
			return fmt.Sprintf("%.3g %s", bytes, unit)
		}
		bytes /= 1024
	}
	return fmt.Sprintf("%.3g TiB", bytes)
}

func duration(seconds float64) string {
	n := int(math.Ceil(min(seconds, 1e9)))
	switch {
	case n < 60:
		return fmt.Sprintf("%d s", n)
	case n < 3600:
		return fmt.Sprintf("%d min %02d s", n/60, n%60)
	}
	return fmt.Sprintf("%d h %02d min", n/3600, n/60%60)
}
