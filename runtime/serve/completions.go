package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// defaultTokens is how many tokens a completion has when the request does not say, as OpenAI has it.
const defaultTokens = 16

// completionFields are the fields of completions, less the prompt and echo.
var completionFields = with(sharedFields, map[string]field{
	"logprobs": func(_ *Server, r *request, v value) (err error) {
		r.options.LogProbs, err = v.integer(0, maxTop)
		return err
	},
	"best_of": func(_ *Server, _ *request, v value) error {
		return only(v, 1, 1, 20, "one answer is decoded")
	},
	"suffix": func(_ *Server, _ *request, v value) error {
		text, err := v.text()
		if err == nil && text != "" {
			return unsupported(v.name, "a suffix is not supported; want none")
		}
		return err
	},
})

func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	req, prompt, echo, err := s.completionRequest(w, r)
	if err != nil {
		refuse(w, r, err)
		return
	}
	s.complete(w, r, req, prompt, s.choices(req, &textForm{s: s, logprobs: req.logprobs(), echo: echo}))
}

// completionRequest reads a request. echo is what the answer begins with.
func (s *Server) completionRequest(w http.ResponseWriter, r *http.Request) (req *request, prompt []int, echo string,
	err error) {
	all, err := s.body(w, r)
	if err != nil {
		return nil, nil, "", err
	}
	req = s.asked()
	req.most = defaultTokens
	left, err := req.read(s, all, completionFields, "prompt", "echo")
	if err != nil {
		return nil, nil, "", err
	}
	if err := s.scheduler.check(); err != nil {
		return nil, nil, "", err
	}
	text, prompt, err := s.prompt(left["prompt"])
	if err != nil {
		return nil, nil, "", err
	}
	if v, said := left["echo"]; said {
		wanted, err := v.bool()
		switch {
		case err != nil:
			return nil, nil, "", err
		case wanted && req.logprobs():
			return nil, nil, "", unsupported("echo", "echo with logprobs is not supported: prompts have none")
		case wanted:
			echo = text
		}
	}
	return req, prompt, echo, nil
}

// prompt reads the prompt of a completion: a text, or token ids, or a list with one of either.
func (s *Server) prompt(v value) (text string, ids []int, err error) {
	const want = "a string or a list of token ids"
	if v.raw == nil {
		return "", nil, invalid("prompt", "there is no prompt; want %s", want)
	}
	several, err := list[json.RawMessage](v, want) // prompts, or the ids of one
	if err == nil && len(several) > 0 && !isNumber(several[0]) {
		if n := len(several); n > 1 {
			return "", nil, unsupported("prompt", "a list of %d prompts is not supported; want one a request", n)
		}
		v.raw = several[0]
	}
	if v.read(&text, want) == nil {
		ids, err = s.encode("prompt", text, true)
	} else {
		ids, err = list[int](v, want)
	}
	if err == nil {
		err = s.fits("prompt", ids)
	}
	if err == nil && text == "" {
		text = s.tokenizer.Decode(ids, true)
	}
	return text, ids, err
}

func isNumber(raw json.RawMessage) bool { return raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' }

// textForm is the form of completions.
type textForm struct {
	s        *Server
	logprobs bool
	echo     string
}

type textChoice struct {
	Index    int     `json:"index"`
	Text     string  `json:"text"`
	Logprobs any     `json:"logprobs"`
	Finish   *string `json:"finish_reason"`
}

func (f *textForm) names() (id, chunk, whole string) {
	return "cmpl-", "text_completion", "text_completion"
}

func (f *textForm) opening() any {
	if f.echo == "" {
		return nil
	}
	return textChoice{Text: f.echo}
}

func (f *textForm) piece(text string, tokens []located) []any {
	return []any{textChoice{Text: text, Logprobs: f.tokens(tokens)}}
}

func (f *textForm) closing(finish string) []any { return []any{textChoice{Finish: &finish}} }

func (f *textForm) whole(text string, tokens []located, finish string) any {
	return textChoice{Text: f.echo + text, Logprobs: f.tokens(tokens), Finish: &finish}
}

// tokens are logprobs in the form of completions: lists side by side; nil where they are not wanted.
func (f *textForm) tokens(tokens []located) any {
	if !f.logprobs {
		return nil
	}
	out := struct {
		Tokens   []string             `json:"tokens"`
		Logprobs []float64            `json:"token_logprobs"`
		Top      []map[string]float64 `json:"top_logprobs"`
		Offsets  []int                `json:"text_offset"`
	}{[]string{}, []float64{}, []map[string]float64{}, []int{}}
	for _, t := range tokens {
		out.Tokens = append(out.Tokens, f.name(t.ID))
		out.Logprobs = append(out.Logprobs, t.LogProb)
		top := map[string]float64{}
		for i := len(t.Top) - 1; i >= 0; i-- { // of tokens with one text the likeliest stays
			top[f.name(t.Top[i].ID)] = t.Top[i].LogProb
		}
		out.Top = append(out.Top, top)
		out.Offsets = append(out.Offsets, t.offset)
	}
	return out
}

// name is the text of a token or, where its bytes are none, those as OpenAI writes them: bytes:\xe2\x80.
func (f *textForm) name(id int) string {
	raw := f.s.tokenizer.Bytes(id)
	if utf8.Valid(raw) {
		return string(raw)
	}
	var b strings.Builder
	b.WriteString("bytes:")
	for _, c := range raw {
		fmt.Fprintf(&b, `\x%02x`, c)
	}
	return b.String()
}
