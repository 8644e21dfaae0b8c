package reply

import (
	"encoding/json"
	"slices"
	"strings"

	"amkc/runtime/infile"
)

// Tools are the tools of a request: their names, and the types of their parameters.
type Tools struct{ all []Tool }

// A Tool is a function that a model may call.
type Tool struct {
	Name       string
	Parameters json.RawMessage // a schema; nil if none is said
	Strict     bool            // calls are to be constrained to that
	properties map[string]json.RawMessage
}

// ParseTools reads tools in the form of OpenAI's API, or without the object around a function. Other values are
// ignored, and left to the template.
func ParseTools(data []byte) *Tools {
	var list []struct {
		declared
		Function *declared `json:"function"`
	}
	t := &Tools{}
	if infile.Unmarshal(data, &list) != nil {
		return t
	}
	for _, item := range list {
		d := item.declared
		if item.Function != nil {
			d = *item.Function
		}
		if d.Name == "" {
			continue
		}
		tool := Tool{Name: d.Name, Parameters: d.Parameters, Strict: string(d.Strict) == "true"}
		var schema struct{ Properties map[string]json.RawMessage }
		if infile.Unmarshal(d.Parameters, &schema) == nil {
			tool.properties = schema.Properties
		}
		t.all = append(t.all, tool)
	}
	return t
}

type declared struct {
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
	Strict     json.RawMessage `json:"strict"`
}

// All returns the tools.
func (t *Tools) All() []Tool { return t.all }

// NamedIn reports whether a prompt names all tools more often than a prompt without tools does.
func (t *Tools) NamedIn(prompt, without string) bool {
	return !slices.ContainsFunc(t.all, func(tool Tool) bool {
		return strings.Count(prompt, tool.Name) <= strings.Count(without, tool.Name)
	})
}

func (t *Tools) find(name string) *Tool {
	if t != nil {
		if i := slices.IndexFunc(t.all, func(tool Tool) bool { return tool.Name == name }); i >= 0 {
			return &t.all[i]
		}
	}
	return nil
}

func (t *Tools) has(name string) bool { return t.find(name) != nil }

// begins reports whether the name of a tool begins with a text.
func (t *Tools) begins(text string) bool {
	return t != nil && slices.ContainsFunc(t.all, func(tool Tool) bool { return strings.HasPrefix(tool.Name, text) })
}

// types are those that a parameter may have by its schema, as far as that says so; none: any.
func (t *Tools) types(name, parameter string) []string {
	tool := t.find(name)
	if tool == nil {
		return nil
	}
	return schemaTypes(tool.properties[parameter], 0)
}

func schemaTypes(schema json.RawMessage, depth int) (all []string) {
	var s struct {
		Type         json.RawMessage
		Enum         []json.RawMessage
		Const        json.RawMessage
		AnyOf, OneOf []json.RawMessage
	}
	if depth > maxDepth || infile.Unmarshal(schema, &s) != nil {
		return nil
	}
	var one string
	switch {
	case s.Type != nil:
		if json.Unmarshal(s.Type, &one) == nil {
			return []string{one}
		}
		_ = json.Unmarshal(s.Type, &all) // of another form it says nothing
		return all
	case s.Enum != nil || s.Const != nil:
		for _, v := range append(s.Enum, s.Const) {
			if kind := kindOf(string(v)); kind != "" && !slices.Contains(all, kind) {
				all = append(all, kind)
			}
		}
		return all
	}
	for _, of := range append(s.AnyOf, s.OneOf...) {
		types := schemaTypes(of, depth+1)
		if types == nil {
			return nil // it may be anything
		}
		all = append(all, types...)
	}
	return all
}
