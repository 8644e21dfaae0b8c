package compiler

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler/diff"
	"amkc/ir"
)

// A schedule change must read as one in review: for each knob, one step away from the default, the changed lines of
// what a reviewer looks at stay within a budget, the size of the workspace for prompts among them. program.json and
// schedule.amk are counted apart: they repeat a stage per variant.
func TestDiffBudget(t *testing.T) {
	tiling := func(group, knob string, value int) ir.ScheduleConfig {
		return ir.ScheduleConfig{Tiling: map[string]map[string]int{group: {knob: value}}}
	}
	base := generated(t, lowerModel(t, "pycoder-5m", "h200", ir.BF16, 0, ir.ScheduleConfig{}))
	for _, c := range []struct {
		name          string
		config        ir.ScheduleConfig
		source, forms int // most lines added plus removed in .h and .cu, and in the two program forms
	}{
		{"copies", tiling("exchange", "copies", 1), 16, 80},
		{"counters", tiling("exchange", "flagged", 0), 2, 80},
		{"in flight", ir.ScheduleConfig{PipeliningDepth: 2}, 2, 4},
		{"warps", tiling("warps", "down", 4), 4, 4},
		{"prompts", tiling("prompt", "tokens", 128), 6, 4},
		{"run ahead", tiling("ring", "run_ahead", 4), 2, 4},
		{"pace", tiling("ring", "pace", 1000), 2, 4},
		{"no stock", tiling("ring", "stock", 0), 4, 4},
		{"splits", tiling("attention", "max_splits", 8), 60, 80},
		{"split from", tiling("attention", "split_from", 256), 6, 16},
		{"rotation", ir.ScheduleConfig{SMAssignment: ir.Assignment{Rotations: map[string]int{"gate_up": 3}}}, 24, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := generated(t, lowerModel(t, "pycoder-5m", "h200", ir.BF16, 0, c.config))
			require.Equal(t, slices.Sorted(maps.Keys(base)), slices.Sorted(maps.Keys(changed)))
			source, forms := 0, 0
			for name := range base {
				added, removed := diff.Count(diff.Unified(base[name], changed[name]))
				if name == "program.json" || strings.HasSuffix(name, ".amk") {
					forms += added + removed
				} else {
					source += added + removed
				}
			}
			require.Positive(t, source+forms, "the knob changes nothing")
			require.LessOrEqual(t, source, c.source, "lines changed in generated sources")
			require.LessOrEqual(t, forms, c.forms, "lines changed in the program's forms")
		})
	}
}
