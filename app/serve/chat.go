package serve

import (
	"errors"
	"math"
	"net/http"

	"amkc/text/tokenizer"
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
	"top_logprobs":     topLogprobs,
	"response_format":  responseFormat,
	"reasoning_format": reasoningFormat,
	"separate_reasoning": func(_ *Server, r *request, v value) error {
		apart, err := v.bool()
		r.asWritten = r.asWritten || err == nil && !apart
		return err
	},
	"include_reasoning": func(_ *Server, r *request, v value) error {
		wanted, err := v.bool()
		r.thoughtless = err == nil && !wanted
		return err
	},
	"parallel_tool_calls": parallelCalls,
	"modalities": func(_ *Server, _ *request, v value) error {
		all, err := list[string](v, maxWords, "a list of strings")
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
	var req *request
	var p *chatPrompt
	err := s.prepare(w, r, func(all map[string]value) (err error) {
		req, p, err = s.chatRequest(all)
		return err
	})
	if err != nil {
		refuse(w, r, err)
		return
	}
	var forms []choiceForm
	for i := range req.answers {
		forms = append(forms, &chatForm{s: s, index: i, logprobs: req.logprobs(), thoughtless: req.thoughtless,
			reader: p.reader(s, req.oneCall)})
	}
	s.complete(w, r, req, [][]int{p.ids}, s.choices(req, forms...))
}

func (s *Server) chatRequest(all map[string]value) (*request, *chatPrompt, error) {
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
	if req.asWritten && req.thoughtless {
		return nil, nil, invalid("include_reasoning", "include_reasoning false leaves a thought out, and another "+
			"field wants it in content; want one of them")
	}
	p, err := s.conversing(req, fromMessages, left)
	return req, p, err
}

func topLogprobs(_ *Server, r *request, v value) (err error) {
	r.options.LogProbs, err = v.integer(0, maxTopChat)
	return err
}

// reasoningFormat reads where thoughts come, as other servers call it.
func reasoningFormat(_ *Server, r *request, v value) error {
	form, err := v.text()
	switch {
	case err != nil:
		return err
	case form == "none":
		r.asWritten = true
	case form != "auto" && form != "deepseek":
		return unsupported(v.name, `reasoning_format %s is not supported; want "none", "deepseek" or "auto"`, v.short())
	}
	return nil
}

func parallelCalls(_ *Server, r *request, v value) error {
	parallel, err := v.bool()
	r.oneCall = err == nil && !parallel
	return err
}

// conversing makes the prompt of a request whose answer is that of a conversation.
func (s *Server) conversing(req *request, from source, left map[string]value) (*chatPrompt, error) {
	if err := s.scheduler.check(1); err != nil {
		return nil, err
	}
	p, err := s.chatPrompt(from, left, req.form != nil)
	if err != nil {
		return nil, err
	}
	p.asWritten = req.asWritten
	if !p.plain {
		req.shown = s.shown(p.tools != nil)
	}
	whole := req.whole(req.form != nil || p.forced != nil || p.held != nil)
	switch {
	case whole != nil:
		err = whole
	case p.forced != nil:
		req.form, err = s.callGrammar(p.forced)
	case p.held != nil:
		req.form, err = s.heldGrammar(p, req.formSchema)
	}
	if req.oneCall && p.tools != nil && p.forced == nil {
		req.until = func() answerReader { return p.reader(s, false) }
	}
	return p, err
}

// whole refuses what keeps a text from ending where it is whole; ends: it ends there.
func (r *request) whole(ends bool) error {
	const why = "is not supported alongside a format of the answer, tools that are strict, or a tool_choice that has " +
		"the model call: the text ends where it is whole"
	switch {
	case ends && r.ignoreEOS:
		return unsupported("ignore_eos", "ignore_eos %s", why)
	case ends && r.least > 0:
		return unsupported("min_tokens", "min_tokens %s", why)
	case r.oneCall && r.least > 0:
		return unsupported("min_tokens", "min_tokens is not supported alongside an answer of one call at most, after "+
			"which it ends; want one of them")
	}
	return nil
}

// encode returns the ids of a text, of which there may be as many as the context has positions: what comes after those
// is not encoded. With addSpecial it is a prompt, and gets the begin token that it does not have.
func (s *Server) encode(param, text string, addSpecial bool) (ids []int, err error) {
	most := s.engine.Limits().MaxSeq
	if addSpecial {
		ids, _, err = s.tokenizer.EncodePromptAtMost(text, most)
	} else {
		ids, err = s.tokenizer.EncodeAtMost(text, false, most)
	}
	if limit := (*tokenizer.LimitError)(nil); errors.As(err, &limit) {
		return nil, s.tooLong(param, 0)
	}
	if err != nil {
		return nil, invalid(param, "%s cannot be encoded: it is not valid UTF-8", param)
	}
	return ids, nil
}
