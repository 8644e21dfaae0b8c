package serve

import (
	"crypto/sha256"
	"errors"
	"slices"
	"sync"

	"amkc/text/grammar"
)

// responseFormat reads what an answer of chat completions has to be.
func responseFormat(s *Server, r *request, v value) error { return s.format(r, v, "json_schema") }

// format reads what an answer has to be: text, an object in JSON, or what a schema describes. The latter is in a member
// of its own, or alongside the type if nested is empty.
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
	if kind == "json_object" {
		r.formSchema = anyObject
		r.form, err = s.grammars.of(kind, nil, func() (*grammar.Grammar, error) {
			return grammar.Object(vocabulary), nil
		})
		return err
	}
	r.form, err = s.schema(vocabulary, at, described)
	r.formSchema = described["schema"].raw
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
		return nil, schemaFault(at+".schema", refused, "the schema: %s")
	}
	return g, err
}

// grammars keeps those of the last requests, with what has been found of them: which tokens may follow takes tens of
// milliseconds to find for a large vocabulary, and clients send the same tools and schemas again and again.
type grammars struct {
	mu   sync.Mutex
	last []keptGrammar // the one that was used last in front
}

type keptGrammar struct {
	digest [sha256.Size]byte // of what it is of
	*grammar.Grammar
}

// mostGrammars are kept. One may come to 512 masks, which are 8 MB for 2^17 tokens.
const mostGrammars = 4

// of returns the grammar of something of a kind, which has to be all that it depends on besides the model.
func (k *grammars) of(kind string, what any, make func() (*grammar.Grammar, error)) (*grammar.Grammar, error) {
	digest := sha256.Sum256(marshal([]any{kind, what}))
	if g := k.used(digest, nil); g != nil {
		return g, nil
	}
	g, err := make()
	if err != nil {
		return nil, err
	}
	return k.used(digest, g), nil
}

// used puts a grammar in front: the one that is there, or a new one, if that is not nil.
func (k *grammars) used(digest [sha256.Size]byte, g *grammar.Grammar) *grammar.Grammar {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := slices.IndexFunc(k.last, func(kept keptGrammar) bool { return kept.digest == digest })
	switch {
	case at >= 0:
		g = k.last[at].Grammar
		k.last = slices.Delete(k.last, at, at+1)
	case g == nil:
		return nil
	}
	k.last = slices.Insert(k.last, 0, keptGrammar{digest, g})
	k.last = k.last[:min(len(k.last), mostGrammars)]
	return g
}
