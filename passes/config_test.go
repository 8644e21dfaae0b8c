package passes

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
	"amkc/ir"
	"amkc/knobs"
)

// Every knob changes something: the program but for its configuration, or a constant of the kernel. One of its legal
// values is enough, with the others at their defaults or as needed says.
func TestEveryKnobHasAnEffect(t *testing.T) {
	needed := map[*knobs.Row]func(*ir.ScheduleConfig){
		knobs.InFlightStocked.Row(): func(c *ir.ScheduleConfig) { knobs.Stock.Set(c, 6) },
		knobs.MiddleSplits.Row():    func(c *ir.ScheduleConfig) { knobs.MiddleUntil.Set(c, 48) },
		knobs.MiddleUntil.Row():     func(c *ir.ScheduleConfig) { knobs.MiddleSplits.Set(c, 2) },
	}
	model := map[*knobs.Row]string{knobs.SplitK.Row(): "capped"} // others show in tiny
	print := func(r *knobs.Row, c ir.ScheduleConfig, withConfig bool) string {
		s := goldenCases(t)[cmp.Or(model[r], "tiny")]
		s.Config = c
		for _, p := range pipeline {
			if p.Run(s) != nil {
				return ""
			}
			if p.Name == "exchange" {
				break
			}
		}
		if !withConfig {
			s.Program.Config = ir.ScheduleConfig{}
		}
		return string(ir.Print(s.Program))
	}
	base := func() ir.ScheduleConfig {
		c := ir.ScheduleConfig{}
		knobs.SplitFrom.Set(&c, 32) // the model has 64 positions
		return c
	}
	for _, r := range knobs.Rows() {
		values := candidates(r.Legal)
		if r == knobs.SharedBytes.Row() {
			values = append(values, 100000) // few of the legal ones hold a ring and are there on the target
		}
		if r == knobs.MiddleUntil.Row() {
			values = append(values, 48) // few are between 32 and 64
		}
		if len(values) == 1 {
			continue
		}
		emitted := r.Constant != nil || r == knobs.SharedBytes.Row() // which the kernel has as kSharedLimit
		for _, stage := range r.Each() {
			before := base()
			if more := needed[r]; more != nil {
				more(&before)
			}
			changes := false
			for _, n := range values {
				after := base()
				if more := needed[r]; more != nil {
					more(&after)
				}
				r.Set(&after, stage, n)
				was, is := print(r, before, emitted), print(r, after, emitted)
				changes = changes || is != "" && is != was
			}
			require.True(t, changes, "%s does nothing", r.Path(stage))
		}
	}
}

// candidates are some of the legal values, those at the ends among them.
func candidates(l knobs.Legal) (values []int) {
	switch {
	case l.Words != nil:
		for n := range l.Words {
			values = append(values, n)
		}
		return values
	case l.OneOf != nil:
		return l.OneOf
	}
	step := max(1, l.Multiple)
	return []int{l.Lo, l.Lo + step, l.Lo + 2*step, (l.Lo + l.Hi) / 2 / step * step, l.Hi}
}

func TestPoliciesAndRotationsHaveAnEffect(t *testing.T) {
	seen := map[string]string{}
	for name, a := range map[string]ir.Assignment{"": {}, policyContiguous: {Policy: policyContiguous},
		policyRoundRobin: {Policy: policyRoundRobin},
		"rotations":      {Rotations: map[string]int{"o": 2, "down": 2, "embed": 2}}} {
		s := goldenCases(t)["tiny"]
		s.Config.SMAssignment = a
		lowered(t, s, "exchange")
		s.Program.Config = ir.ScheduleConfig{}
		text := string(ir.Print(s.Program))
		require.NotContains(t, seen, text, "%s is the same as %s", name, seen[text])
		seen[text] = name
	}
}

// The default policy may also be asked for.
func TestDefaultsMayBeStated(t *testing.T) {
	print := func(c ir.ScheduleConfig) string {
		s := goldenCases(t)["tiny"]
		s.Config = c
		return string(ir.Print(lowered(t, s, "exchange").Program))
	}
	require.Equal(t, print(ir.ScheduleConfig{}), print(ir.ScheduleConfig{
		SMAssignment: ir.Assignment{Policy: policyBalance}}))
}

// What the table of knobs leaves to passes.
func TestConfigRefusals(t *testing.T) {
	explicit := func(m map[string]int) ir.ScheduleConfig {
		return ir.ScheduleConfig{SMAssignment: ir.Assignment{Rotations: m}}
	}
	unknown := ir.ScheduleConfig{Tiling: map[string]map[string]int{"ring": {"depth": 4}},
		SMAssignment: ir.Assignment{Policy: "random"}}
	modeltest.CheckRefusals(t, "testdata/config_refusals.golden", []modeltest.Refusal{
		{Name: "policy", Input: ir.ScheduleConfig{SMAssignment: ir.Assignment{Policy: "random"}}},
		{Name: "policy and a knob", Input: unknown},
		{Name: "policy and map", Input: ir.ScheduleConfig{SMAssignment: ir.Assignment{Policy: "contiguous",
			Rotations: map[string]int{}}}},
		{Name: "task map", Input: explicit(map[string]int{"L00.qkv.s003": 4})},
		{Name: "rotation", Input: explicit(map[string]int{"qkv": 6})},
		{Name: "o apart from down", Input: explicit(map[string]int{"o": 1, "embed": 1})},
		{Name: "no split, no part", Input: explicit(map[string]int{"part": 1})},
		{Name: "o apart from embed", Input: explicit(map[string]int{"o": 1, "down": 1})},
	}, func(v any) error {
		s := lowered(t, goldenCases(t)["tiny"], "import")
		s.Config = v.(ir.ScheduleConfig)
		for _, pass := range []Pass{Lower, Fuse, Tile, Assign} {
			if err := pass.Run(s); err != nil {
				return err
			}
		}
		return nil
	})
}
