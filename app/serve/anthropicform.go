package serve

import (
	"encoding/json"
	"net/http"
	"strings"

	"amkc/text/reply"
)

// An anthropicMessage is the answer of Anthropic's Messages API.
type anthropicMessage struct {
	ID           string         `json:"id"`
	Type         string         `json:"type"`
	Role         string         `json:"role"`
	Model        string         `json:"model"`
	Content      []contentBlock `json:"content"`
	StopReason   *string        `json:"stop_reason"`
	StopSequence *string        `json:"stop_sequence"`
	Usage        anthropicUsage `json:"usage"`
}

// An anthropicUsage counts tokens. Those that were read from the cache are not among the input tokens.
type anthropicUsage struct {
	Input      int `json:"input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"` // always 0: nothing is written that a request has to ask for
	CacheRead  int `json:"cache_read_input_tokens"`
	Output     int `json:"output_tokens"`
}

// Types of content blocks.
const (
	blockText     = "text"
	blockThinking = "thinking"
	blockToolUse  = "tool_use"
)

// A contentBlock is a thought, a text or a call.
type contentBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"` // of a thought, and always empty
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

// A blockDelta is what an event adds to a block.
type blockDelta struct {
	Type      string  `json:"type"`
	Text      *string `json:"text,omitempty"`
	Thinking  *string `json:"thinking,omitempty"`
	Signature *string `json:"signature,omitempty"`
	Partial   *string `json:"partial_json,omitempty"`
}

// A messageEvent is an event of a stream, whose type says which of the fields it has.
type messageEvent struct {
	Type    string            `json:"type"`
	Message *anthropicMessage `json:"message,omitempty"`
	Index   *int              `json:"index,omitempty"`
	Block   *contentBlock     `json:"content_block,omitempty"`
	Delta   any               `json:"delta,omitempty"`
	Usage   *anthropicUsage   `json:"usage,omitempty"`
}

// stopDelta says why a message has ended.
type stopDelta struct {
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
}

// anthropicForm is the form of the Messages API: blocks one after the other, of which the last may be open.
type anthropicForm struct {
	s       *Server
	reader  answerReader
	streams bool         // events are wanted
	cost    func() usage // so far
	most    int          // tokens that were asked for
	message anthropicMessage

	events []event // that are not taken yet
	open   string  // the type of the open block; empty: none is
	text   strings.Builder
	finish string // why the answer has ended
	stop   string // the stop string that it has ended at
}

func (s *Server) anthropicForm(req *request, p *chatPrompt, cost func() usage) *anthropicForm {
	return &anthropicForm{s: s, reader: p.reader(s, req.oneCall), streams: req.stream, cost: cost, most: req.most,
		message: anthropicMessage{ID: s.newID("msg_"), Type: "message", Role: "assistant", Model: req.model,
			Content: []contentBlock{}}}
}

// tell makes an event.
func (f *anthropicForm) tell(e messageEvent) {
	if f.streams {
		f.events = append(f.events, event{e.Type, marshal(e)})
	}
}

// take returns the events since the last time.
func (f *anthropicForm) take() []event {
	all := f.events
	f.events = nil
	return all
}

func (f *anthropicForm) opening(int) []event {
	begun := f.message
	begun.Usage = anthropicUsageOf(f.cost())
	begun.Usage.Output = 0 // the last event has the number
	f.tell(messageEvent{Type: "message_start", Message: &begun})
	return f.take()
}

func anthropicUsageOf(cost usage) anthropicUsage {
	return anthropicUsage{cost.Prompt - cost.Details.Cached, 0, cost.Details.Cached, cost.Completion}
}

func (f *anthropicForm) piece(d delta) []event {
	f.read(f.reader.Push(d.text))
	return f.take()
}

func (f *anthropicForm) read(p reply.Piece) {
	if p.Thought != "" {
		f.say(blockThinking, p.Thought)
	}
	if p.Text != "" {
		f.say(blockText, p.Text)
	}
	for _, call := range p.Calls {
		f.call(call)
	}
}

// say adds to a thought or a text.
func (f *anthropicForm) say(kind, text string) {
	if f.open != kind {
		f.close()
		f.open = kind
		f.begin(f.block(""))
	}
	f.text.WriteString(text)
	if kind == blockThinking {
		f.add(blockDelta{Type: "thinking_delta", Thinking: &text})
	} else {
		f.add(blockDelta{Type: "text_delta", Text: &text})
	}
}

// block is the open block with all of its text.
func (f *anthropicForm) block(text string) contentBlock {
	if f.open == blockThinking {
		return contentBlock{Type: blockThinking, Thinking: &text, Signature: new(string)}
	}
	return contentBlock{Type: blockText, Text: &text}
}

func (f *anthropicForm) begin(b contentBlock) {
	at := len(f.message.Content)
	f.tell(messageEvent{Type: "content_block_start", Index: &at, Block: &b})
}

func (f *anthropicForm) add(d blockDelta) {
	at := len(f.message.Content)
	f.tell(messageEvent{Type: "content_block_delta", Index: &at, Delta: d})
}

// end ends a block.
func (f *anthropicForm) end(b contentBlock) {
	at := len(f.message.Content)
	f.tell(messageEvent{Type: "content_block_stop", Index: &at})
	f.message.Content = append(f.message.Content, b)
}

// close ends the open block, if there is one.
func (f *anthropicForm) close() {
	if f.open == "" {
		return
	}
	if f.open == blockThinking {
		f.add(blockDelta{Type: "signature_delta", Signature: new(string)})
	}
	f.end(f.block(f.text.String()))
	f.open = ""
	f.text.Reset()
}

// call is a block of its own. Its input comes at once; where it was cut, what there is of it is in the events alone.
func (f *anthropicForm) call(call reply.Call) {
	f.close()
	b := contentBlock{Type: blockToolUse, ID: f.s.newID("toolu_"), Name: call.Name, Input: json.RawMessage("{}")}
	f.begin(b)
	f.add(blockDelta{Type: "input_json_delta", Partial: &call.Arguments})
	if json.Valid([]byte(call.Arguments)) {
		b.Input = json.RawMessage(call.Arguments)
	}
	f.end(b)
}

func (f *anthropicForm) closing(_ int, finish, stop string) []event {
	f.finish, f.stop = finish, stop // what the end says depends on what it has cost
	return nil
}

func (f *anthropicForm) ending(cost usage) []event {
	f.read(f.reader.End())
	f.close()
	reason := "end_turn"
	switch {
	case f.finish == finishLength && cost.Completion < f.most:
		reason = "model_context_window_exceeded"
	case f.finish == finishLength:
		reason = "max_tokens"
	case f.reader.Called():
		reason = "tool_use"
	case f.stop != "":
		reason, f.message.StopSequence = "stop_sequence", &f.stop
	}
	f.message.StopReason, f.message.Usage = &reason, anthropicUsageOf(cost)
	f.tell(messageEvent{Type: "message_delta", Delta: stopDelta{&reason, f.message.StopSequence},
		Usage: &f.message.Usage})
	f.tell(messageEvent{Type: "message_stop"})
	return f.take()
}

func (f *anthropicForm) ping() []event { return []event{{"ping", []byte(`{"type":"ping"}`)}} }

func (f *anthropicForm) failed(e *apiError) []event { return []event{{"error", e.anthropicBody("")}} }

func (f *anthropicForm) whole(all []delta, cost usage) any {
	for _, d := range all {
		f.piece(d)
		f.finish, f.stop = d.finish, d.stop
	}
	f.ending(cost)
	return f.message
}

// anthropicKinds are the types of Anthropic's errors by status; others are invalid requests.
var anthropicKinds = map[int]string{
	http.StatusUnauthorized:          "authentication_error",
	http.StatusNotFound:              "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_error",
	http.StatusInternalServerError:   "api_error",
	http.StatusServiceUnavailable:    "overloaded_error",
}

// anthropicBody is the error as the Messages API has it. id is that of the request; empty: it is not said.
func (e *apiError) anthropicBody(id string) []byte {
	type details struct {
		Code string `json:"error_code"`
	}
	type fields struct {
		Type    string  `json:"type"`
		Message string  `json:"message"`
		Details details `json:"details"`
	}
	kind, known := anthropicKinds[e.status]
	if !known {
		kind = kindRequest
	}
	return marshal(struct {
		Type  string `json:"type"`
		Error fields `json:"error"`
		ID    string `json:"request_id,omitempty"`
	}{"error", fields{kind, e.message, details{e.code}}, id})
}
