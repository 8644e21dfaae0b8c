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

// choices is the form of answers that are lists of choices, with one in them.
type choices struct {
	of           choiceForm
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

func (s *Server) choices(req *request, of choiceForm) *choices {
	id, chunk, full := of.names()
	return &choices{of, message{ID: s.newID(id), Created: s.now().Unix(), Model: s.model}, chunk, full,
		req.includeUsage}
}

func (c *choices) opening() []event {
	if first := c.of.opening(); first != nil {
		return c.events(first)
	}
	return nil
}

func (c *choices) piece(d delta) []event { return c.events(c.of.piece(d.text, d.tokens)...) }

func (c *choices) closing(finish string, cost usage) []event {
	all := c.events(c.of.closing(finish)...)
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

func (c *choices) failed(e *apiError) []event { return []event{{data: e.body()}} }

func (c *choices) whole(all []delta, cost usage) any {
	var text strings.Builder
	var tokens []located
	finish := ""
	for _, d := range all {
		text.WriteString(d.text)
		tokens = append(tokens, d.tokens...)
		finish = d.finish
	}
	m := c.message
	m.Object, m.Choices, m.Usage = c.full, []any{c.of.whole(text.String(), tokens, finish)}, cost
	return m
}
