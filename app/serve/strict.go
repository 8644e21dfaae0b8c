package serve

import (
	"errors"
	"fmt"

	"amkc/text/chat"
	"amkc/text/grammar"
	"amkc/text/jinja"
	"amkc/text/reply"
)

// hold holds each call of an answer to its schema, as tools that are strict ask for, and a format alongside tools:
// where a call begins, nothing else than one of the tools' goes on.
func (s *Server) hold(p *chatPrompt, c *chat.Conversation) error {
	hold := s.reply.Hold
	if p.typed {
		hold = s.reply.HoldAlone
	}
	held, err := hold(c, chat.Options{Now: s.now()}, p.text, p.tools.All())
	var refused *jinja.Error
	switch {
	case p.typed && (errors.Is(err, reply.ErrNotForced) || errors.Is(err, reply.ErrNotHeld)):
		return unsupported("tools", "tools alongside a format of the answer are not supported for this model: %v; "+
			"want one of them", err)
	case p.typed && errors.As(err, &refused):
		return unsupported("tools", "tools alongside a format of the answer are not supported here: the chat template "+
			"does not format a call after the messages: %v; want one of them", err)
	case errors.Is(err, reply.ErrNotForced), errors.Is(err, reply.ErrNotHeld):
		return unsupported("tools", "strict is not supported for this model: %v, so that its calls cannot follow "+
			"their schemas; want strict false, or none", err)
	case errors.As(err, &refused):
		return unsupported("tools", "strict is not supported here: the chat template does not format a call after "+
			"the messages: %v; want strict false, or none", err)
	}
	p.held = held
	return err
}

// heldGrammar is what an answer whose calls are held may be. answer is the schema of one without calls; nil: that may
// be anything.
func (s *Server) heldGrammar(p *chatPrompt, answer []byte) (*grammar.Grammar, error) {
	vocabulary, err := s.vocabulary()
	if err != nil {
		return nil, unsupported("tools", "strict is not supported for this model: %v; want strict false, or none", err)
	}
	h := p.held
	of := grammar.Calls{Mark: h.Mark, Never: h.Never, Prose: h.Prose, Within: h.Within, Separators: h.Separators,
		Again: h.Again, Open: h.Open, Close: h.Close, Thinking: h.Thinking, First: h.First, Closers: h.Closers,
		Answer: answer, AnswerAt: "the schema of the answer:"}
	for i, tool := range p.tools.All() {
		o := option(tool, h.Before[i])
		o.After = h.After
		if !tool.Strict {
			o.Schema = anyObject
		}
		of.Options = append(of.Options, o)
	}
	g, err := s.grammars.of("calls", of, func() (*grammar.Grammar, error) {
		of.Specials = s.specials()
		return grammar.WithCalls(vocabulary, of)
	})
	var refused *grammar.Error
	switch {
	case !errors.As(err, &refused):
	case p.typed:
		return nil, schemaFault("tools", refused, "a format alongside tools holds calls to their schemas: %s")
	default:
		return nil, schemaFault("tools", refused, "strict holds calls to the schemas of tools: %s; want strict false, "+
			"or none")
	}
	return g, err
}

// withoutStrict is a tool as the template gets it: that it is strict is not for the model to know.
func withoutStrict(tool *jinja.Dict) (*jinja.Dict, error) {
	out := &jinja.Dict{}
	for _, key := range tool.Keys() {
		member, _ := tool.Get(key)
		function, is := member.(*jinja.Dict)
		switch {
		case key == "function" && is:
			inner, err := withoutStrict(function)
			if err != nil {
				return nil, err
			}
			member = inner
		case key == "strict":
			if _, is := member.(bool); !is && member != nil {
				return nil, errors.New("strict is not as expected; want true or false")
			}
			continue
		}
		out.Set(key, member)
	}
	return out, nil
}

// anyObject is the schema of unconstrained arguments.
var anyObject = []byte(`{"type": "object"}`)

// option is a call of a tool for a grammar, after some text.
func option(tool reply.Tool, before string) grammar.Option {
	schema := []byte(tool.Parameters)
	if schema == nil || string(schema) == "null" {
		schema = anyObject
	}
	return grammar.Option{Before: before, Schema: schema, At: fmt.Sprintf("parameters of %q:", value{}.cut(tool.Name))}
}

// specialTexts are the texts of special tokens in answers with calls: those that belong to calls and thoughts are
// shown, and others are not.
func (s *Server) specialTexts() map[int]string {
	all := map[int]string{}
	for id := range s.engine.Limits().Vocab {
		if s.tokenizer.IsSpecial(id) {
			all[id] = ""
		}
	}
	for _, id := range s.shown(true) {
		all[id] = string(s.tokenizer.Bytes(id))
	}
	return all
}
