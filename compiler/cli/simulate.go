package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/interchange/judge"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/simulate"
)

// What simulate spends on a program on its own.
const (
	exploredStates = 20_000
	exploredWork   = 1_000_000
	simulatedEnds  = 2                // positions of a variant: the first and the last
	shrinkEvents   = 20_000_000       // some ten seconds on one core
	simulatedHeap  = int64(768 << 20) // bytes above which garbage is collected early
)

// simulateFlags are the flags of simulate.
type simulateFlags struct {
	orders    int
	seed      int
	seconds   float64
	positions [][]int // of passes: one for all sequences, or one for each
}

func simulateVerb() verb {
	f := &simulateFlags{}
	return verb{
		name: "simulate", synopsis: "FILE|DIR [--orders N] [--seed N] [--time SECONDS] [--position N,...]",
		min: 1, max: 1,
		summary: "run a program in many orders of its tasks",
		details: `
Runs the counters and exchanges of a program, on memory that records who wrote what: in every order of its tasks if
there are few enough, and in adversarial ones otherwise, for one step and for two in a row. A fault is shown as a
script, with as few tasks as still show it. FILE is as for amkc validate. No fault is no proof: amkc validate gives
one (docs/ir.md). Exit code 0: no fault; 1: a fault.`,
		flags: f.define,
		run:   f.run,
	}
}

func (f *simulateFlags) define(set *pflag.FlagSet) {
	set.Var(front.NewCount(&f.orders, 16, 1, math.MaxInt32), "orders",
		"run `N` orders of each step that has too many for all of them")
	set.Var(front.NewCount(&f.seed, 1, 0, math.MaxInt32), "seed",
		"the first order follows from `N`, the next from N+1, and so on")
	f.seconds = 10
	set.Var(newAmount(&f.seconds), "time", "stop after `SECONDS`")
	set.Var(&passPositions{&f.positions}, "position",
		"run the step at position `N`, or N/N for a pass of two sequences; several with commas; default: the first "+
			"and the last of each variant")
}

// simulated is the result of simulate in JSON.
type simulated struct {
	Tasks     int     `json:"tasks"`               // of the largest step, or of two in a row
	Positions []int   `json:"positions"`           // of the first sequence
	Sequences [][]int `json:"sequences,omitempty"` // of all, of each step that was looked at, where there are several
	Explored  bool    `json:"explored"`            // every order was run, and nothing went wrong
	States    int     `json:"states"`
	Orders    int     `json:"orders"`
	Seed      int     `json:"seed"`
	Stopped   bool    `json:"stopped"` // by --time; by Ctrl-C too, where that was while an order was shortened
	Hazard    *hazard `json:"hazard,omitempty"`
}

// hazard is what goes wrong.
type hazard struct {
	Kind      simulate.Kind    `json:"kind"`
	Where     string           `json:"where"`
	Message   string           `json:"message"`
	Position  []int            `json:"position"`            // of the first sequence in each step: one, or two in a row
	Sequences [][]int          `json:"sequences,omitempty"` // of all, where there are several
	Seed      *uint64          `json:"seed,omitempty"`      // with --orders, what finds it again
	Orders    int              `json:"orders,omitempty"`
	Script    simulate.Script  `json:"script"`
	Other     *simulate.Script `json:"other,omitempty"` // of the order in which a read finds another writer

	at [][]int // the positions of all sequences in each step
}

func (f *simulateFlags) run(c *call) error {
	result := &simulated{Positions: []int{}, Seed: f.seed}
	c.payload = result
	p, err := c.readProgram(c.args[0])
	if err != nil {
		return err
	}
	// Without a limit the heap may double before garbage is collected.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(min(simulatedHeap, debug.SetMemoryLimit(-1))))
	interrupted, cancel := interruptible()
	defer cancel()
	ctx, cancel := context.WithTimeout(interrupted, time.Duration(f.seconds*float64(time.Second)))
	defer cancel()
	effort := simulate.Effort{States: exploredStates, Orders: f.orders, ExploreWork: exploredWork,
		Positions: simulatedEnds, At: f.positions, Seed: uint64(f.seed), Stop: ctx.Done()}
	v, err := f.judge(c, p, effort)
	if err != nil {
		return err
	}
	if interrupted.Err() != nil {
		return diag.Errorf(codeInterrupted, c.args[0], "interrupted")
	}
	result.Tasks, result.States, result.Orders, result.Explored = v.Tasks, v.States, v.Orders, v.Explored
	for _, pos := range firstPositions(v.At) {
		if !slices.Contains(result.Positions, pos) {
			result.Positions = append(result.Positions, pos)
		}
	}
	result.Sequences, result.Stopped = severalSequences(v.At), errors.Is(v.Limit, simulate.ErrStopped)
	switch {
	case v.Hazard != nil:
		return f.wrong(ctx, c, result, v.Hazard)
	case result.Stopped && v.States+v.Orders == 0:
		return diag.Errorf(simulate.CodeTooLarge, c.args[0],
			"no order was run to its end in %g s; want a longer --time", f.seconds)
	case v.Limit != nil && !result.Stopped:
		d := diag.Errorf(simulate.CodeTooLarge, c.args[0], "%v", v.Limit)
		if v.States+v.Orders == 0 {
			return d
		}
		d.Severity = diag.Warning // two steps in a row are too large, and one is not
		c.report(diag.List{d})
	}
	return c.printf("%s", simulatedText(c.args[0], result, v.At))
}

// judge runs a program in any form.
func (f *simulateFlags) judge(c *call, p program, e simulate.Effort) (simulate.Verdict, error) {
	if p.profile != nil {
		flat, diags := p.profile.Flatten()
		if diags.Err() != nil {
			return simulate.Verdict{}, diags
		}
		c.report(diags)
		step := &ir.Program{Variants: []ir.Variant{{Lo: flat.Lo, Hi: flat.Hi}}}
		if err := checkPasses(step, f.positions); err != nil {
			return simulate.Verdict{}, err
		}
		return judge.Judge(p.profile, flat, simulate.NewFootprints(), e), nil
	}
	if err := checkPasses(p.native, f.positions); err != nil {
		return simulate.Verdict{}, err
	}
	return simulate.Program(p.native, simulate.NewFootprints(), e), nil
}

// wrong reports what goes wrong: its script on standard output, and what it is as an error. When the time is over, or
// after Ctrl-C, the order is that of which tasks have been taken out until then: it shows what was found.
func (f *simulateFlags) wrong(ctx context.Context, c *call, result *simulated, h *simulate.Hazard) error {
	h = h.Shrink(shrinkEvents, ctx.Done())
	at := h.At()
	result.Hazard = &hazard{Kind: h.Kind, Where: h.Where, Message: h.Detail, Position: firstPositions(at),
		Sequences: severalSequences(at), Seed: h.Seed, Orders: h.Orders, Script: h.Script(), at: at}
	if h.Kind == simulate.WhichProducer && h.Other != nil {
		other := h.Other.Shrink(shrinkEvents, ctx.Done())
		if other.Kind != h.Kind {
			other = h.Other // with fewer tasks something else goes wrong
		}
		script := other.Script()
		result.Hazard.Other = &script
	}
	result.Stopped = ctx.Err() != nil
	if err := c.printf("%s", scriptText(c.args[0], result.Hazard, result.Stopped)); err != nil {
		return err
	}
	return h.Diagnostic()
}

// simulatedText says that nothing went wrong, in what and where.
func simulatedText(path string, r *simulated, at [][]int) string {
	of, stop := fmt.Sprintf("of up to %s at %s", counted(r.Tasks, "task", "s"), positionsText(at)), ""
	if r.Explored {
		return fmt.Sprintf("%s: nothing goes wrong in any order %s\n", path, of)
	}
	if r.Stopped {
		stop = ", and the time was over"
	}
	if r.Orders == 0 {
		return fmt.Sprintf("%s: nothing went wrong in %s %s%s; amkc validate proves all\n", path,
			counted(r.States, "state", "s"), of, stop)
	}
	return fmt.Sprintf("%s: nothing went wrong in %s %s, from seed %d on%s; amkc validate proves all\n", path,
		counted(r.Orders, "order", "s"), of, r.Seed, stop)
}

// shownSteps is how many lines of a script are printed: the last ones, which are what it is about.
const shownSteps = 24

// scriptText prints the script of a hazard, and what finds it again. stopped: its order could be shorter.
func scriptText(path string, h *hazard, stopped bool) string {
	var b strings.Builder
	at := "whatever the position"
	switch len(h.at) {
	case 1:
		at = "at " + positionsText(h.at)
	case 2:
		at = "in two steps in a row, at " + positionsText(h.at)
	}
	s, rest := &h.Script, ""
	if stopped {
		rest = ", which may be more than it takes, as the time was over"
	}
	if s.Before > 0 {
		rest += ", of its last steps alone"
	}
	switch {
	case len(s.Steps) > 0:
		fmt.Fprintf(&b, "%s: goes wrong %s, in an order of %s%s:\n", path, at, counted(s.Tasks(), "task", "s"), rest)
	case len(s.Waits) > 1:
		fmt.Fprintf(&b, "%s: stops %s in every order; %d tasks wait for each other:\n", path, at, len(s.Waits))
	case len(s.Waits) > 0:
		fmt.Fprintf(&b, "%s: stops %s in every order:\n", path, at)
	default:
		fmt.Fprintf(&b, "%s: goes wrong %s in every order\n", path, at)
	}
	printSteps(&b, s)
	if h.Other != nil {
		fmt.Fprintf(&b, "%s: and finds another writer in an order of %s%s:\n", path,
			counted(h.Other.Tasks(), "task", "s"), rest)
		printSteps(&b, h.Other)
	}
	if h.Seed != nil && len(h.at) > 0 {
		fmt.Fprintf(&b, "%s: found again by --position %s --seed %d --orders %d\n", path, spellPass(h.at[0]), *h.Seed,
			h.Orders)
	}
	return b.String()
}

// alike is how many steps in a row have to do the same to be printed as one line.
const alike = 4

func printSteps(b *strings.Builder, s *simulate.Script) {
	var lines []string
	steps, n := slices.Concat(s.Steps, s.Waits), s.Before
	for lo, hi := 0, 0; lo < len(steps); lo = hi {
		for hi = lo + 1; hi < len(steps) && steps[hi].Does == steps[lo].Does; {
			hi++
		}
		if hi-lo < alike {
			hi = lo + 1
			lines = append(lines, fmt.Sprintf("  %d.\t%s\t%s\t%s", n+lo+1, smText(steps[lo].SM), steps[lo].Task,
				steps[lo].Does))
			continue
		}
		lines = append(lines, fmt.Sprintf("  %d. to %d.\t\t%s to %s\teach %s", n+lo+1, n+hi, steps[lo].Task,
			steps[hi-1].Task, steps[lo].Does))
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	if first := len(lines) - shownSteps; first > 0 {
		if s.Before > 0 {
			fmt.Fprintf(w, "  %s left out\n", counted(s.Before, "step", "s"))
		}
		fmt.Fprintf(w, "  %s before, which --json lists\n", counted(first, "line", "s"))
		lines = lines[first:]
	}
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	w.Flush()
}

func smText(sm int) string {
	if sm < 0 {
		return "no SM"
	}
	return fmt.Sprintf("SM %d", sm)
}
