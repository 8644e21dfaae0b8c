package cli

import (
	"encoding/json"
	"io"
	"time"

	"amkc/runtime/progress"
)

// How progress is shown.
const (
	watchedAuto = "auto"
	watchedJSON = "json"
)

// A watcher is shown how far long work is. It is for one goroutine at a time.
type watcher interface {
	Show(progress.Step)
	Report(activity string, done, total int64)
	ReportBytes(activity string, done, total int64)
	Clear()
}

// progress returns what long work is shown to, if anybody watches.
func (c *call) progress() watcher {
	switch {
	case c.watched == watchedJSON:
		return &progressLines{w: c.stderr, now: time.Now}
	case c.quiet || c.json:
		return &progress.Line{}
	}
	return progress.New(c.stderr)
}

// rarely is the time between two objects of one activity.
const rarely = 100 * time.Millisecond

// progressLines are JSON objects, one a line, for a program that watches.
type progressLines struct {
	w       io.Writer
	now     func() time.Time
	written time.Time
	last    progress.Step
}

// progressObject is such a line.
type progressObject struct {
	Progress progressStep `json:"progress"`
}

type progressStep struct {
	Activity string `json:"activity"`
	Done     int64  `json:"done"`
	Total    int64  `json:"total"` // 0: nobody knows
	Unit     string `json:"unit"`
}

func (p *progressLines) Show(s progress.Step) {
	now := p.now()
	goesOn := s.Activity == p.last.Activity && (s.Done < s.Total || s.Total == 0)
	if s == p.last || goesOn && now.Sub(p.written) < rarely {
		return
	}
	p.last, p.written = s, now
	text, err := json.Marshal(progressObject{progressStep(s)})
	if err == nil {
		p.w.Write(append(text, '\n')) // who does not read stderr misses what is not the result
	}
}

func (p *progressLines) Report(activity string, done, total int64) {
	p.Show(progress.Step{Activity: activity, Done: done, Total: total})
}

func (p *progressLines) ReportBytes(activity string, done, total int64) {
	p.Show(progress.Step{Activity: activity, Done: done, Total: total, Unit: progress.Bytes})
}

// Clear does nothing: an object is not a line of a terminal.
func (p *progressLines) Clear() {}
