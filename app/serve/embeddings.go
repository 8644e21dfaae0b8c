package serve

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"net/http"
	"slices"
)

// maxInputs is how many inputs a request for embeddings may have, as OpenAI has it.
const maxInputs = 2048

// An embeddingRequest asks for the embedding of each of some inputs: the last hidden state of its last token, of length
// 1, as models that are trained for embeddings are used.
type embeddingRequest struct {
	inputs     []prompt
	model      string // the name that it calls the model by
	base64     bool
	dimensions int // the first ones of a hidden state
}

// An embedding is one of an answer.
type embedding struct {
	Object    string `json:"object"`
	Embedding any    `json:"embedding"` // numbers, or the base64 of their bytes
	Index     int    `json:"index"`
}

// embeddings computes those of the inputs one after the other, each of which waits for the engine like any request.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) {
	var req *embeddingRequest
	err := s.prepare(w, r, func(all map[string]value) (err error) {
		req, err = s.embeddingRequest(all)
		return err
	})
	if err != nil {
		refuse(w, r, err)
		return
	}
	type embeddingUsage struct {
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	}
	out := struct {
		Object string         `json:"object"`
		Data   []embedding    `json:"data"`
		Model  string         `json:"model"`
		Usage  embeddingUsage `json:"usage"`
	}{Object: "list", Model: req.model}
	rec := recordOf(r)
	defer s.scheduler.inParts()()
	for i, input := range req.inputs {
		state, err := s.state(r.Context(), rec, input.ids, i > 0)
		if err == nil {
			state, err = unit(state[:req.dimensions])
		}
		if err != nil {
			if r.Context().Err() == nil {
				refuse(w, r, err)
			}
			return
		}
		e := embedding{Object: "embedding", Embedding: state, Index: i}
		if req.base64 {
			e.Embedding = base64Of(state)
		}
		out.Data = append(out.Data, e)
		out.Usage.Prompt += len(input.ids)
	}
	out.Usage.Total = out.Usage.Prompt
	send(w, http.StatusOK, "application/json", marshal(out))
}

func (s *Server) embeddingRequest(all map[string]value) (*embeddingRequest, error) {
	hidden := s.engine.Limits().Hidden
	asked := s.asked()
	req := &embeddingRequest{dimensions: hidden}
	left, err := asked.read(s, all, map[string]field{
		"model": modelName, "user": tolerated,
		"encoding_format": func(_ *Server, _ *request, v value) error {
			form, err := v.text()
			if err != nil || form != "float" && form != "base64" {
				return v.unexpected(`"float" or "base64"`)
			}
			req.base64 = form == "base64"
			return nil
		},
		"dimensions": func(_ *Server, _ *request, v value) (err error) {
			req.dimensions, err = v.integer(1, hidden)
			return err
		},
	}, "input")
	if err != nil {
		return nil, err
	}
	if err := s.scheduler.check(1); err != nil {
		return nil, err
	}
	req.model = asked.model
	req.inputs, err = s.prompts(left, "input", maxInputs)
	return req, err
}

// state waits for the last hidden state after a prompt. follows says that it is not the first of its request.
func (s *Server) state(ctx context.Context, rec *record, prompt []int, follows bool) (state []float32, err error) {
	g := &generation{ctx: ctx, prompt: prompt, state: true, asked: s.now(), choice: s.sampling,
		record: rec, out: newOutbox(1), metrics: s.metrics}
	rec.reads(len(prompt))
	if _, err := s.scheduler.submit(1, follows, func() []*generation { return []*generation{g} }); err != nil {
		return nil, err
	}
	defer s.scheduler.leave(g)
	err = g.out.follow(ctx, func(deltas []delta) (bool, error) {
		state = deltas[0].state // the only one
		return false, nil
	}, s.pingEvery, nil)
	return state, err
}

// unit is a vector of the same direction and of length 1; zeros stay zeros.
func unit(v []float32) ([]float32, error) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return nil, errors.New("the last hidden state has elements that are not finite numbers")
	}
	out := slices.Clone(v)
	for i := range out {
		if sum > 0 {
			out[i] = float32(float64(out[i]) / math.Sqrt(sum))
		}
	}
	return out, nil
}

// base64Of is how OpenAI's clients ask for numbers by default: float32, the lowest byte first.
func base64Of(v []float32) string {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}
