package cli

import (
	"regexp"
	"strings"

	"amkc/ir/diag"
)

func explainVerb() verb {
	return verb{
		name: "explain", synopsis: "[CODE...]", max: -1,
		summary: "print what a diagnostic code means and what to do about it",
		details: "A code is written in full or as its number: AMK4005, amk4005, 4005. Without one, all " +
			"codes are listed.",
		run: runExplain,
	}
}

// codeDigits is a code as people write it: AMK4005, amk4005, 4005, or copied with its brackets.
var codeDigits = regexp.MustCompile(`(?i)^\[?(?:amk[-_ ]?)?([0-9]{1,8})\]?$`)

// findCode returns the code that is meant, or nil.
func findCode(id string) *diag.Code {
	m := codeDigits.FindStringSubmatch(id)
	if m == nil {
		return nil
	}
	return diag.Lookup("AMK" + m[1])
}

// guessCode names the codes with the nearest digits, if they are few.
func guessCode(id string) string {
	const list = "amkc explain lists the codes"
	m := codeDigits.FindStringSubmatch(id)
	if m == nil {
		return "want one like AMK4005 or 4005; " + list
	}
	var digits []string
	for _, code := range diag.Codes() {
		digits = append(digits, strings.TrimPrefix(code.ID, "AMK"))
	}
	return diag.Guess(m[1], digits, list)
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
		code := findCode(id)
		if code == nil {
			return c.usage("there is no code %s; %s", typedWord(id), guessCode(id))
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
