package serve

import (
	"encoding/json"
	"strings"

	"amkc/text/reply"
)

// A response is the answer of responses. What the request says comes back in it.
type response struct {
	ID           string          `json:"id"`
	Object       string          `json:"object"`
	Created      int64           `json:"created_at"`
	Completed    *int64          `json:"completed_at"`
	Status       string          `json:"status"`
	Background   bool            `json:"background"`
	Error        *responseError  `json:"error"`
	Incomplete   *incomplete     `json:"incomplete_details"`
	Instructions json.RawMessage `json:"instructions"`
	Most         json.RawMessage `json:"max_output_tokens"`
	Metadata     json.RawMessage `json:"metadata"`
	Model        string          `json:"model"`
	Output       []outputItem    `json:"output"`
	Parallel     bool            `json:"parallel_tool_calls"`
	Previous     *string         `json:"previous_response_id"`
	Reasoning    json.RawMessage `json:"reasoning"`
	Store        bool            `json:"store"`
	Temperature  float64         `json:"temperature"`
	Text         json.RawMessage `json:"text"`
	ToolChoice   json.RawMessage `json:"tool_choice"`
	Tools        json.RawMessage `json:"tools"`
	TopLogprobs  int             `json:"top_logprobs"`
	TopP         float64         `json:"top_p"`
	Truncation   string          `json:"truncation"`
	Usage        *responseUsage  `json:"usage"`
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

type responseUsage struct {
	Input        int           `json:"input_tokens"`
	InputDetails inputDetails  `json:"input_tokens_details"`
	Output       int           `json:"output_tokens"`
	OutDetails   outputDetails `json:"output_tokens_details"`
	Total        int           `json:"total_tokens"`
}

type inputDetails struct {
	Cached  int `json:"cached_tokens"`      // whose rows an earlier request has left in the cache
	Written int `json:"cache_write_tokens"` // whose rows this one leaves there
}

type outputDetails struct {
	Reasoning int `json:"reasoning_tokens"`
}

// Statuses of responses and of their items.
const (
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
)

// Types of items of an answer.
const (
	itemMessage   = "message"
	itemReasoning = "reasoning"
	itemCall      = "function_call"
)

// An outputItem is a thought, a text or a call of an answer.
type outputItem struct {
	ID        string        `json:"id"`
	Type      string        `json:"type"`
	Status    string        `json:"status"`
	Role      string        `json:"role,omitempty"`
	Summary   *[]string     `json:"summary,omitempty"` // of a thought, and always empty
	Content   *[]outputPart `json:"content,omitempty"` // of a thought or a text
	CallID    string        `json:"call_id,omitempty"`
	Name      string        `json:"name,omitempty"`
	Arguments *string       `json:"arguments,omitempty"` // of a call
}

// An outputPart is all of a thought or of a text.
type outputPart struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Annotations *[]string       `json:"annotations,omitempty"` // of a text, and always empty
	Logprobs    *[]chatTopToken `json:"logprobs,omitempty"`    // of a text; empty where none are wanted
}

// response begins the answer to a request.
func (s *Server) response(req *request, all map[string]value) response {
	said := func(name, otherwise string) json.RawMessage {
		if v, said := all[name]; said {
			return v.raw
		}
		return json.RawMessage(otherwise)
	}
	return response{ID: s.newID("resp_"), Object: "response", Created: s.now().Unix(), Status: statusInProgress,
		Instructions: said("instructions", "null"), Most: said("max_output_tokens", "null"),
		Metadata: said("metadata", "{}"), Model: req.model, Output: []outputItem{}, Parallel: !req.oneCall,
		Reasoning: said("reasoning", `{"effort": null, "summary": null}`), Temperature: req.options.Temperature,
		Text: said("text", `{"format": {"type": "text"}}`), ToolChoice: said("tool_choice", `"auto"`),
		Tools: said("tools", "[]"), TopLogprobs: max(0, req.options.LogProbs),
		TopP: req.options.TopP, Truncation: "disabled"}
}

// A responseEvent is an event of a stream, whose type says which of the fields it has.
type responseEvent struct {
	Type         string        `json:"type"`
	Sequence     int           `json:"sequence_number"`
	Response     *response     `json:"response,omitempty"`
	OutputIndex  *int          `json:"output_index,omitempty"`
	Item         *outputItem   `json:"item,omitempty"`
	ItemID       string        `json:"item_id,omitempty"`
	ContentIndex *int          `json:"content_index,omitempty"`
	Part         *outputPart   `json:"part,omitempty"`
	Delta        *string       `json:"delta,omitempty"`
	Text         *string       `json:"text,omitempty"`
	Logprobs     *[]eventToken `json:"logprobs,omitempty"`
	Arguments    *string       `json:"arguments,omitempty"`
}

// responseForm is the form of responses: items one after the other, of which the last may be open.
type responseForm struct {
	s        *Server
	reader   answerReader
	streams  bool // events are wanted
	response response

	events   []event // that are not taken yet
	sequence int     // events so far
	open     *outputItem
	text     strings.Builder // of the open item
	logprobs []chatTopToken  // of that
	tokens   textTokens      // only where logprobs are wanted
	thought  int             // tokens up to the end of the thought
	finish   string          // why the answer has ended
}

// tell makes an event.
func (f *responseForm) tell(e responseEvent) {
	if !f.streams {
		return
	}
	e.Sequence = f.sequence
	f.sequence++
	f.events = append(f.events, event{e.Type, marshal(e)})
}

// take returns the events since the last time.
func (f *responseForm) take() []event {
	all := f.events
	f.events = nil
	return all
}

func (f *responseForm) opening(int) []event {
	f.created()
	return f.take()
}

func (f *responseForm) created() {
	f.tell(responseEvent{Type: "response.created", Response: &f.response})
	f.tell(responseEvent{Type: "response.in_progress", Response: &f.response})
}

func (f *responseForm) piece(d delta) []event {
	f.tokens.come(d.tokens)
	f.read(f.reader.Push(d.text), d.so)
	return f.take()
}

// read adds a piece, with which the answer has some tokens.
func (f *responseForm) read(p reply.Piece, tokens int) {
	if p.Thought != "" {
		f.thought = tokens
		f.say(itemReasoning, p.Thought, nil)
	}
	f.tokens.said(p.At)
	if tokens := f.tokens.take(false); p.Text != "" || len(tokens) > 0 {
		f.say(itemMessage, p.Text, tokens)
	}
	for _, call := range p.Calls {
		f.call(call)
	}
}

// say adds to a thought or a text, the latter with the log-probabilities of its tokens.
func (f *responseForm) say(kind, text string, tokens []located) {
	if f.open == nil || f.open.Type != kind {
		f.close(statusCompleted)
		f.begin(kind)
	}
	f.text.WriteString(text)
	e := f.of(f.open.textEvent() + ".delta")
	e.Delta = &text
	if kind == itemMessage {
		rows := f.s.tokenRows(tokens)
		f.logprobs = append(f.logprobs, rows...)
		e.Logprobs = eventTokens(rows)
	}
	f.tell(e)
}

// of is an event of the part of the open item.
func (f *responseForm) of(kind string) responseEvent {
	at := len(f.response.Output)
	return responseEvent{Type: kind, OutputIndex: &at, ItemID: f.open.ID, ContentIndex: new(int)}
}

func (i *outputItem) textEvent() string {
	if i.Type == itemReasoning {
		return "response.reasoning_text"
	}
	return "response.output_text"
}

// part is the content of a thought or a text.
func (i *outputItem) part(text string, logprobs []chatTopToken) *outputPart {
	if i.Type == itemReasoning {
		return &outputPart{Type: "reasoning_text", Text: text}
	}
	return &outputPart{"output_text", text, &[]string{}, &logprobs}
}

// begin opens an item of a thought or a text.
func (f *responseForm) begin(kind string) {
	f.open = &outputItem{Type: kind, Status: statusInProgress, Content: &[]outputPart{}}
	if kind == itemReasoning {
		f.open.ID, f.open.Summary = f.s.newID("rs_"), &[]string{}
	} else {
		f.open.ID, f.open.Role = f.s.newID("msg_"), "assistant"
	}
	f.text.Reset()
	f.logprobs = []chatTopToken{}
	f.itemEvent("response.output_item.added", f.open)
	e := f.of("response.content_part.added")
	e.Part = f.open.part("", f.logprobs)
	f.tell(e)
}

func (f *responseForm) itemEvent(kind string, item *outputItem) {
	at := len(f.response.Output)
	f.tell(responseEvent{Type: kind, OutputIndex: &at, Item: item})
}

// close ends the open item, if there is one.
func (f *responseForm) close(status string) {
	if f.open == nil {
		return
	}
	text := f.text.String()
	done := f.of(f.open.textEvent() + ".done")
	done.Text = &text
	if f.open.Type == itemMessage {
		done.Logprobs = eventTokens(f.logprobs)
	}
	f.tell(done)
	part := f.of("response.content_part.done")
	part.Part = f.open.part(text, f.logprobs)
	f.tell(part)
	f.open.Status, f.open.Content = status, &[]outputPart{*part.Part}
	f.add(f.open)
	f.open = nil
}

// add ends an item.
func (f *responseForm) add(item *outputItem) {
	f.itemEvent("response.output_item.done", item)
	f.response.Output = append(f.response.Output, *item)
}

// call is an item of its own. Its arguments come at once.
func (f *responseForm) call(call reply.Call) {
	f.close(statusCompleted)
	item := &outputItem{ID: f.s.newID("fc_"), Type: itemCall, Status: statusInProgress, CallID: f.s.newID("call_"),
		Name: call.Name, Arguments: new(string)}
	f.itemEvent("response.output_item.added", item)
	at := len(f.response.Output)
	e := responseEvent{OutputIndex: &at, ItemID: item.ID}
	delta, done := e, e
	delta.Type, delta.Delta = "response.function_call_arguments.delta", &call.Arguments
	done.Type, done.Arguments = "response.function_call_arguments.done", &call.Arguments
	f.tell(delta)
	f.tell(done)
	item.Status, item.Arguments = statusCompleted, &call.Arguments
	if !json.Valid([]byte(call.Arguments)) {
		item.Status = statusIncomplete // it was cut
	}
	f.add(item)
}

func (f *responseForm) closing(_ int, finish, _ string) []event {
	f.finish = finish // what the end says depends on what it has cost
	return nil
}

func (f *responseForm) ending(cost usage) []event {
	f.read(f.reader.End(), cost.Completion)
	if f.open != nil && f.open.Type == itemMessage {
		if rest := f.tokens.take(true); len(rest) > 0 {
			f.say(itemMessage, "", rest)
		}
	}
	if f.open == nil && len(f.response.Output) == 0 {
		f.begin(itemMessage)
	}
	status, now := statusCompleted, f.s.now().Unix()
	if f.finish == finishLength {
		status, f.response.Incomplete = statusIncomplete, &incomplete{"max_output_tokens"}
	} else {
		f.response.Completed = &now
	}
	f.close(status)
	f.response.Status = status
	f.response.Usage = &responseUsage{cost.Prompt, inputDetails{cost.Details.Cached, cost.Prompt - cost.Details.Cached},
		cost.Completion, outputDetails{f.thought}, cost.Total}
	f.tell(responseEvent{Type: "response." + status, Response: &f.response})
	return f.take()
}

func (f *responseForm) ping() []event { return nil }

// failed ends a stream. Of an item that is open there is no more.
func (f *responseForm) failed(e *apiError) []event {
	if f.sequence == 0 { // nothing but pings was sent
		f.created()
	}
	f.response.Status, f.response.Error = statusFailed, &responseError{"server_error", e.message}
	f.tell(responseEvent{Type: "response.failed", Response: &f.response})
	return f.take()
}

func (f *responseForm) whole(all []delta, cost usage) any {
	for _, d := range all {
		f.piece(d)
		f.finish = d.finish
	}
	f.ending(cost)
	return f.response
}

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
