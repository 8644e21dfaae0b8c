package cli

import (
	"bytes"
	"fmt"
	"text/tabwriter"

	"amkc/ir"
	"amkc/passes/loops"
)

// loopsText lists the loops of a program: the range of each, its stages, and a line for each parameter of its body
// with how the iterations use it and where it is.
func loopsText(p *ir.Program) ([]byte, error) {
	loops, err := loops.Describe(p)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, u := range loops {
		l := u.Loop
		fmt.Fprintf(&out, "variant %s loop %s for %d..%d", u.Variant, l.Name, l.First, l.Last())
		if l.Step > 1 {
			fmt.Fprintf(&out, " by %d", l.Step)
		}
		out.WriteString("\nstages")
		for _, st := range l.Body {
			out.WriteString(" " + st.Name)
		}
		out.WriteString("\n")
		table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
		for _, param := range u.Params {
			fmt.Fprintf(table, "  %s\t%v\t%s\n", param.Name, param.Usage, param.Place)
		}
		if err := table.Flush(); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}
