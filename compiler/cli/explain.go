package cli

import (
	"strings"

	"amkc/ir/diag"
)

func explainVerb() verb {
	return verb{
		name: "explain", synopsis: "[CODE...]", max: -1,
		summary: "print what a diagnostic code means and what to do about it",
		details: "Without a code, all codes are listed.",
		run:     runExplain,
	}
}

// explained is one code in JSON.
type explained struct {
	Code  string `json:"code"`
	Title string `json:"title"`
	Doc   string `json:"doc"`
}

func runExplain(c *call) error {
	codes := diag.Codes()
	if len(c.args) > 0 {
		codes = nil
	}
	for _, id := range c.args {
		code := diag.Lookup(strings.ToUpper(id))
		if code == nil {
			return c.usage("there is no code %q; amkc explain lists the codes", id)
		}
		codes = append(codes, code)
	}
	list := make([]explained, len(codes))
	for i, code := range codes {
		list[i] = explained{code.ID, code.Title, code.Doc}
	}
	c.payload = struct {
		Codes []explained `json:"codes"`
	}{list}
	for i, code := range codes {
		var err error
		switch {
		case len(c.args) == 0:
			err = c.printf("%s  %s\n", code.ID, code.Title)
		case i > 0:
			err = c.printf("\n%s: %s\n\n%s\n", code.ID, code.Title, code.Doc)
		default:
			err = c.printf("%s: %s\n\n%s\n", code.ID, code.Title, code.Doc)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
