package serve

import (
	"bytes"
	"encoding/json"
	"strings"

	"amkc/runtime/chat"
	"amkc/runtime/infile"
	"amkc/runtime/stopping"
	"amkc/runtime/tokenizer"
)

// Calls of tools are read out of answers in two forms. That of Hermes, which Qwen and others took over, is an object in
// JSON with a name and arguments, between two marks. That of Llama 3 is an object alone, with a name and parameters.
const (
	callOpens  = "<tool_call>"
	callCloses = "</tool_call>"

	bareCall = `{"name": function name, "parameters": ` // of the sentence with which Llama's templates ask for it
)

// A callReader finds calls in a text that comes in parts. What is no call after all stays text.
type callReader interface {
	// push takes the next part. It returns the text that is no part of a call, and the calls that are complete.
	push(part string) (text string, calls []toolFunction)
	// end returns what was held back.
	end() (text string)
	// found reports whether there was a call.
	found() bool
}

// callReaders returns what makes readers of the form in which a chat template has a model write calls; nil if that is
// another. Marks have to be text of answers, as special tokens are not. What stands between them is of another form in
// Qwen3-Coder and in GLM.
func callReaders(f *chat.Format, t *tokenizer.Tokenizer) func() callReader {
	ids, err := t.Encode(callOpens+callCloses, false)
	switch {
	case f.Mentions(callOpens) && f.Mentions(callCloses) && f.Mentions("arguments") && !f.Mentions("<function=") &&
		!f.Mentions("<arg_key>") && err == nil && strings.Contains(t.Decode(ids, true), callOpens):
		return func() callReader { return &markedCalls{} }
	case f.Mentions(bareCall):
		return func() callReader { return &bareCalls{} }
	}
	return nil
}

// A toolCall is a call in the form of OpenAI's API, whose arguments are JSON in a string.
type toolCall struct {
	Index    *int         `json:"index,omitempty"` // in chunks alone
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// markedCalls finds calls of Hermes.
type markedCalls struct {
	inside bool   // behind an opening mark
	held   string // what may be the beginning of an opening mark, or what has come behind one
	after  bool   // a call was the last thing: spaces behind it belong to neither
	any    bool   // there was a call
}

func (c *markedCalls) found() bool { return c.any }

func (c *markedCalls) push(part string) (text string, calls []toolFunction) {
	searched := len(c.held)
	c.held += part
	for {
		mark := callOpens
		if c.inside {
			mark = callCloses
		}
		from := max(0, searched-len(mark)+1)
		searched = 0
		at := strings.Index(c.held[from:], mark)
		if at < 0 {
			break
		}
		before := c.held[:from+at]
		c.held = c.held[from+at+len(mark):]
		if c.inside = !c.inside; c.inside {
			text += c.say(before)
		} else if call, ok := readCall(before, false); ok {
			calls = append(calls, call)
			c.after, c.any = true, true
		} else {
			text += c.say(callOpens + before + callCloses)
		}
	}
	if !c.inside {
		sure := len(c.held) - stopping.Overlap(c.held, callOpens)
		text += c.say(c.held[:sure])
		c.held = c.held[sure:]
	}
	return text, calls
}

func (c *markedCalls) end() (text string) {
	if c.inside {
		text = callOpens
	}
	text = c.say(text + c.held)
	c.inside, c.held = false, ""
	return text
}

// say drops the spaces behind a call.
func (c *markedCalls) say(text string) string {
	if c.after {
		text = strings.TrimLeft(text, " \t\r\n")
	}
	c.after = c.after && text == ""
	return text
}

// bareCalls finds calls of Llama 3, of which an answer consists from its beginning on, with spaces or semicolons
// between them. What follows anything else is text.
type bareCalls struct {
	held            string // what may be the beginning of a call
	scanned, depth  int    // bytes of held that have been looked at, and the braces that are open behind them
	quoted, escaped bool
	text, any       bool // the rest is text; there was a call
}

func (c *bareCalls) found() bool { return c.any }

func (c *bareCalls) push(part string) (text string, calls []toolFunction) {
	if c.text {
		return part, nil
	}
	c.held += part
	for !c.text {
		between := " \t\r\n"
		if c.any {
			between += ";"
		}
		begins := strings.TrimLeft(c.held, between)
		if begins == "" {
			return "", calls
		}
		if begins[0] == '{' && !c.whole(len(c.held)-len(begins)) {
			return "", calls
		}
		call, ok := readCall(begins[:max(0, c.scanned-len(c.held)+len(begins))], true)
		if c.text = !ok; ok {
			calls = append(calls, call)
			*c = bareCalls{held: c.held[c.scanned:], any: true}
		}
	}
	return c.end(), calls
}

// whole reports whether the object that begins at a byte of what is held is there up to its last brace, where scanned
// is then.
func (c *bareCalls) whole(begin int) bool {
	for c.scanned = max(c.scanned, begin); c.scanned < len(c.held); {
		b := c.held[c.scanned]
		c.scanned++
		switch {
		case c.escaped:
			c.escaped = false
		case c.quoted && b == '\\':
			c.escaped = true
		case b == '"':
			c.quoted = !c.quoted
		case c.quoted:
		case b == '{':
			c.depth++
		case b == '}':
			if c.depth--; c.depth == 0 {
				return true
			}
		}
	}
	return false
}

func (c *bareCalls) end() (text string) {
	text, c.held = c.held, ""
	if c.any {
		text = strings.TrimLeft(text, " \t\r\n;") // behind the last call
	}
	return text
}

// readCall reads the object of a call. A bare one says what its parameters are.
func readCall(text string, bare bool) (call toolFunction, ok bool) {
	var object struct {
		Name       string          `json:"name"`
		Arguments  json.RawMessage `json:"arguments"`
		Parameters json.RawMessage `json:"parameters"`
	}
	if err := infile.Unmarshal([]byte(text), &object); err != nil || object.Name == "" {
		return call, false
	}
	if bare {
		if object.Parameters == nil {
			return call, false
		}
		object.Arguments = object.Parameters
	}
	call.Name = object.Name
	var compact bytes.Buffer
	switch {
	case object.Arguments == nil:
		call.Arguments = "{}"
	case json.Unmarshal(object.Arguments, &call.Arguments) == nil: // JSON in a string already
	case json.Compact(&compact, object.Arguments) == nil:
		call.Arguments = compact.String()
	}
	return call, true
}
