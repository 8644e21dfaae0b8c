package serve

import "amkc/text/reply"

// includeLogprobs is what asks for log-probabilities of a response.
const includeLogprobs = "message.output_text.logprobs"

// askedLogprobs brings together what a request says of log-probabilities in two fields.
func askedLogprobs(req *request) error {
	switch {
	case !req.included && req.options.LogProbs > 0:
		return invalid("top_logprobs", "top_logprobs goes with include: [%q]", includeLogprobs)
	case !req.included:
		req.options.LogProbs = -1
	default:
		req.options.LogProbs = max(0, req.options.LogProbs)
	}
	return nil
}

// Log-probabilities of a response: those of events have no bytes.
type (
	eventToken struct {
		eventTopToken
		Top []eventTopToken `json:"top_logprobs"`
	}
	eventTopToken struct {
		Token   string  `json:"token"`
		Logprob float64 `json:"logprob"`
	}
)

// eventTokens are tokens as events have them, an empty list where none are wanted.
func eventTokens(all []chatTopToken) *[]eventToken {
	out := make([]eventToken, len(all))
	for i, t := range all {
		out[i] = eventToken{eventTopToken{t.Token, t.Logprob}, make([]eventTopToken, len(t.Top))}
		for k, top := range t.Top {
			out[i].Top[k] = eventTopToken{top.Token, top.Logprob}
		}
	}
	return &out
}

// textTokens finds the tokens that a text is made of, among those of an answer with thoughts and calls in it. A token
// that is partly of the text is one of them, and so is one inside of it that completes no character.
type textTokens struct {
	waiting []located    // that may be of the text
	spans   []reply.Span // of the text so far; what follows each other is one
}

// come takes tokens, in their order.
func (t *textTokens) come(tokens []located) { t.waiting = append(t.waiting, tokens...) }

// said says where text stands.
func (t *textTokens) said(spans []reply.Span) {
	for _, s := range spans {
		if n := len(t.spans); n > 0 && t.spans[n-1].To == s.From {
			t.spans[n-1].To = s.To
		} else if s.From < s.To {
			t.spans = append(t.spans, s)
		}
	}
}

// take returns the tokens that are known to be of the text; at its end also those after it that complete no character.
func (t *textTokens) take(end bool) (all []located) {
	if len(t.spans) == 0 {
		return nil
	}
	last := t.spans[len(t.spans)-1].To
	for len(t.waiting) > 0 {
		token := t.waiting[0]
		empty := token.start == token.end
		switch in := t.holds(token); {
		case in || end && empty && token.start == last:
			all = append(all, token)
		case token.start >= last:
			return all
		}
		t.waiting = t.waiting[1:]
	}
	return all
}

// holds reports whether a token, or the place of one without a text, is inside of the text.
func (t *textTokens) holds(token located) bool {
	for i := len(t.spans) - 1; i >= 0; i-- {
		s := t.spans[i]
		if token.start < s.To && max(token.end, token.start+1) > s.From {
			return true
		}
		if token.start >= s.To {
			return false
		}
	}
	return false
}
