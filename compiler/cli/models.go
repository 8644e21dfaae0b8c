package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"amkc/importers"
)

func modelsVerb() verb {
	return verb{
		name:    "models",
		summary: "list the families that amkc compiles or refuses",
		details: "A config is of the family that its model_type names. What runs on ref alone is proved and run by " +
			"the reference VM,\nand has no kernel yet. The GPUs that a family is checked on are those of its rows in " +
			"docs/results.",
		run: runModels,
	}
}

// familyRow and refusedRow are lines in JSON.
type familyRow struct {
	ModelType string   `json:"model_type"`
	Models    string   `json:"models"`
	RunsOn    []string `json:"runs_on"`
	GPUs      []string `json:"gpus"` // that rows of docs/results are of
}

type refusedRow struct {
	ModelType string `json:"model_type"`
	Why       string `json:"why"`
}

func runModels(c *call) error {
	var families []familyRow
	var refused []refusedRow
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "model_type\truns on\tchecked against\tmodels")
	for _, f := range importers.Families {
		row := familyRow{f.ModelType, f.Models, []string{"ref"}, append([]string{}, f.GPUs...)}
		if f.Emitted {
			row.RunsOn = append(row.RunsOn, "cuda")
		}
		families = append(families, row)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.ModelType, strings.Join(row.RunsOn, ","), f.CheckedAgainst(),
			f.Models)
	}
	w.Flush()
	fmt.Fprintf(&b, "\nRefused:\n")
	types, why := importers.Unmodelled()
	for _, name := range types {
		refused = append(refused, refusedRow{name, why[name]})
		fmt.Fprintf(w, "%s\t%s\n", name, why[name])
	}
	w.Flush()
	c.payload = struct {
		Families []familyRow  `json:"families"`
		Refused  []refusedRow `json:"refused"`
	}{families, refused}
	return c.printf("%s", b.String())
}
