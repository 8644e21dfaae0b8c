package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"amkc/compiler/evaluate"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/search"
)

func tuneVerb() verb {
	f := &searchFlags{}
	return verb{
		name: "tune", synopsis: "STAGE MODEL -o DIR [--trials N] [--minutes N] [--device cost|cuda]", min: 2, max: 2,
		summary: "look for a faster form of one stage by itself; adopt what the step then shows",
		details: "STAGE is " + listOr(evaluate.Stages()) + ". The knobs that have a say in it, which amkc space " +
			"lists, are\nvaried as amkc search varies all of them, by the same rules; what counts is the time of the " +
			"stage by itself. On\na GPU its launches are timed in their place in a step that is launched stage by " +
			"stage, and what it hands over is held\nto the reference; elsewhere the cost model predicts its part of " +
			"a step. In the end the best is judged in the whole\nstep, in a fresh process. It is adopted if that " +
			"shows a gain by the same rules, " +
			"and else what was the\nbest before it is judged. DIR is a campaign, " +
			"which the same command goes on with (docs/search.md).",
		flags: func(set *pflag.FlagSet) { f.defineCommon(set) },
		run:   f.tune,
	}
}

// tune makes trials of one stage on its own.
func (f *searchFlags) tune(c *call) error {
	f.tuned, c.args = c.args[0], c.args[1:]
	if stages := evaluate.Stages(); !slices.Contains(stages, f.tuned) {
		return c.usage("%s is no stage; %s", typedWord(f.tuned), diag.Guess(f.tuned, stages, "want "+listOr(stages)))
	}
	if slices.Contains(f.proposers, "prior") {
		return c.usage("--proposer prior goes by what was learnt of steps; want another one for a stage by itself")
	}
	if f.out == "" {
		return c.usage("a directory for the campaign is needed; want -o DIR")
	}
	return f.carry(c)
}

// tuned is what a campaign of a stage has come to, in JSON.
type tuned struct {
	Name string `json:"name"`
	// Adopted are the settings whose gain on their own the step shows; those of the start where there is no such gain.
	Adopted knobs.Settings `json:"adopted"`
	Known   bool           `json:"known"` // nothing is left to be confirmed
}

// tunedIn is nil for a campaign that is not of a stage.
func tunedIn(s *search.State) *tuned {
	stage := s.Campaign().Stage
	if stage == "" {
		return nil
	}
	adopted, known := s.Adopted()
	return &tuned{Name: stage, Adopted: adopted, Known: known}
}

func tunedText(r *searched, c *search.Campaign, kind string) string {
	start, best, adopted := search.IDOf(c.Start), search.IDOf(r.Best), search.IDOf(r.Stage.Adopted)
	if best == start {
		return "nothing was found with which " + r.Stage.Name + " is faster by itself\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s by itself, at best: about %.4f of the time of the start, %s\n", r.Stage.Name, r.Estimate, kind)
	if adopted != best {
		b.WriteString(settingsText(r.Best))
	}
	switch {
	case !r.Stage.Known:
		b.WriteString("nothing is adopted yet: the step is to confirm it\n")
	case adopted == start && r.HeldOut == nil:
		b.WriteString("nothing is adopted: in the whole step it does not hold\n")
	case adopted == start:
		fmt.Fprintf(&b, "nothing is adopted: the step does not show it, %s of the time of the start, %s\n",
			intervalText(*r.HeldOut), kind)
	default:
		how := "confirmed in the step"
		if r.Confirmed == nil {
			how = "not confirmed, since the interval is not below 1"
		}
		fmt.Fprintf(&b, "adopted, and %s: %s of the time of the start, %s\n", how, intervalText(*r.HeldOut), kind)
		b.WriteString(settingsText(r.Stage.Adopted))
	}
	return b.String()
}
