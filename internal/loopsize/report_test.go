package loopsize

import (
	"fmt"
	"strings"
)

// Report is docs/results/looping.json.
type Report struct {
	Host    string `json:"host"`
	Load    string `json:"load"` // of the last minute, when it began: how busy the machine was
	NVCC    string `json:"nvcc"`
	Command string `json:"command"`
	Rows    []Row  `json:"rows"`
}

// Row is one program.
type Row struct {
	Layers   int       `json:"layers"`
	Looped   bool      `json:"looped"`
	Target   string    `json:"target"`
	Arch     string    `json:"gencode"`
	Sources  int       `json:"source_bytes"`     // generated CUDA sources
	Schedule int       `json:"schedule_h_bytes"` // of these, the task tables
	Fatbin   int       `json:"fatbin_bytes,omitempty"`
	NVCC     float64   `json:"nvcc_seconds,omitempty"` // of processor time
	Total    float64   `json:"amkc_seconds"`
	Steps    []Seconds `json:"amkc_steps"`
	Refused  string    `json:"refused,omitempty"` // there is no such program: why
}

// Seconds is how long a pass took.
type Seconds struct {
	Step    string  `json:"step"`
	Seconds float64 `json:"seconds"`
}

// Markdown is looping.md.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What a loop over layers saves\n\nWritten by `%s` on %s, with nvcc %s and a load of %s "+
		"before.\n\n", r.Command, r.Host, r.NVCC, r.Load)
	b.WriteString(`A model with the shape of Llama-3.2-1B in bf16 and 2 to 80 layers, for one H200, 4096 positions: once
with its layers in a loop, once with ` + "`tiling.loop.roll`" + ` at 0, every layer with stages of its own. Sources are
the generated CUDA files (the program's own files, program.json and schedule.amk, are no part of them), the fatbin
is that of the three kernels of megakernel.cu. nvcc's time is processor time. amkc's is by the clock, from config.json
to sources with the proof, the fastest of three runs: on a machine with other work it is longer than on an idle one.
Unrolled programs of more layers than the table has times for were not given to nvcc.

| layers | form | sources, bytes | of these schedule.h | fatbin, bytes | nvcc, processor s | amkc, s |
|---:|---|---:|---:|---:|---:|---:|
`)
	for i := range r.Rows {
		row := &r.Rows[i]
		form, fatbin, nvcc := "unrolled", "", ""
		if row.Refused != "" {
			fmt.Fprintf(&b, "| %d | unrolled | refused: %s | | | | |\n", row.Layers, row.Refused)
			continue
		}
		if row.Looped {
			form = "looped"
		}
		if row.Fatbin > 0 {
			fatbin, nvcc = fmt.Sprint(row.Fatbin), fmt.Sprintf("%.1f", row.NVCC)
		}
		fmt.Fprintf(&b, "| %d | %s | %d | %d | %s | %s | %.2f |\n", row.Layers, form, row.Sources, row.Schedule, fatbin,
			nvcc, row.Total)
	}
	b.WriteString("\n## amkc's time by step, milliseconds\n\n| layers | form |")
	if len(r.Rows) == 0 {
		return b.String()
	}
	for _, s := range r.Rows[0].Steps {
		fmt.Fprintf(&b, " %s |", s.Step)
	}
	b.WriteString("\n|---:|---|" + strings.Repeat("---:|", len(r.Rows[0].Steps)) + "\n")
	for i := range r.Rows {
		row := &r.Rows[i]
		form := "unrolled"
		if row.Looped {
			form = "looped"
		}
		if row.Refused != "" {
			continue
		}
		fmt.Fprintf(&b, "| %d | %s |", row.Layers, form)
		for _, s := range row.Steps {
			fmt.Fprintf(&b, " %.1f |", s.Seconds*1000)
		}
		b.WriteString("\n")
	}
	return b.String()
}
