package serve

import (
	"errors"
	"slices"

	"amkc/runtime/grammar"
	"amkc/runtime/infile"
)

// responseFormat reads what an answer of chat completions has to be.
func responseFormat(s *Server, r *request, v value) error { return s.format(r, v, "json_schema") }

// format reads what an answer has to be: text, an object in JSON, or what a schema describes. The latter is in a member
// of its own, or beside the type if nested is empty.
func (s *Server) format(r *request, v value, nested string) error {
	all, err := members(v.raw)
	if err != nil {
		return invalid(v.name, "%s is not an object", v.name)
	}
	kind, err := (value{v.name + ".type", all["type"].raw}).text()
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"text", "json_object", "json_schema"}, kind) {
		return unsupported(v.name, "%s of type %q is not supported; want text, json_object, json_schema, or none",
			v.name, v.cut(kind))
	}
	delete(all, "type")
	at, described := v.name, map[string]value{}
	switch {
	case kind == "json_schema" && nested == "":
		all, described = described, all
	case kind == "json_schema":
		at += "." + nested
		if described, err = members(all[nested].raw); err != nil {
			return invalid(at, "%s is not an object with a name and a schema", at)
		}
		delete(all, nested)
	}
	for name := range all {
		return unknown(v.name + "." + v.cut(name))
	}
	if kind == "text" {
		return nil
	}
	vocabulary, err := s.vocabulary()
	if err != nil {
		return unsupported(v.name, "%s of type %s is not supported for this model: %v", v.name, kind, err)
	}
	r.formField = v.name
	if kind == "json_object" {
		r.form, err = s.grammars.of(kind, nil, func() (*grammar.Grammar, error) {
			return grammar.Object(vocabulary), nil
		})
		return err
	}
	r.form, err = s.schema(vocabulary, at, described)
	return err
}

// schema reads a json_schema: a schema, its name, and what makes no difference. It is always followed strictly. at is
// where it stands in the request.
func (s *Server) schema(v *grammar.Vocabulary, at string, all map[string]value) (*grammar.Grammar, error) {
	for name, field := range all {
		var err error
		field.name = at + "." + field.cut(name)
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
		return nil, invalid(at+".schema", "%s has no schema", at)
	}
	g, err := s.grammars.of("schema", text.raw, func() (*grammar.Grammar, error) {
		return grammar.Schema(v, text.raw)
	})
	var refused *grammar.Error
	if errors.As(err, &refused) {
		return nil, unsupported(at+".schema", "the schema: %s", infile.Reason(refused))
	}
	return g, err
}
