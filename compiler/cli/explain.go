package cli

import (
	"fmt"
	"regexp"
	"strings"

	"amkc/ir/diag"
	"amkc/knobs"
)

func explainVerb() verb {
	return verb{
		name: "explain", synopsis: "[CODE|KNOB...]", max: -1,
		summary: "print what a diagnostic code means, or what a knob does",
		details: "A code is written in full or as its number: AMK4005, amk4005, 4005. Without one, all " +
			"codes are listed. A knob\nof the configuration is written with its group or without: " +
			"ring.pace, pace; a group alone (ring) stands\nfor its knobs, and knobs for all of them. " +
			"With --json, knobs adds the JSON Schema of a configuration.",
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

// guessCode names the codes with the nearest digits, if they are few, to what looks like a code.
func guessCode(id string) string {
	const list = "amkc explain lists the codes"
	var digits []string
	for _, code := range diag.Codes() {
		digits = append(digits, strings.TrimPrefix(code.ID, "AMK"))
	}
	return diag.Guess(codeDigits.FindStringSubmatch(id)[1], digits, list)
}

// explained is one code in JSON.
type explained struct {
	Code  string `json:"code"`
	Title string `json:"title"`
	Doc   string `json:"doc"`
}

// explanation is what the verb says: codes, knobs, and of all knobs the JSON Schema of a configuration as well.
type explanation struct {
	Codes  []explained         `json:"codes"`
	Knobs  []knobs.Description `json:"knobs,omitempty"`
	Schema map[string]any      `json:"config_schema,omitempty"`
}

// allKnobs is the argument that stands for every knob.
const allKnobs = "knobs"

func runExplain(c *call) error {
	e := explanation{Codes: []explained{}}
	c.payload = &e
	if len(c.args) == 0 {
		for _, code := range diag.Codes() {
			e.Codes = append(e.Codes, explained{code.ID, code.Title, code.Doc})
			if err := c.printf("%s  %s\n", code.ID, code.Title); err != nil {
				return err
			}
		}
		return nil
	}
	var texts []string
	for _, id := range c.args {
		text, err := e.add(c, id)
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	if c.json {
		return nil // stdout is the result's
	}
	return c.print(strings.Join(texts, "\n"))
}

// add explains one argument, and returns the text of it.
func (e *explanation) add(c *call, id string) (string, error) {
	if code := findCode(id); code != nil {
		e.Codes = append(e.Codes, explained{code.ID, code.Title, code.Doc})
		return fmt.Sprintf("%s: %s\n\n%s\n", code.ID, code.Title, code.Doc), nil
	}
	found, known := knobs.Find(id)
	switch {
	case id == allKnobs:
		found, e.Schema = knobs.Describe(), knobs.Schema()
	case codeDigits.MatchString(id):
		return "", c.usage("there is no code %s; %s", typedWord(id), guessCode(id))
	case len(found) == 0:
		return "", c.usage("there is no code or knob %s; %s", typedWord(id), diag.Guess(id, known,
			"want a code like AMK4005 or 4005, or a knob like ring.pace; amkc explain lists the codes, and "+
				"amkc explain knobs the knobs"))
	}
	e.Knobs = append(e.Knobs, found...)
	texts := make([]string, len(found))
	for i, d := range found {
		texts[i] = knobText(&d)
	}
	return strings.Join(texts, "\n"), nil
}

func knobText(d *knobs.Description) string {
	var b strings.Builder
	b.WriteString(d.Name)
	if d.Also != "" {
		b.WriteString(", or " + d.Also)
	}
	fmt.Fprintf(&b, "\n    %s\n    accepts: %s\n    default: %s\n", d.Doc, d.Accepts, d.Default)
	if d.Order {
		b.WriteString("    order: it decides in which order sums are added up, and so the last bits of logits\n")
	}
	if d.Emitted != "" {
		fmt.Fprintf(&b, "    emitted: %s in schedule.h\n", d.Emitted)
	}
	return b.String()
}
