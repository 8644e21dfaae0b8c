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

// Calls of tools that are read out of answers are those of Hermes, which Qwen and others took over: an object in JSON
// with a name and arguments, between two marks.
const (
	callOpens  = "<tool_call>"
	callCloses = "</tool_call>"
)

// writesCalls reports whether a chat template has a model write calls in that form, and whether the marks are text of
// answers, as special tokens are not. What stands between the marks is of another form in Qwen3-Coder and in GLM.
func writesCalls(f *chat.Format, t *tokenizer.Tokenizer) bool {
	ids, err := t.Encode(callOpens+callCloses, false)
	return f.Mentions(callOpens) && f.Mentions(callCloses) && f.Mentions("arguments") && !f.Mentions("<function=") &&
		!f.Mentions("<arg_key>") && err == nil && strings.Contains(t.Decode(ids, true), callOpens)
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

// A callReader finds calls in a text that comes in parts. What is no call after all stays text.
type callReader struct {
	inside bool   // behind an opening mark
	held   string // what may be the beginning of an opening mark, or what has come behind one
	after  bool   // a call was the last thing: spaces behind it belong to neither
	any    bool   // there was a call
}

// push takes the next part. It returns the text that is no part of a call, and the calls that are complete.
func (c *callReader) push(part string) (text string, calls []toolFunction) {
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
		} else if call, ok := readCall(before); ok {
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

// end returns what was held back.
func (c *callReader) end() (text string) {
	if c.inside {
		text = callOpens
	}
	text = c.say(text + c.held)
	c.inside, c.held = false, ""
	return text
}

// say drops the spaces behind a call.
func (c *callReader) say(text string) string {
	if c.after {
		text = strings.TrimLeft(text, " \t\r\n")
	}
	c.after = c.after && text == ""
	return text
}

// readCall reads what stands between the marks.
func readCall(text string) (call toolFunction, ok bool) {
	var object struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := infile.Unmarshal([]byte(text), &object); err != nil || object.Name == "" {
		return call, false
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
