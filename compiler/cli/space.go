package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"amkc/knobs"
	"amkc/search"
	"amkc/search/evaluate"
)

func spaceVerb() verb {
	m, all := &modelFlags{}, false
	return verb{
		name: "search space", synopsis: "MODEL [--target NAME] [--all-values]", min: 1, max: 1,
		summary: "list the knobs of a model, and values that matter",
		details: `
Compiles the model once for every value of every knob, with all other knobs at their defaults; weights are not read.
The list has the default and the values that make another build. Values that the model or the target does not allow
are listed with the reason, and those that make the build of another value with that value. amkc search varies what is
listed (docs/search.md); amkc search eval takes any value that the knob accepts. At the end are the knobs that make no
difference here, and those that no search varies. Of a large model, some values are not tried; they are listed.`,
		flags: func(set *pflag.FlagSet) {
			m.define(set, defaultTarget)
			set.BoolVar(&all, "all-values", false, "try all values, however large the model is")
		},
		run: func(c *call) error { return runSpace(c, m, all) },
	}
}

// spaceReport is the result of space in JSON.
type spaceReport struct {
	*search.Space
	ConfigSchema map[string]any `json:"config_schema"` // the JSON Schema of a configuration
}

func runSpace(c *call, m *modelFlags, all bool) error {
	if m.config != "" {
		return c.usage("--config sets knobs, and space lists what each would be on its own; want no --config")
	}
	m.configOnly = true
	opts, err := m.options(c, c.args[0])
	if err != nil {
		return err
	}
	ctx, cancel := interruptible()
	defer cancel()
	line := c.progress()
	work := evaluate.SpaceWork
	if all {
		work = 0
	}
	space, err := evaluate.Space(ctx, opts, work, line.Show)
	line.Clear()
	if err != nil {
		return err
	}
	c.payload = spaceReport{space, knobs.Schema()}
	return c.printf("%s", spaceText(space))
}

func spaceText(s *search.Space) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s: %d knobs\n", s.Model, s.Target, len(s.Knobs))
	if s.Left > 0 {
		fmt.Fprintf(&b, "%d values are left out, as the model is large; --all-values tries them\n", s.Left)
	}
	for _, k := range s.Knobs {
		order := ""
		if k.Order {
			order = "; order of additions"
		}
		fmt.Fprintf(&b, "%s (%s%s)\n    %s\n    values: %s\n    accepts: %s\n", k.Path, k.Region, order, k.Doc,
			valuesText(&k), k.Accepts)
		if len(k.Left) > 0 {
			fmt.Fprintf(&b, "    left out: %s\n", spelt(k.Left, func(v knobs.Value) string { return string(v) }))
		}
		for _, r := range k.Refused {
			fmt.Fprintf(&b, "    refused: %s: %s [%s]\n", r.Value, r.Reason.Msg, r.Reason.Code)
		}
		for _, same := range k.Same {
			fmt.Fprintf(&b, "    same: %s as %s\n", same.Value, same.As)
		}
	}
	if len(s.Idle) > 0 {
		fmt.Fprintf(&b, "not varied: %d knobs\n", len(s.Idle))
	}
	for _, k := range s.Idle {
		fmt.Fprintf(&b, "    %s: %s\n", k.Path, k.Why)
	}
	return b.String()
}

// valuesText lists the values of a knob, with brackets around the default.
func valuesText(k *search.Knob) string {
	return spelt(k.Values, func(v knobs.Value) string {
		if v == k.Default {
			return "[" + string(v) + "]"
		}
		return string(v)
	})
}

func spelt(values []knobs.Value, text func(knobs.Value) string) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = text(v)
	}
	return strings.Join(words, " ")
}
