package serve

import (
	"errors"
	"slices"

	"amkc/runtime/grammar"
	"amkc/runtime/infile"
)

// responseFormat reads what an answer has to be: text, an object in JSON, or what a schema describes.
func responseFormat(s *Server, r *request, v value) error {
	all, err := members(v.raw)
	if err != nil {
		return invalid(v.name, "response_format is not an object")
	}
	kind, err := (value{"response_format.type", all["type"].raw}).text()
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"text", "json_object", "json_schema"}, kind) {
		return unsupported(v.name, "response_format of type %q is not supported; want text, json_object, json_schema, "+
			"or none", v.cut(kind))
	}
	for name := range all {
		if name != "type" && (name != "json_schema" || kind != name) {
			return unknown("response_format." + v.cut(name))
		}
	}
	if kind == "text" {
		return nil
	}
	vocabulary, err := s.vocabulary()
	if err != nil {
		return unsupported(v.name, "response_format of type %s is not supported for this model: %v", kind, err)
	}
	if kind == "json_object" {
		r.form = grammar.Object(vocabulary)
		return nil
	}
	r.form, err = schema(vocabulary, value{"response_format.json_schema", all["json_schema"].raw})
	return err
}

// schema reads a json_schema: a schema, its name, and what makes no difference. It is always followed strictly.
func schema(v *grammar.Vocabulary, of value) (*grammar.Grammar, error) {
	all, err := members(of.raw)
	if err != nil {
		return nil, invalid(of.name, "%s is not an object with a name and a schema", of.name)
	}
	for name, field := range all {
		field.name = of.name + "." + of.cut(name)
		switch name {
		case "name", "description":
			_, err = field.text()
		case "strict":
			_, err = field.bool()
		case "schema":
		default:
			err = unknown(field.name)
		}
		if err != nil {
			return nil, err
		}
	}
	text, said := all["schema"]
	if !said {
		return nil, invalid(of.name+".schema", "%s has no schema", of.name)
	}
	g, err := grammar.Schema(v, text.raw)
	var refused *grammar.Error
	if errors.As(err, &refused) {
		return nil, unsupported(of.name+".schema", "the schema: %s", infile.Reason(refused))
	}
	return g, err
}
