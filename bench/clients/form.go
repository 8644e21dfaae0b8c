package clients

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// formKind is the kind of questions whose answers have a form.
const formKind = 12

// formed are the fields that ask for the form, of a greedy answer and of drawn ones. Some of its texts are of few
// tokens, and some are cut.
func formed(i int) string {
	const form = `, "response_format": {"type": "json_schema", "json_schema": {"name": "form", "schema": {` +
		`"type": "object", "properties": {"a": {"enum": [1, 2, true]}, "b": {"type": "string"}}, "required": ["a"], ` +
		`"additionalProperties": false}}}`
	return form + []string{`, "temperature": 0`, `, "temperature": 0.9, "seed": 12`,
		`, "temperature": 1.2, "seed": 13, "logprobs": true`}[i%3]
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
