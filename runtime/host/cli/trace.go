package cli

import (
	"fmt"
	"io"

	"amkc/runtime/host"
	"amkc/runtime/host/chrometrace"
	"amkc/runtime/outfile"
)

// traceResult is what bench prints of a trace as JSON.
type traceResult struct {
	File     string  `json:"file"`
	Position int     `json:"position"` // of the first step in it
	Steps    int     `json:"steps"`
	Spans    int     `json:"spans"`
	Dropped  int     `json:"dropped"`    // spans that did not fit
	Latency  float64 `json:"latency_us"` // of a token while spans are recorded, median
	Plain    float64 `json:"plain_us"`   // of a token of the decode kernel in the same run, median
}

// trace writes a profile to a file.
func (c *command) trace(p *host.Profile, device, path string) (*traceResult, error) {
	about := map[string]any{"model": c.launcher.Model.Name, "device": device, "position": p.Position,
		"latency_us": p.Latency, "plain_us": p.Plain, "dropped": p.Dropped}
	if err := outfile.Write(path, func(w io.Writer) error { return drawProfile(w, p, about) }); err != nil {
		return nil, err
	}
	return &traceResult{path, p.Position, p.Steps, len(p.Spans), p.Dropped, p.Latency, p.Plain}, nil
}

// drawProfile puts consumers above producers, SM by SM.
func drawProfile(w io.Writer, p *host.Profile, about any) error {
	t := chrometrace.NewWriter(w)
	processes := map[string]int{}
	for i, role := range []string{"consumer", "producer"} {
		processes[role] = i + 1
		t.Process(i+1, role+"s")
		for sm := range p.SMs {
			t.Thread(chrometrace.Track{Process: i + 1, Thread: sm + 1}, fmt.Sprintf("SM %d %s", sm, role))
		}
	}
	for _, s := range p.Spans {
		t.Span(chrometrace.Span{Track: chrometrace.Track{Process: processes[s.Role], Thread: s.SM + 1}, Name: s.Stage,
			Category: s.Kind,
			Start:    s.Start, End: s.End, Args: struct {
				Step int    `json:"step"`
				Kind string `json:"kind"`
			}{s.Step, s.Kind}})
	}
	return t.Close(about)
}

func traceText(r *traceResult) string {
	steps := fmt.Sprintf("the step at position %d", r.Position)
	if r.Steps > 1 {
		steps = fmt.Sprintf("the steps at positions %d to %d", r.Position, r.Position+r.Steps-1)
	}
	text := fmt.Sprintf("trace      %s: %s, %d spans; https://ui.perfetto.dev opens it\n", r.File, steps, r.Spans)
	if r.Dropped > 0 {
		text += fmt.Sprintf("           INCOMPLETE: %d spans did not fit the buffer\n", r.Dropped)
	}
	return text + fmt.Sprintf("recording  %.1f µs a token with it and %.1f without, in the same run: it costs %.1f %%\n",
		r.Latency, r.Plain, 100*(r.Latency/r.Plain-1))
}
