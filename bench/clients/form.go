package clients

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// formKind is the kind of questions whose answers have a form.
const formKind = 12

// toolKind is the kind of those that have the form, or are a call of a tool.
const toolKind = 14

// toolSchema is that of the arguments.
const toolSchema = `{"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], ` +
	`"additionalProperties": false}`

// formed are the fields that ask for the form, of a greedy answer and of drawn ones. Some of its texts are of few
// tokens, and some are cut.
func formed(i int) string {
	const form = `, "response_format": {"type": "json_schema", "json_schema": {"name": "form", "schema": {` +
		`"type": "object", "properties": {"a": {"enum": [1, 2, true]}, "b": {"type": "string"}}, "required": ["a"], ` +
		`"additionalProperties": false}}}`
	return form + []string{`, "temperature": 0`, `, "temperature": 0.9, "seed": 12`,
		`, "temperature": 1.2, "seed": 13, "logprobs": true`}[i%3]
}

// checkCall is an error where an answer is neither calls of the tool, nor as [checkForm] wants it, nor the beginning of
// either that was cut.
func checkCall(a Answer) error {
	if a.Finish == "length" { // a call that was cut is a text
		return nil
	}
	if a.Finish != "tool_calls" && a.Finish != "tool_use" {
		return checkForm(a)
	}
	for _, call := range strings.Split(strings.TrimPrefix(a.Text, callMark), callMark) {
		var arguments map[string]any
		object, named := strings.CutPrefix(call, "f")
		if !named || json.Unmarshal([]byte(object), &arguments) != nil || len(arguments) != 1 ||
			!slices.Contains([]any{1., 2.}, arguments["a"]) {
			return fmt.Errorf("%q is not calls of f with 1 or 2", a.Text)
		}
	}
	return nil
}

// checkForm is an error where an answer is neither a text of the form nor the beginning of one that was cut.
func checkForm(a Answer) error {
	var form map[string]any
	switch a.Finish {
	case "length":
		// Nothing stands between these tokens but white space.
		const begin = `{"a":`
		packed := strings.Join(strings.Fields(a.Text), "")
		if n := min(len(packed), len(begin)); packed[:n] == begin[:n] {
			return nil
		}
	case "stop":
		if json.Unmarshal([]byte(a.Text), &form) != nil || !slices.Contains([]any{1., 2., true}, form["a"]) {
			break
		}
		_, text := form["b"].(string)
		if len(form) == 1 || len(form) == 2 && text {
			return nil
		}
	}
	return fmt.Errorf("%q, which ends by %q, is not a text of the form", a.Text, a.Finish)
}
