package serve

import (
	"strings"
	"unicode/utf8"

	"amkc/text/reply"
)

// chatForm is the form of chat completions.
type chatForm struct {
	s           *Server
	index       int // of the choice
	logprobs    bool
	thoughtless bool // thoughts are left out
	reader      answerReader
	called      int // calls of a stream so far
}

// A toolCall is a call in the form of OpenAI's API, whose arguments are JSON in a string. In a stream its first chunk
// has its id and the name, and the next one the arguments.
type toolCall struct {
	Index    *int         `json:"index,omitempty"` // in chunks alone
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type chatDelta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"`
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
	Reasoning string     `json:"reasoning_content,omitempty"`
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
	return chatChunk{Index: f.index, Delta: chatDelta{Role: "assistant", Content: new(string)}}
}

func (f *chatForm) piece(text string, tokens []located) []any {
	all := f.chunks(f.reader.Push(text))
	if len(all) == 0 && len(tokens) > 0 { // of which nothing is to be said yet
		all = []any{chatChunk{Index: f.index, Delta: chatDelta{Content: new(string)}}}
	}
	if len(all) > 0 {
		first := all[0].(chatChunk)
		first.Logprobs = f.tokens(tokens)
		all[0] = first
	}
	return all
}

// chunks are those of a piece.
func (f *chatForm) chunks(p reply.Piece) (all []any) {
	add := func(d chatDelta) { all = append(all, chatChunk{Index: f.index, Delta: d}) }
	if p.Thought != "" && !f.thoughtless {
		add(chatDelta{Reasoning: p.Thought})
	}
	if p.Text != "" {
		add(chatDelta{Content: &p.Text})
	}
	for _, call := range p.Calls {
		index := f.called
		f.called++
		add(chatDelta{ToolCalls: []toolCall{{&index, f.s.newID("call_"), "function", toolFunction{call.Name, ""}}}})
		add(chatDelta{ToolCalls: []toolCall{{Index: &index, Function: toolFunction{Arguments: call.Arguments}}}})
	}
	return all
}

func (f *chatForm) closing(finish string) []any {
	all := f.chunks(f.reader.End())
	finish = f.finish(finish)
	return append(all, chatChunk{Index: f.index, Finish: &finish})
}

// finish is why an answer ended, which calls have another word for.
func (f *chatForm) finish(reason string) string {
	if reason == finishStop && f.reader.Called() {
		return "tool_calls"
	}
	return reason
}

func (f *chatForm) whole(text string, tokens []located, finish string) any {
	p, rest := f.reader.Push(text), f.reader.End()
	m := chatMessage{Role: "assistant"}
	if !f.thoughtless {
		m.Reasoning = p.Thought + rest.Thought
	}
	for _, call := range append(p.Calls, rest.Calls...) {
		m.ToolCalls = append(m.ToolCalls, toolCall{nil, f.s.newID("call_"), "function",
			toolFunction{call.Name, call.Arguments}})
	}
	if content := p.Text + rest.Text; content != "" || m.ToolCalls == nil {
		m.Content = &content
	}
	return chatChoice{Index: f.index, Message: m, Logprobs: f.tokens(tokens), Finish: f.finish(finish)}
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
	return struct {
		Content []chatTopToken `json:"content"`
		Refusal *string        `json:"refusal"`
	}{Content: f.s.tokenRows(tokens)}
}

// tokenRows are tokens with their log-probabilities and those of the likeliest ones.
func (s *Server) tokenRows(tokens []located) []chatTopToken {
	rows := make([]chatTopToken, len(tokens))
	for i, t := range tokens {
		rows[i] = chatTopToken{s.token(t.ID, t.LogProb), make([]chatToken, len(t.Top))}
		for k, top := range t.Top {
			rows[i].Top[k] = s.token(top.ID, top.LogProb)
		}
	}
	return rows
}

// token shows a token whose bytes are not text with U+FFFD; its bytes are exact.
func (s *Server) token(id int, logprob float64) chatToken {
	raw := s.tokenizer.Bytes(id)
	t := chatToken{Token: string(raw), Logprob: logprob, Bytes: make([]int, len(raw))}
	if !utf8.Valid(raw) {
		t.Token = strings.ToValidUTF8(t.Token, "\uFFFD")
	}
	for i, b := range raw {
		t.Bytes[i] = int(b)
	}
	return t
}
