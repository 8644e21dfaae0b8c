package exploration

import (
	"fmt"
	"slices"
	"strings"
)

// Report is docs/results/explore.json.
type Report struct {
	Command   string  `json:"command"`
	Host      string  `json:"host"`
	Compiler  string  `json:"compiler"`
	Processor float64 `json:"processor_seconds"` // of the run, and of compiling
	Schedule  float64 `json:"schedule_seconds"`  // of processor time: one schedule of job launch of the first build
	Rows      []*Row  `json:"rows"`
}

// heading is above the lines of rows.
var heading = fmt.Sprintf("%-40s %9s %8s %11s %11s %9s %8s %8s\n", "build", "schedules", "launches", "steps", "choices",
	"late", "compiled", "findings")

// line is the row on a terminal.
func (r *Row) line() string {
	return fmt.Sprintf("%-40s %9d %8d %11d %11d %9d %8d %8d\n    %s\n", r.Build.Name(), r.Schedules, r.Launches,
		r.Steps, r.Choices, r.Late, r.Compiled, len(r.Findings), strings.Join(r.Jobs, " "))
}

// total adds rows up.
func total(rows []*Row) (sum Row) {
	for _, r := range rows {
		sum.Schedules, sum.Launches, sum.Steps = sum.Schedules+r.Schedules, sum.Launches+r.Launches, sum.Steps+r.Steps
		sum.Choices, sum.Late, sum.Values = sum.Choices+r.Choices, sum.Late+r.Late, sum.Values+r.Values
		sum.Compiled += r.Compiled
		sum.Findings = append(sum.Findings, r.Findings...)
	}
	return sum
}

// Markdown is docs/results/explore.md.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Builds on the CPU\n\nWritten by `%s` on %s, with %s; do not edit.\n\n", r.Command, r.Host,
		r.Compiler)
	sum := total(r.Rows)
	fmt.Fprintf(&b, `The kernels of %d builds of small models, explored as [explore.md](../explore.md) says: %s runs
under schedules of their own, %s launches, %s steps of the machine, %s choices. %s stores were seen
late by other threads, or loads saw what was not the newest one. **%d findings.** %s results were
compared to the bit. All of it, and compiling %d objects that were not there, took %.0f s of processor
time. One schedule of job %slaunch%s of the first build takes %.2f s of it. All assumptions are on.

Each two properties that builds may have occur together in one of these builds. A test reads the properties from what
was emitted, and holds the table to that; pairs that no build can have are listed below. All models have two layers.

`, len(r.Rows), grouped(uint64(sum.Schedules)), grouped(sum.Launches), grouped(sum.Steps), grouped(sum.Choices),
		grouped(sum.Late), len(sum.Findings), grouped(uint64(sum.Values)), sum.Compiled,
		r.Processor, "`", "`", r.Schedule)
	b.WriteString("| " + strings.Join(append(slices.Clone(Columns), "schedules", "launches", "steps", "choices",
		"findings"), " | ") + " |\n|" + strings.Repeat("---|", len(Columns)) + strings.Repeat("---:|", 5) + "\n")
	for _, row := range r.Rows {
		b.WriteString("|")
		for _, c := range Columns {
			b.WriteString(" " + row.Build[c] + " |")
		}
		fmt.Fprintf(&b, " %d | %s | %s | %s | %d |\n", row.Schedules, grouped(row.Launches), grouped(row.Steps),
			grouped(row.Choices), len(row.Findings))
	}
	b.WriteString(`
Products are by tensor cores where the dtype has 16 bits and the architecture is sm_80 or later. A context is whole,
split from position 0 on, or split from one on that texts cross. Builds whose ends are drawn draw tokens, too.

## Jobs

| job | builds |
|---|---:|
`)
	for _, j := range r.jobs() {
		fmt.Fprintf(&b, "| `%s` | %d |\n", j.name, j.builds)
	}
	b.WriteString("\n## Pairs that no build has\n\n| | and | why |\n|---|---|---|\n")
	var lines []string
	for p, why := range impossible {
		lines = append(lines, fmt.Sprintf("| %s: %s | %s: %s | %s |\n", p.a, p.value, p.b, p.other, why))
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(lines, ""))
	return b.String()
}

type jobCount struct {
	name   string
	builds int
}

// jobs are those of all rows, in the order in which they came.
func (r *Report) jobs() (all []jobCount) {
	for _, row := range r.Rows {
		for _, name := range row.Jobs {
			i := slices.IndexFunc(all, func(j jobCount) bool { return j.name == name })
			if i < 0 {
				i = len(all)
				all = append(all, jobCount{name: name})
			}
			all[i].builds++
		}
	}
	return all
}

// grouped is a number with commas.
func grouped(n uint64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
