package reply

import (
	"errors"
	"strings"

	"amkc/text/chat"
)

// A Held form describes calls within unconstrained answers, so that each call can be constrained to the schema of its
// tool.
type Held struct {
	Mark   string   // in front of a call
	Before []string // of each tool: what stands between the mark and the arguments
	After  string   // brackets after these, up to where the call ends
	Never  []string // marks that other models of the form begin calls with
	Prose  string   // after the mark: what follows is text; empty: there is no such thing
	Within bool     // the prompt ends with the mark

	Separators string // bytes that may stand between calls, besides spaces
	Again      bool   // a bracket after a call begins another one

	First   string   // of answers that are calls alone or have none: what begins the first call, the mark included
	Closers []string // and what may stand after calls

	Open, Close string // around a thought that an answer may begin with; empty: there is none
	Thinking    bool   // the prompt has opened one
}

// ErrNotHeld reports that the beginning of a call cannot be recognised.
var ErrNotHeld = errors.New("nothing marks where the model's calls begin")

// HoldAlone is Hold for answers that are calls and nothing else, perhaps after a thought, or have none. In those a call
// needs no mark. They are read by [Reader.Alone].
func (f *Format) HoldAlone(c *chat.Conversation, o chat.Options, rendered string, tools []Tool) (*Held, error) {
	return f.hold(c, o, rendered, tools, true)
}

// Hold returns the form of calls of some tools in the answer to a conversation, as the template writes them. rendered
// is the prompt. Errors are [ErrNotForced], [ErrNotHeld], and those of the template.
func (f *Format) Hold(c *chat.Conversation, o chat.Options, rendered string, tools []Tool) (*Held, error) {
	return f.hold(c, o, rendered, tools, false)
}

func (f *Format) hold(c *chat.Conversation, o chat.Options, rendered string, tools []Tool, alone bool) (*Held, error) {
	form := f.calls
	if form == nil || form.bare() && !alone {
		return nil, ErrNotHeld
	}
	whole, name, brace, err := f.written(c, o, rendered)
	if err != nil {
		return nil, err
	}
	held := &Held{Separators: form.separators, Again: form.header == ""}
	after := -1 // the mark
	for _, mark := range form.opens() {
		if at := strings.LastIndex(whole[:name], mark); at >= 0 && at+len(mark) > after {
			held.Mark, after = mark, at+len(mark)
		}
	}
	first := held.Mark // what is in front of the first call
	if alone {
		first = form.wrap.open + held.Mark
		switch said, begins := strings.CutPrefix(whole, rendered); {
		case begins && form.bare():
			held.Mark, first, after = "", "", len(whole)-len(strings.TrimLeft(said, spaces))
		case form.bare():
			return nil, ErrNotHeld
		case begins && after > len(rendered):
			first = strings.TrimLeft(whole[len(rendered):after], spaces)
		}
		held.First = first
		for _, mark := range append(form.closes(), form.wrap.close) {
			if mark != "" {
				held.Closers = append(held.Closers, mark)
			}
		}
	}
	body := after
	if form.header != "" {
		at := strings.Index(whole[name:brace], form.header)
		if at < 0 {
			return nil, ErrNotHeld
		}
		body = name + at + len(form.header)
	}
	if after < 0 || form.kind != value {
		return nil, ErrNotHeld
	}
	held.After = closers(whole[body:brace])
	for _, mark := range form.opens() {
		if mark != held.Mark {
			held.Never = append(held.Never, mark)
		}
	}
	if form.prose != "" {
		held.Prose = form.prose + form.header
	}
	held.Within = !form.bare() && strings.HasSuffix(rendered, form.call.open)
	if f.thoughts != nil {
		held.Open, held.Close = f.thoughts.open, f.thoughts.close
		held.Thinking = newThoughtReader(f.thoughts, rendered).at == inThought
	}
	known := &Tools{tools}
	for _, tool := range tools {
		before := strings.ReplaceAll(whole[after:brace], probeTool, tool.Name)
		r := newCallReader(form, "", known)
		r.alone = alone
		_, calls := r.push(first + before + "{}" + held.After)
		if len(calls) != 1 || calls[0] != (Call{tool.Name, "{}"}) {
			return nil, ErrNotHeld // it would not be read as a call of this tool
		}
		held.Before = append(held.Before, before)
	}
	return held, nil
}

// closers are the brackets that close those which a beginning of JSON has opened.
func closers(text string) string {
	var open []byte
	quoted, escaped := false, false
	for _, b := range []byte(text) {
		switch {
		case escaped:
			escaped = false
		case quoted && b == '\\':
			escaped = true
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{' || b == '[':
			open = append([]byte{b + 2}, open...) // which is its counterpart in ASCII
		case (b == '}' || b == ']') && len(open) > 0:
			open = open[1:]
		}
	}
	return string(open)
}
