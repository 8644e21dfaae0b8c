package reply

import (
	"bytes"
	"encoding/json"
	"strings"

	"amkc/runtime/infile"
)

// plausible reports whether a text may be the name of a tool.
func plausible(name string) bool {
	return name != "" && !strings.ContainsAny(name, spaces+"\"'`{}<>[]()=,")
}

// arguments reads an object that is the arguments of a call.
func arguments(name, body string, _ *Tools) []Call {
	var fields map[string]json.RawMessage
	if err := infile.Unmarshal([]byte(body), &fields); err != nil || fields == nil {
		return nil
	}
	return []Call{{name, compact(body)}}
}

// objects reads an object with a name and arguments, or a list of them.
func objects(_, body string, _ *Tools) []Call { return readObjects(body, false) }

// wholeObjects reads those that say their arguments.
func wholeObjects(_, body string, _ *Tools) []Call { return readObjects(body, true) }

func readObjects(body string, whole bool) []Call {
	return each(body, func(raw json.RawMessage) (c Call, ok bool) {
		var object struct {
			Name       string          `json:"name"`
			ToolName   string          `json:"tool_name"` // of Command R
			Arguments  json.RawMessage `json:"arguments"`
			Parameters json.RawMessage `json:"parameters"`
			Function   json.RawMessage `json:"function"` // as the API has it
		}
		if err := infile.Unmarshal(raw, &object); err != nil {
			return c, false
		}
		if object.Name == "" && object.ToolName == "" && object.Function != nil {
			if infile.Unmarshal(object.Function, &object) != nil {
				return c, false
			}
		}
		if c.Name = object.Name; c.Name == "" {
			c.Name = object.ToolName
		}
		given := object.Arguments
		if given == nil {
			given = object.Parameters
		}
		switch {
		case given == nil || string(given) == "null":
			c.Arguments = "{}"
		case json.Unmarshal(given, &c.Arguments) == nil: // JSON in a string already
		default:
			c.Arguments = compact(string(given))
		}
		return c, c.Name != "" && (given != nil || !whole)
	})
}

// keyed reads an object with one key, the name, whose value is the arguments, or a list of them.
func keyed(_, body string, _ *Tools) []Call {
	return each(body, func(raw json.RawMessage) (c Call, ok bool) {
		var object map[string]json.RawMessage
		if err := infile.Unmarshal(raw, &object); err != nil || len(object) != 1 {
			return c, false
		}
		for name, given := range object {
			c = Call{name, compact(string(given))}
		}
		return c, c.Name != "" && strings.HasPrefix(c.Arguments, "{")
	})
}

// each reads a value, or the values of a list. Without any there is no call.
func each(body string, read func(json.RawMessage) (Call, bool)) (calls []Call) {
	body = strings.Trim(body, spaces)
	var list []json.RawMessage
	if strings.HasPrefix(body, "[") {
		if err := infile.Unmarshal([]byte(body), &list); err != nil {
			return nil
		}
	} else {
		list = []json.RawMessage{json.RawMessage(single(body))}
	}
	for _, raw := range list {
		call, ok := read(raw)
		if !ok {
			return nil
		}
		calls = append(calls, call)
	}
	return calls
}

// single takes the second brace off an object: the prompt of Qwen2.5 shows two, and small models write what they see.
func single(body string) string {
	if !strings.HasPrefix(body, "{{") {
		return body
	}
	var s scan
	if s.value([]byte(body[1:]), false) == finished {
		return body[1 : 1+s.at]
	}
	return body
}

// compact is JSON without spaces, which the caller has found to be valid.
func compact(text string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return text
	}
	return b.String()
}
