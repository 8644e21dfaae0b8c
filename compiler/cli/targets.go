package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"amkc/ir"
)

func targetsVerb() verb {
	return verb{
		name:    "targets",
		summary: "list the GPUs that --target knows by name",
		details: "Upper and lower case are the same. Any other GPU is named by its architecture and its number of " +
			"multiprocessors:\n--target sm_89 --num-sms 58.",
		run: runTargets,
	}
}

func runTargets(c *call) error {
	type row struct {
		ir.Target
		Card string `json:"card"` // which product, as the same name is sold in several sizes
	}
	var rows []row
	for _, t := range ir.Targets {
		rows = append(rows, row{t, ir.Cards[t.Name]})
	}
	c.payload = struct {
		Targets []row `json:"targets"`
	}{rows}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "name\tarch\tSMs\tshared memory\tL2\tmemory\tbandwidth\tfeatures\tcard")
	for _, t := range rows {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d KiB\t%d MiB\t%d GiB\t%g GB/s\t%s\t%s\n",
			t.Name, t.Arch, t.SMs, t.SMemOptin>>10, t.L2Bytes>>20, t.HBMBytes>>30, t.HBMGBs, features(&t.Target),
			t.Card)
	}
	w.Flush()
	return c.printf("%s", b.String())
}

// features names the switches of a target that are on.
func features(t *ir.Target) string {
	var on []string
	for _, f := range []struct {
		on   bool
		name string
	}{{t.BulkCopy, "bulk-copy"}, {t.AsyncCopy, "async-copy"}, {t.TensorCores, "mma16816"}} {
		if f.on {
			on = append(on, f.name)
		}
	}
	if len(on) == 0 {
		return "-"
	}
	return strings.Join(on, ",")
}
