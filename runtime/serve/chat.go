package serve

import (
	"math"
	"net/http"
	"strings"
	"unicode/utf8"

	"amkc/runtime/chat"
)

// chatFields are the fields of chat completions, less those of messages.
var chatFields = with(sharedFields, map[string]field{
	"max_completion_tokens": func(_ *Server, r *request, v value) (err error) {
		r.most, err = v.integer(1, math.MaxInt32)
		return err
	},
	"logprobs": func(_ *Server, r *request, v value) error {
		wanted, err := v.bool()
		if wanted {
			r.options.LogProbs = 0
		}
		return err
	},
	"top_logprobs": func(_ *Server, r *request, v value) (err error) {
		r.options.LogProbs, err = v.integer(0, maxTopChat)
		return err
	},
	"response_format": responseFormat,
	"parallel_tool_calls": func(_ *Server, _ *request, v value) error {
		parallel, err := v.bool()
		if err == nil && !parallel {
			return unsupported(v.name, "parallel_tool_calls false is not supported: the model chooses how many calls "+
				"it writes")
		}
		return err
	},
	"modalities": func(_ *Server, _ *request, v value) error {
		all, err := list[string](v, "a list of strings")
		if err != nil {
			return err
		}
		if len(all) != 1 || all[0] != "text" {
			return unsupported(v.name, `modalities %s is not supported; want ["text"], or none`, v.short())
		}
		return nil
	},
	"prediction": tolerated, // speeds an answer up where it is honoured, and changes none
})

func (s *Server) chatCompletions(w http.ResponseWriter, r *http.Request) {
	req, prompt, err := s.chatRequest(w, r)
	if err != nil {
		refuse(w, r, err)
		return
	}
	f := &chatForm{s: s, logprobs: req.logprobs()}
	if req.tools {
		f.calls = s.calls()
	}
	s.complete(w, r, req, prompt, f)
}

func (s *Server) chatRequest(w http.ResponseWriter, r *http.Request) (*request, []int, error) {
	all, err := s.body(w, r)
	if err != nil {
		return nil, nil, err
	}
	req := s.asked()
	left, err := req.read(s, all, chatFields, conversationFields...)
	if err != nil {
		return nil, nil, err
	}
	_, one := all["max_tokens"]
	_, other := all["max_completion_tokens"]
	if one && other {
		return nil, nil, invalid("max_tokens", "max_tokens is the old name of max_completion_tokens; want one of them")
	}
	if _, said := all["top_logprobs"]; said {
		if wanted := string(all["logprobs"].raw); wanted != "true" {
			return nil, nil, invalid("top_logprobs", "top_logprobs goes with logprobs")
		}
	}
	if err := s.scheduler.check(); err != nil {
		return nil, nil, err
	}
	prompt, tools, err := s.chatPrompt(left)
	switch req.tools = tools; {
	case err != nil:
	case req.form != nil && tools:
		err = unsupported("response_format", "response_format beside tools is not supported, as calls are no such "+
			"text; want one of them, or tool_choice none")
	case req.form != nil && req.ignoreEOS:
		err = unsupported("ignore_eos", "ignore_eos beside response_format is not supported: the text ends where it "+
			"is whole")
	}
	return req, prompt, err
}

// chatPrompt turns messages, and what goes with them, into ids. tools says that the model was given some.
func (s *Server) chatPrompt(left map[string]value) (prompt []int, tools bool, err error) {
	if s.chat == nil {
		e := unsupported("messages", "this model has no chat template, which says how messages are formatted for it; "+
			"give a whole prompt to /v1/completions")
		e.code = "no_chat_template"
		return nil, false, e
	}
	c, err := s.conversation(left)
	if err != nil {
		return nil, false, err
	}
	text, err := s.chat.Render(c, chat.Options{Now: s.now()})
	if err != nil {
		return nil, false, invalid("messages", "the chat template does not format the messages: %v", err)
	}
	prompt, err = s.encode("messages", text, false)
	if err != nil {
		return nil, false, err
	}
	return prompt, c.Tools != nil, s.fits("messages", prompt)
}

// encode returns the ids of a text. With addSpecial it is a prompt, and gets the begin token that it does not have.
func (s *Server) encode(param, text string, addSpecial bool) (ids []int, err error) {
	if addSpecial {
		ids, _, err = s.tokenizer.EncodePrompt(text)
	} else {
		ids, err = s.tokenizer.Encode(text, false)
	}
	if err != nil {
		return nil, invalid(param, "%s cannot be encoded: it is not valid UTF-8", param)
	}
	return ids, nil
}

// chatForm is the form of chat completions.
type chatForm struct {
	s        *Server
	logprobs bool
	calls    callReader // nil: the model was given no tools
	called   int        // calls of a stream so far
}

type chatDelta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

type chatChunk struct {
	Index    int       `json:"index"`
	Delta    chatDelta `json:"delta"`
	Logprobs any       `json:"logprobs"`
	Finish   *string   `json:"finish_reason"`
}

type chatMessage struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Refusal   *string    `json:"refusal"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

type chatChoice struct {
	Index    int         `json:"index"`
	Message  chatMessage `json:"message"`
	Logprobs any         `json:"logprobs"`
	Finish   string      `json:"finish_reason"`
}

func (f *chatForm) names() (id, chunk, whole string) {
	return "chatcmpl-", "chat.completion.chunk", "chat.completion"
}

func (f *chatForm) opening() any {
	return chatChunk{Delta: chatDelta{Role: "assistant", Content: new(string)}}
}

func (f *chatForm) piece(text string, tokens []located) any {
	var delta chatDelta
	if f.calls != nil {
		var calls []toolFunction
		text, calls = f.calls.push(text)
		for _, call := range calls {
			index := f.called
			f.called++
			delta.ToolCalls = append(delta.ToolCalls, toolCall{&index, f.s.newID("call_"), "function", call})
		}
		if text == "" && calls == nil && len(tokens) == 0 {
			return nil
		}
	}
	if text != "" || len(delta.ToolCalls) == 0 {
		delta.Content = &text
	}
	return chatChunk{Delta: delta, Logprobs: f.tokens(tokens)}
}

func (f *chatForm) closing(finish string) (all []any) {
	if f.calls != nil {
		if rest := f.calls.end(); rest != "" {
			all = append(all, chatChunk{Delta: chatDelta{Content: &rest}})
		}
		finish = f.finish(finish)
	}
	return append(all, chatChunk{Finish: &finish})
}

// finish is why an answer ended, which calls have another word for.
func (f *chatForm) finish(reason string) string {
	if reason == finishStop && f.calls != nil && f.calls.found() {
		return "tool_calls"
	}
	return reason
}

func (f *chatForm) whole(text string, tokens []located, finish string) any {
	m := chatMessage{Role: "assistant", Content: &text}
	if f.calls != nil {
		var calls []toolFunction
		text, calls = f.calls.push(text)
		text += f.calls.end()
		for _, call := range calls {
			m.ToolCalls = append(m.ToolCalls, toolCall{nil, f.s.newID("call_"), "function", call})
		}
		if text == "" && calls != nil {
			m.Content = nil
		}
	}
	return chatChoice{Message: m, Logprobs: f.tokens(tokens), Finish: f.finish(finish)}
}

type chatToken struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

type chatTopToken struct {
	chatToken
	Top []chatToken `json:"top_logprobs"`
}

// tokens are logprobs in the form of chat completions; nil where they are not wanted.
func (f *chatForm) tokens(tokens []located) any {
	if !f.logprobs {
		return nil
	}
	out := struct {
		Content []chatTopToken `json:"content"`
		Refusal *string        `json:"refusal"`
	}{Content: []chatTopToken{}}
	for _, t := range tokens {
		row := chatTopToken{f.token(t.ID, t.LogProb), []chatToken{}}
		for _, a := range t.Top {
			row.Top = append(row.Top, f.token(a.ID, a.LogProb))
		}
		out.Content = append(out.Content, row)
	}
	return out
}

// token shows a token whose bytes are no text with U+FFFD; its bytes are exact.
func (f *chatForm) token(id int, logprob float64) chatToken {
	raw := f.s.tokenizer.Bytes(id)
	t := chatToken{Token: string(raw), Logprob: logprob, Bytes: make([]int, len(raw))}
	if !utf8.Valid(raw) {
		t.Token = strings.ToValidUTF8(t.Token, "\uFFFD")
	}
	for i, b := range raw {
		t.Bytes[i] = int(b)
	}
	return t
}
