package explore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"amkc/ir/diag"
)

// A Strategy is how the machine makes its choices.
type Strategy string

// The strategies. Of all of them choice 0 is the default: the thread that runs goes on, a load sees the newest store, a
// store is seen at once, and a copy lands when somebody waits for it.
const (
	Replay Strategy = "replay" // the deviations that are listed, and no others
	Random Strategy = "random" // any deviation may be taken anywhere, as often as the seed says
	PCT    Strategy = "pct"    // priorities of threads, which change at a few places
)

// A Schedule determines the choices of a run. The machine reads it (explore/cpu/machine/control.h).
type Schedule struct {
	Strategy   Strategy        `json:"strategy"`
	Seed       uint64          `json:"seed,omitempty"`
	Depth      int             `json:"depth,omitempty"`    // of pct: places where priorities change
	Last       int             `json:"last,omitempty"`     // of pct: the SM that runs last, from 1
	Expected   uint64          `json:"expected,omitempty"` // of pct: choices of a run, about
	Deviations [][2]uint64     `json:"deviations,omitempty"`
	Assume     map[string]bool `json:"assume,omitempty"` // named assumptions that are not as by default
	Mutant     int             `json:"mutant,omitempty"` // of kernels that have some (package mutant); 0: none
	MaxSteps   uint64          `json:"max_steps,omitempty"`
	HostStores []HostStore     `json:"host_stores,omitempty"`
}

// abortPointer is where the address of the abort word is in the argument of a kernel (amk/launch.cuh).
const abortPointer = 64

// A HostStore is a word that the host stores while a kernel runs.
type HostStore struct {
	Step      uint64 `json:"step"`       // of the machine
	PointerAt int    `json:"pointer_at"` // where in the argument of the kernel the address of the word is
	Value     uint32 `json:"value"`
}

// String returns the flags that reproduce the schedule.
func (s *Schedule) String() string {
	var parts []string
	switch s.Strategy {
	case Replay:
		if len(s.Deviations) == 0 {
			parts = append(parts, "default")
			break
		}
		parts = append(parts, plural(len(s.Deviations), "deviation"))
	case PCT:
		parts = append(parts, fmt.Sprintf("pct, seed %d, depth %d", s.Seed, s.Depth))
		if s.Last != 0 {
			parts = append(parts, "an SM of the lowest priority")
		}
	default:
		parts = append(parts, fmt.Sprintf("%s, seed %d", s.Strategy, s.Seed))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Assume)) {
		parts = append(parts, fmt.Sprintf("%s=%t", name, s.Assume[name]))
	}
	if s.Mutant != 0 {
		parts = append(parts, fmt.Sprintf("mutant %d", s.Mutant))
	}
	for _, h := range s.HostStores {
		parts = append(parts, fmt.Sprintf("abort at step %d", h.Step))
	}
	return strings.Join(parts, ", ")
}

// Priorities that change in a schedule of pct: few as a rule, because faults of which more events have to come in an
// order of their own are rare; many in some, because an SM that falls back at one of them may be just where a fault
// wants it.
const (
	fewChanges  = 3
	manyChanges = 48
)

// schedules returns the first n schedules of a seed: the default one, and then what seeds say. Every second one is
// random. The others are of pct: in every second of these one SM, each in its turn, has the lowest priority.
func schedules(n int, seed uint64, assume map[string]bool) []Schedule {
	all := make([]Schedule, n)
	for i := range all {
		s := Schedule{Assume: assume}
		switch at := seed + uint64(i); {
		case i == 0:
			s.Strategy = Replay
		case at%2 == 0:
			s.Strategy, s.Seed = Random, at
		case at%4 == 1:
			s.Strategy, s.Seed, s.Depth, s.Last = PCT, at, fewChanges, int(at/4%1024)+1
		case at%8 == 3:
			s.Strategy, s.Seed, s.Depth = PCT, at, fewChanges
		default:
			s.Strategy, s.Seed, s.Depth = PCT, at, manyChanges
		}
		all[i] = s
	}
	return all
}

// replayOf is the schedule that takes the deviations that a run took, under the same assumptions.
func (s *Schedule) replayOf(deviations [][2]uint64) Schedule {
	again := *s
	again.Strategy, again.Seed, again.Depth, again.Last, again.Expected = Replay, 0, 0, 0, 0
	again.Deviations = deviations
	return again
}

// A Run is the machine's report of a run: all launches since the schedule was set.
type Run struct {
	Findings   []Finding   `json:"findings"`
	Choices    uint64      `json:"choices"`
	Deviations [][2]uint64 `json:"deviations"`
	Steps      uint64      `json:"steps"`
	Launches   uint64      `json:"launches"`
	Reached    []int       `json:"reached,omitempty"` // sites of mutants that kernels came to
	Counts     Counts      `json:"counts"`
}

// Counts are counts of the memory model in a run.
type Counts struct {
	Plain   uint64 `json:"plain"` // accesses without an order
	Loads   uint64 `json:"loads"` // of words that threads share
	Stores  uint64 `json:"stores"`
	Delayed uint64 `json:"delayed"` // stores that others saw late
	Stale   uint64 `json:"stale"`   // loads of what was not the newest store
	Syncs   uint64 `json:"syncs"`   // of one thread with another
	Copied  uint64 `json:"copied"`  // bytes of bulk copies
	Torn    uint64 `json:"torn"`    // bytes that such a copy brought while they were written
}

func (c *Counts) add(o *Counts) {
	c.Plain, c.Loads, c.Stores, c.Delayed = c.Plain+o.Plain, c.Loads+o.Loads, c.Stores+o.Stores, c.Delayed+o.Delayed
	c.Stale, c.Syncs, c.Copied, c.Torn = c.Stale+o.Stale, c.Syncs+o.Syncs, c.Copied+o.Copied, c.Torn+o.Torn
}

// A Finding is one fault.
type Finding struct {
	Kind    string  `json:"kind"` // a word: "race"
	Message string  `json:"message"`
	Of      string  `json:"of,omitempty"` // whose results differ: the job
	Sites   []Site  `json:"sites,omitempty"`
	Choice  *uint64 `json:"choice,omitempty"` // how many choices had been made
	// Output is the output of a process that crashed.
	Output []string `json:"output,omitempty"`
}

// A Site is a place in the code of a kernel, or of the machine.
type Site struct {
	Module string  `json:"module,omitempty"` // file of the build: "rows2/megakernel.fatbin"
	Offset uint64  `json:"offset,omitempty"` // in it
	File   string  `json:"file,omitempty"`
	Line   int     `json:"line,omitempty"`
	Block  int     `json:"block"`            // of the thread that was there
	Thread int     `json:"thread"`           // in its block
	Frames []Frame `json:"frames,omitempty"` // of the offset, the innermost first
}

// A Frame is a function, and a place in it.
type Frame struct {
	Function string `json:"function,omitempty"`
	File     string `json:"file"`
	Line     int    `json:"line"`
}

// isHost reports whether it is not a place of a kernel: the host has no line that would say anything.
func (s *Site) isHost() bool { return s.File == "" && s.Module == "" }

// place is file and line, or the module and the offset where those are not known.
func (s *Site) place() string {
	switch {
	case s.File != "":
		return fmt.Sprintf("%s:%d", s.File, s.Line)
	case len(s.Frames) > 0:
		return fmt.Sprintf("%s:%d", s.Frames[0].File, s.Frames[0].Line)
	}
	return fmt.Sprintf("%s+%#x", s.Module, s.Offset)
}

// key is the same for findings that are one mistake: of one kind, at the same places, or of one job. Without either the
// message says which it is, with all numbers taken for the same.
func (f *Finding) key() string {
	if f.Of != "" {
		return f.Kind + "|" + f.Of
	}
	var places []string
	for i := range f.Sites {
		if s := &f.Sites[i]; !s.isHost() {
			places = append(places, s.place())
		}
	}
	slices.Sort(places)
	if len(places) == 0 {
		places = append(places, withoutNumbers(f.Message))
	}
	return f.Kind + "|" + strings.Join(slices.Compact(places), "|")
}

func withoutNumbers(text string) string {
	var b strings.Builder
	in := false
	for _, r := range text {
		if digit := '0' <= r && r <= '9'; !digit {
			b.WriteRune(r)
			in = false
		} else if !in {
			b.WriteByte('#')
			in = true
		}
	}
	return b.String()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// text is the schedule in JSON, as the machine reads it.
func (s *Schedule) text() string {
	b, _ := json.Marshal(s) // it has nothing that JSON lacks
	return string(b)
}

// Diagnostic returns the finding as a diagnostic: where, in which schedule, and in how many runs.
func (f *Found) Diagnostic() *diag.Diagnostic {
	d := diag.Errorf(codeFound, "job "+f.Job, "%s: %s", f.Kind, firstLine(f.Message))
	if rest := strings.Split(f.Message, "\n")[1:]; len(rest) > 0 {
		d.With(rest...)
	}
	for i := range f.Sites {
		d.With(f.Sites[i].lines()...)
	}
	d.With(f.Output...)
	return d.With(fmt.Sprintf("schedule: %s; %s", f.Schedule, plural(f.Runs, "run")))
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// lines say what happened at a site, and through which functions it was reached.
func (s *Site) lines() []string {
	if s.isHost() {
		return []string{"by the host"}
	}
	lines := []string{fmt.Sprintf("%s: SM %d, thread %d", s.place(), s.Block, s.Thread)}
	for _, f := range s.Frames {
		where := fmt.Sprintf("%s:%d", f.File, f.Line)
		if f.Function != "" {
			where = f.Function + ", " + where
		}
		lines = append(lines, "    in "+where)
	}
	return lines
}
