package serve

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
)

// A form is how one endpoint writes an answer: as the events of a stream, or whole.
type form interface {
	opening() []event // before anything is said
	piece(d delta) []event
	closing(finish string, cost usage) []event
	failed(e *apiError) []event // in the place of what is left, closing included
	whole(all []delta, cost usage) any
}

// usage is what a request has cost, in tokens.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`

	Details promptDetails `json:"prompt_tokens_details"`
}

type promptDetails struct {
	Cached int `json:"cached_tokens"` // whose rows an earlier request has left in the cache
}

// fits checks that a prompt can be decoded. param is the field that it comes from.
func (s *Server) fits(param string, prompt []int) error {
	limits := s.engine.Limits()
	if len(prompt) == 0 {
		return invalid(param, "the prompt has no tokens, and this tokenizer adds none; want some text")
	}
	if len(prompt) > limits.MaxSeq {
		e := invalid(param, "the prompt has %d tokens, and this model's context has %d positions", len(prompt),
			limits.MaxSeq)
		e.code = "context_length_exceeded"
		return e
	}
	for _, id := range prompt {
		if id < 0 || id >= limits.Vocab {
			return invalid(param, "token %d of the prompt is not in the model's vocabulary, which has ids from 0 to %d",
				id, limits.Vocab-1)
		}
	}
	return nil
}

// complete decodes behind a prompt and answers in a form.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, req *request, prompt []int, f form) {
	rec := recordOf(r)
	g := &generation{ctx: r.Context(), asked: rec.start, prompt: prompt,
		most: s.engine.Limits().MaxSeq - len(prompt) + 1, choice: req.options, record: rec, out: newOutbox(),
		metrics: s.metrics, text: newWriter(s.tokenizer, prompt, req), until: req.until}
	if req.form != nil {
		g.form = req.form.Begin(s.eos...)
	}
	if req.most > 0 {
		g.most = min(g.most, req.most)
	}
	if !req.ignoreEOS {
		g.ends = s.eos
	}
	if !req.seeded {
		var seed [8]byte
		rand.Read(seed[:]) // never fails
		g.choice.Seed = binary.LittleEndian.Uint64(seed[:])
	}
	rec.asks(len(prompt), req.stream)
	if err := s.scheduler.submit(g); err != nil {
		refuse(w, r, err)
		return
	}
	defer s.scheduler.leave(g)
	var err error
	if req.stream {
		err = s.stream(w, r, g, f)
	} else {
		err = s.whole(w, r, g, f)
	}
	if err != nil && r.Context().Err() == nil {
		refuse(w, r, err)
	}
}

// whole answers when the answer is complete.
func (s *Server) whole(w http.ResponseWriter, r *http.Request, g *generation, f form) error {
	var all []delta
	err := g.out.follow(r.Context(), func(d delta) (bool, error) {
		all = append(all, d)
		return false, nil
	}, s.pingEvery, nil)
	if err != nil {
		return err
	}
	send(w, http.StatusOK, "application/json", marshal(f.whole(all, g.record.usage())))
	return nil
}

// marshal writes JSON without escapes for what only HTML minds.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("an answer cannot be written as JSON: %v", err)) // its numbers are finite
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
