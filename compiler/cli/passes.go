package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"amkc/compiler"
)

func passesVerb() verb {
	return verb{
		name:    "passes",
		summary: "list the passes from checkpoint to build, in order",
		run:     runPasses,
	}
}

// passRow is one pass in JSON.
type passRow struct {
	Name  string   `json:"name"`
	Doc   string   `json:"doc"`
	After []string `json:"after"`
}

func runPasses(c *call) error {
	var rows []passRow
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, p := range compiler.Passes {
		rows = append(rows, passRow{p.Name, p.Doc, append([]string{}, p.After...)})
	}
	for _, s := range compiler.Steps {
		rows = append(rows, passRow{s.Name, s.Doc, s.After})
	}
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\n", r.Name, r.Doc)
	}
	w.Flush()
	c.payload = struct {
		Passes []passRow `json:"passes"`
	}{rows}
	return c.printf("%s", b.String())
}

// passNames returns the names of the passes that make the program, in order.
func passNames() []string {
	names := make([]string, len(compiler.Passes))
	for i, p := range compiler.Passes {
		names[i] = p.Name
	}
	return names
}
