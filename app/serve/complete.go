package serve

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"amkc/text/sampling"
)

// A form is how one endpoint writes an answer: as the events of a stream, or whole.
type form interface {
	opening(answer int) []event // before anything is said
	piece(d delta) []event
	closing(answer int, finish, stop string) []event
	ending(cost usage) []event  // after all answers
	ping() []event              // while there is nothing to say; none: a comment
	failed(e *apiError) []event // instead of what is left, closing and ending included
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

// fits checks that a prompt, which has no more tokens than the context has positions, can be decoded. param is the
// field that it comes from.
func (s *Server) fits(param string, prompt []int) error {
	limits := s.engine.Limits()
	if len(prompt) == 0 {
		return invalid(param, "the prompt has no tokens, and this tokenizer adds none; want some text")
	}
	for _, id := range prompt {
		if id < 0 || id >= limits.Vocab {
			return invalid(param, "token %d of the prompt is not in the model's vocabulary, which has ids from 0 to %d",
				id, limits.Vocab-1)
		}
	}
	return nil
}

// tooLong is what is wrong with a prompt that has more tokens than the context has positions; 0: it was not encoded so
// far that their number is known.
func (s *Server) tooLong(param string, tokens int) *apiError {
	most := s.engine.Limits().MaxSeq
	has := fmt.Sprintf("%d tokens", tokens)
	if tokens == 0 {
		has = fmt.Sprintf("more than %d tokens, after which encoding stopped", most)
	}
	// In OpenAI's words, by which litellm and others know the error.
	e := invalid(param, "this model's maximum context length is %d tokens, and the prompt has %s", most, has)
	e.code = "context_length_exceeded"
	return e
}

// complete decodes after prompts, as many answers to each as the request asks for, and answers in a form.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, req *request, prompts [][]int, f form) {
	n, most := len(prompts)*req.answers, s.scheduler.most()
	err := s.scheduler.check(n)
	if n > most {
		err = invalid("n", "the request asks for %d answers, and this server decodes and queues %d at most; want "+
			"fewer in a request", n, most)
	}
	if err != nil {
		refuse(w, r, err)
		return
	}
	rec := recordOf(r)
	ctx, leave := context.WithCancel(r.Context()) // so that nothing goes on when one answer has failed
	defer leave()
	tokens := 0
	for _, prompt := range prompts {
		tokens += len(prompt)
	}
	rec.asks(tokens, n, req.stream)
	all, err := s.scheduler.submit(n, false, func() []*generation { return s.generations(ctx, rec, req, prompts) })
	if err != nil {
		refuse(w, r, err)
		return
	}
	defer s.scheduler.leave(all...)
	if out := all[0].out; req.stream {
		err = s.stream(w, r, out, f)
	} else {
		err = s.whole(w, r, out, f)
	}
	if err != nil && r.Context().Err() == nil {
		refuse(w, r, err)
	}
}

// generations are the answers that a request asks for: n of each prompt, whose seeds follow each other.
func (s *Server) generations(ctx context.Context, rec *record, req *request, prompts [][]int) (all []*generation) {
	if !req.seeded {
		var seed [8]byte
		rand.Read(seed[:]) // never fails
		req.options.Seed = binary.LittleEndian.Uint64(seed[:])
	}
	out := newOutbox(len(prompts) * req.answers)
	ends := slices.Clone(req.stopIDs)
	if !req.ignoreEOS {
		ends = append(ends, s.eos...)
	}
	going := s.going(req, ends)
	var first sampling.Mask
	for _, prompt := range prompts {
		before := req.decoder(s.tokenizer, prompt)
		for i := range req.answers {
			g := &generation{ctx: ctx, asked: rec.start, answer: len(all), again: i > 0, prompt: prompt,
				most: s.engine.Limits().MaxSeq - len(prompt) + 1, choice: req.options, record: rec, out: out,
				ends: ends, least: req.least, going: going, metrics: s.metrics, text: newWriter(before, req),
				echo: req.echo && req.logprobs()}
			g.choice.Seed += uint64(i)
			if g.choice.LogProbs = -1; req.logprobs() {
				g.scorer = newScorer(req.options.LogProbs, s.maxRows, s.scoring, func(err error) {
					s.log.Error("log-probabilities failed", "request_id", rec.id, "error", err.Error())
					out.close(errInternal)
				}, s.scheduler.tell)
			}
			if req.form != nil {
				state := req.form.Begin(s.eos...)
				if first == nil { // which all of them begin with
					first = s.firstMask(ctx, state)
				}
				g.form = newMaskWorker(state, first, s.maskRoom, s.scheduler.tell)
			}
			if req.until != nil {
				g.until = req.until()
			}
			if req.most >= 0 {
				g.most = min(g.most, req.most)
			}
			all = append(all, g)
		}
	}
	return all
}

// going are the tokens among which a text goes on, where it has a least number of them: all but those that end it.
func (s *Server) going(req *request, ends []int) sampling.Mask {
	if req.least == 0 || len(ends) == 0 {
		return nil
	}
	vocab := s.engine.Limits().Vocab
	m := sampling.NewMask(vocab)
	for id := range vocab {
		if !slices.Contains(ends, id) {
			m[id/64] |= 1 << (id % 64)
		}
	}
	return m
}

// whole answers when the answer is complete.
func (s *Server) whole(w http.ResponseWriter, r *http.Request, out *outbox, f form) error {
	var all []delta
	err := out.follow(r.Context(), func(deltas []delta) (bool, error) {
		all = append(all, deltas...)
		return false, nil
	}, s.pingEvery, nil)
	if err != nil {
		return err
	}
	send(w, http.StatusOK, "application/json", marshal(f.whole(all, recordOf(r).usage())))
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
