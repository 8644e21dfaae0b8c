package serve

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"unicode/utf8"
)

// defaultTokens is how many tokens a completion has when the request does not say, as OpenAI has it.
const defaultTokens = 16

// completionFields are the fields of completions, less the prompt and what depends on others.
var completionFields = with(sharedFields, map[string]field{
	"max_tokens": func(_ *Server, r *request, v value) (err error) { // 0: of the prompt alone
		r.most, err = v.integer(0, math.MaxInt32)
		return err
	},
	"logprobs": func(_ *Server, r *request, v value) (err error) {
		r.options.LogProbs, err = v.integer(0, maxTop)
		return err
	},
	"response_format": responseFormat,
	"suffix": func(_ *Server, _ *request, v value) error {
		text, err := v.text()
		if err == nil && text != "" {
			return unsupported(v.name, "a suffix is not supported; want none")
		}
		return err
	},
})

func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	var req *request
	var given []prompt
	err := s.prepare(w, r, func(all map[string]value) (err error) {
		req, given, err = s.completionRequest(all)
		return err
	})
	if err != nil {
		refuse(w, r, err)
		return
	}
	var prompts [][]int
	var forms []choiceForm
	for _, p := range given {
		prompts = append(prompts, p.ids)
		for range req.answers {
			f := &textForm{s: s, index: len(forms), logprobs: req.logprobs()}
			if req.echo && !f.logprobs { // else it comes token by token
				f.echo = p.text
			}
			forms = append(forms, f)
		}
	}
	s.complete(w, r, req, prompts, s.choices(req, forms...))
}

// completionRequest reads a request.
func (s *Server) completionRequest(all map[string]value) (req *request, given []prompt, err error) {
	req = s.asked()
	req.most = defaultTokens
	left, err := req.read(s, all, completionFields, "prompt", "echo", "best_of")
	if err != nil {
		return nil, nil, err
	}
	if err := bestOf(left, req); err != nil {
		return nil, nil, err
	}
	if err := req.whole(req.form != nil); err != nil {
		return nil, nil, err
	}
	if err := s.scheduler.check(1); err != nil {
		return nil, nil, err
	}
	if given, err = s.prompts(left, "prompt", s.scheduler.most()); err != nil {
		return nil, nil, err
	}
	if v, said := left["echo"]; said {
		req.echo, err = v.bool()
	}
	return req, given, err
}

// bestOf refuses answers that would be decoded to be left out.
func bestOf(left map[string]value, req *request) error {
	v, said := left["best_of"]
	if !said {
		return nil
	}
	n, err := v.integer(1, maxAnswers)
	if err == nil && n != req.answers {
		return unsupported(v.name, "best_of %d is not supported, as no answer is left out; want n, which is %d, or "+
			"none", n, req.answers)
	}
	return err
}

// A prompt is a text, or the ids of one, that something is decoded of.
type prompt struct {
	text string
	ids  []int
}

// prompts reads a field that is one text or several, or the token ids of one or of several.
func (s *Server) prompts(left map[string]value, field string, most int) (all []prompt, err error) {
	const want = "a string, a list of strings, a list of token ids, or a list of such lists"
	v, said := left[field]
	if !said {
		return nil, invalid(field, "there is no %s; want %s", field, want)
	}
	parts := []value{v}
	if v.isList() && !v.isNumbers() {
		several, err := v.items(most, want)
		if err != nil {
			return nil, err
		}
		if len(several) > 0 {
			parts = several
		}
	}
	for _, part := range parts {
		var p prompt
		if part.read(&p.text, want) == nil {
			p.ids, err = s.encode(part.name, p.text, true)
		} else {
			p.ids, err = s.ids(part, want)
		}
		if err == nil {
			err = s.fits(part.name, p.ids)
		}
		if err != nil {
			return nil, err
		}
		if p.text == "" {
			p.text = s.tokenizer.Decode(p.ids, true)
		}
		all = append(all, p)
	}
	return all, nil
}

// ids reads the token ids of a prompt, of which there may be as many as the context has positions.
func (s *Server) ids(v value, want string) ([]int, error) {
	most := s.engine.Limits().MaxSeq
	if n := v.commas() + 1; v.isNumbers() && n > most {
		return nil, s.tooLong(v.name, n)
	}
	return list[int](v, most, want)
}

// textForm is the form of completions.
type textForm struct {
	s        *Server
	index    int // of the choice
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
	return textChoice{Index: f.index, Text: f.echo}
}

func (f *textForm) piece(text string, tokens []located) []any {
	return []any{textChoice{Index: f.index, Text: text, Logprobs: f.tokens(tokens)}}
}

func (f *textForm) closing(finish string) []any {
	return []any{textChoice{Index: f.index, Finish: &finish}}
}

func (f *textForm) whole(text string, tokens []located, finish string) any {
	return textChoice{Index: f.index, Text: f.echo + text, Logprobs: f.tokens(tokens), Finish: &finish}
}

// tokens are logprobs in the form of completions: lists side by side; nil where they are not wanted.
func (f *textForm) tokens(tokens []located) any {
	if !f.logprobs {
		return nil
	}
	out := struct {
		Tokens   []string             `json:"tokens"`
		Logprobs []*float64           `json:"token_logprobs"`
		Top      []map[string]float64 `json:"top_logprobs"`
		Offsets  []int                `json:"text_offset"`
	}{[]string{}, []*float64{}, []map[string]float64{}, []int{}}
	for _, t := range tokens {
		out.Tokens = append(out.Tokens, f.name(t.ID))
		out.Offsets = append(out.Offsets, t.offset)
		if t.first {
			out.Logprobs, out.Top = append(out.Logprobs, nil), append(out.Top, nil)
			continue
		}
		of := max(t.LogProb, impossible)
		top := map[string]float64{f.name(t.ID): of}
		for i := len(t.Top) - 1; i >= 0; i-- { // of tokens with one text the likeliest stays
			top[f.name(t.Top[i].ID)] = t.Top[i].LogProb
		}
		out.Logprobs, out.Top = append(out.Logprobs, &of), append(out.Top, top)
	}
	return out
}

// impossible is instead of the logarithm of 0, which JSON cannot say, as OpenAI has it.
const impossible = -9999.0

// name is the text of a token or, if its bytes are not text, those as OpenAI writes them: bytes:\xe2\x80.
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
