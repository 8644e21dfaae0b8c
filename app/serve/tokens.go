package serve

import "net/http"

// tokenize turns a text into ids: {"prompt": TEXT, "add_special_tokens": true}, or messages as chat completions have
// them. Like a prompt, it may have as many as the context has positions.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	var ids []int
	err := s.prepare(w, r, func(all map[string]value) (err error) {
		ids, err = s.tokens(all)
		return err
	})
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

func (s *Server) tokens(all map[string]value) ([]int, error) {
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
	var text string
	err := s.prepare(w, r, func(all map[string]value) (err error) {
		text, err = s.text(all)
		return err
	})
	if err != nil {
		refuse(w, r, err)
		return
	}
	send(w, http.StatusOK, "application/json", marshal(map[string]string{"prompt": text}))
}

func (s *Server) text(all map[string]value) (string, error) {
	left, err := s.asked().read(s, all, map[string]field{"model": modelName}, "tokens")
	if err != nil {
		return "", err
	}
	v, said := left["tokens"]
	if !said {
		return "", invalid("tokens", "there are no tokens; want a list of ids")
	}
	most := s.engine.Limits().MaxSeq + 1 // the last token of an answer needs no position
	if v.isNumbers() && v.commas() >= most {
		return "", invalid("tokens", "there are %d tokens; want at most %d, as many as a context and the token after "+
			"it have", v.commas()+1, most)
	}
	ids, err := list[int](v, most, "a list of ids")
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
