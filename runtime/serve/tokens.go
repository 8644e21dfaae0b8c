package serve

import "net/http"

// tokenize turns a text into ids: {"prompt": TEXT, "add_special_tokens": true}, or messages as chat completions have
// them.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	ids, err := s.tokens(w, r)
	if err != nil {
		refuse(w, r, err)
		return
	}
	send(w, http.StatusOK, "application/json", marshal(struct {
		Count  int   `json:"count"`
		MaxLen int   `json:"max_model_len"`
		Tokens []int `json:"tokens"`
	}{len(ids), s.engine.Limits().MaxSeq, append([]int{}, ids...)}))
}

func (s *Server) tokens(w http.ResponseWriter, r *http.Request) ([]int, error) {
	all, err := s.body(w, r)
	if err != nil {
		return nil, err
	}
	addSpecial := true
	left, err := s.asked().read(s, all, map[string]field{
		"model": modelName,
		"add_special_tokens": func(_ *Server, _ *request, v value) (err error) {
			addSpecial, err = v.bool()
			return err
		},
	}, append([]string{"prompt"}, conversationFields...)...)
	if err != nil {
		return nil, err
	}
	prompt, isText := left["prompt"]
	if _, both := left["messages"]; both == isText {
		return nil, invalid("prompt", "want one of prompt and messages")
	}
	if !isText {
		p, err := s.chatPrompt(fromMessages, left, false)
		if err != nil {
			return nil, err
		}
		return p.ids, nil
	}
	text, err := prompt.text()
	if err != nil {
		return nil, err
	}
	return s.encode("prompt", text, addSpecial)
}

// detokenize turns ids into a text, special tokens included: {"tokens": [1, 2, 3]}.
func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) {
	text, err := s.text(w, r)
	if err != nil {
		refuse(w, r, err)
		return
	}
	send(w, http.StatusOK, "application/json", marshal(map[string]string{"prompt": text}))
}

func (s *Server) text(w http.ResponseWriter, r *http.Request) (string, error) {
	all, err := s.body(w, r)
	if err != nil {
		return "", err
	}
	left, err := s.asked().read(s, all, map[string]field{"model": modelName}, "tokens")
	if err != nil {
		return "", err
	}
	v, said := left["tokens"]
	if !said {
		return "", invalid("tokens", "there are no tokens; want a list of ids")
	}
	ids, err := list[int](v, "a list of ids")
	if err != nil {
		return "", err
	}
	for _, id := range ids {
		if vocab := s.engine.Limits().Vocab; id < 0 || id >= vocab {
			return "", invalid("tokens", "token %d is not in the model's vocabulary, which has ids from 0 to %d", id,
				vocab-1)
		}
	}
	return s.tokenizer.Decode(ids, false), nil
}
