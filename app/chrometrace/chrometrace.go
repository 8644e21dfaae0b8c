// Package chrometrace writes timelines in the JSON form of Chrome's trace event format, which https://ui.perfetto.dev
// and chrome://tracing open: {"traceEvents": [...]}, one event per line.
//
// The package is copied into every emitted launcher. It imports the standard library only, and must not depend on what
// the events mean.
package chrometrace

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"math"
)

// A Track is a row in which events are drawn. The threads of a process are drawn below one another.
type Track struct {
	Process, Thread int
}

// A Span is a stretch of time on a track. Times are microseconds, and written to the nanosecond.
type Span struct {
	Track
	Name, Category string
	Start, End     float64
	Args           any // an object, shown alongside a span that is chosen; nil: none
}

// event is an event as the format has it.
type event struct {
	Phase    string   `json:"ph"`
	Process  int      `json:"pid"`
	Thread   int      `json:"tid"`
	Name     string   `json:"name"`
	Category string   `json:"cat,omitempty"`
	Time     *float64 `json:"ts,omitempty"`
	Duration *float64 `json:"dur,omitempty"`
	Args     any      `json:"args,omitempty"`
}

// A Writer writes one file. The first error is kept, and Close returns it.
type Writer struct {
	w    *bufio.Writer
	any  bool
	errs error
}

// NewWriter begins a file.
func NewWriter(w io.Writer) *Writer {
	t := &Writer{w: bufio.NewWriter(w)}
	t.text(`{"traceEvents":[`)
	return t
}

// Process names the process of all its tracks. Processes are drawn in the order of their numbers.
func (t *Writer) Process(process int, name string) {
	t.metadata(Track{Process: process}, "process_name", map[string]any{"name": name})
	t.metadata(Track{Process: process}, "process_sort_index", map[string]any{"sort_index": process})
}

// Thread names a track. Tracks of a process are drawn in the order of their threads' numbers.
func (t *Writer) Thread(at Track, name string) {
	t.metadata(at, "thread_name", map[string]any{"name": name})
	t.metadata(at, "thread_sort_index", map[string]any{"sort_index": at.Thread})
}

// Span writes a complete event.
func (t *Writer) Span(s Span) {
	start, duration := nanosecond(s.Start), nanosecond(s.End-s.Start)
	t.event(event{Phase: "X", Process: s.Process, Thread: s.Thread, Name: s.Name, Category: s.Category, Time: &start,
		Duration: &duration, Args: s.Args})
}

// Close ends the file with an object of metadata, or nil. It does not close the underlying writer.
func (t *Writer) Close(about any) error {
	t.text("\n],\"displayTimeUnit\":\"ns\"")
	if about != nil {
		t.text(`,"otherData":`)
		t.value(about)
	}
	t.text("}\n")
	return errors.Join(t.errs, t.w.Flush())
}

func (t *Writer) metadata(at Track, kind string, args map[string]any) {
	t.event(event{Phase: "M", Process: at.Process, Thread: at.Thread, Name: kind, Args: args})
}

func (t *Writer) event(e event) {
	if t.any {
		t.text(",")
	}
	t.any = true
	t.text("\n")
	t.value(e)
}

func (t *Writer) value(v any) {
	line, err := json.Marshal(v)
	t.keep(err)
	t.text(string(line))
}

// text writes; bufio keeps an error until Flush.
func (t *Writer) text(s string) { _, _ = t.w.WriteString(s) }

func (t *Writer) keep(err error) {
	if t.errs == nil {
		t.errs = err
	}
}

// nanosecond rounds microseconds.
func nanosecond(us float64) float64 { return math.Round(us*1000) / 1000 }
