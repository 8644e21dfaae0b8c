package serve

import (
	"encoding/json"
	"strings"
)

// A choiceForm is how an endpoint writes the choices of an answer: of a stream's chunks, and of a whole answer.
type choiceForm interface {
	names() (id, chunk, whole string) // the prefix of ids, and the objects
	opening() any                     // the first choice of a stream; nil: none
	piece(text string, tokens []located) []any
	closing(finish string) []any
	whole(text string, tokens []located, finish string) any
}

// choices is the form of answers that are lists of choices.
type choices struct {
	of           []choiceForm // by their index
	message      message
	chunk, full  string // objects
	includeUsage bool   // in a stream
}

// message is what all such answers have, whole ones and chunks.
type message struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Choices []any  `json:"choices"`
	Usage   any    `json:"usage,omitempty"`
}

func (s *Server) choices(req *request, of ...choiceForm) *choices {
	id, chunk, full := of[0].names()
	return &choices{of, message{ID: s.newID(id), Created: s.now().Unix(), Model: req.model}, chunk, full,
		req.includeUsage}
}

func (c *choices) opening(answer int) []event {
	if first := c.of[answer].opening(); first != nil {
		return c.events(first)
	}
	return nil
}

func (c *choices) piece(d delta) []event { return c.events(c.of[d.answer].piece(d.text, d.tokens)...) }

func (c *choices) closing(answer int, finish, _ string) []event {
	return c.events(c.of[answer].closing(finish)...)
}

func (c *choices) ending(cost usage) (all []event) {
	if c.includeUsage {
		all = append(all, c.event([]any{}, cost))
	}
	return append(all, event{data: []byte("[DONE]")})
}

// events are chunks with a choice each.
func (c *choices) events(all ...any) (events []event) {
	for _, choice := range all {
		var cost any
		if c.includeUsage {
			cost = json.RawMessage("null")
		}
		events = append(events, c.event([]any{choice}, cost))
	}
	return events
}

func (c *choices) event(all []any, cost any) event {
	m := c.message
	m.Object, m.Choices, m.Usage = c.chunk, all, cost
	return event{data: marshal(m)}
}

func (c *choices) ping() []event { return nil }

func (c *choices) failed(e *apiError) []event { return []event{{data: e.body()}} }

func (c *choices) whole(all []delta, cost usage) any {
	type answer struct {
		text   strings.Builder
		tokens []located
		finish string
	}
	answers := make([]answer, len(c.of))
	for _, d := range all {
		a := &answers[d.answer]
		a.text.WriteString(d.text)
		a.tokens = append(a.tokens, d.tokens...)
		a.finish = d.finish
	}
	m := c.message
	m.Object, m.Usage = c.full, cost
	for i := range answers {
		a := &answers[i]
		m.Choices = append(m.Choices, c.of[i].whole(a.text.String(), a.tokens, a.finish))
	}
	return m
}
