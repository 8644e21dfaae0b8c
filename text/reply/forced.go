package reply

import (
	"errors"
	"slices"
	"strings"

	"amkc/text/chat"
	"amkc/text/jinja"
)

// A Forced call makes an answer a call: the prompt ends with the beginning of the call, as the template writes it up to
// the arguments, and the answer is constrained to the schema of a tool.
type Forced struct {
	Prompt string // up to the name of the tool, or with one tool up to the arguments
	Tools  []Tool
	Before []string // of each tool: what stands between the prompt and the arguments
}

// A ForcedReader reads the answer.
type ForcedReader struct {
	*Forced
	text   strings.Builder
	called bool
}

// Reader returns a reader of one answer.
func (f *Forced) Reader() *ForcedReader { return &ForcedReader{Forced: f} }

// ErrNotForced reports that a template does not write arguments as JSON, or not where they can be found.
var ErrNotForced = errors.New("the model's calls do not have their arguments as JSON")

// Force returns the prompt of a conversation whose answer is a call of one of some tools. rendered is the prompt for an
// unconstrained answer.
func (f *Format) Force(c *chat.Conversation, o chat.Options, rendered string, tools []Tool) (*Forced, error) {
	whole, name, brace, err := f.written(c, o, rendered)
	if err != nil {
		return nil, err
	}
	forced := &Forced{Prompt: whole[:name], Tools: tools}
	for _, tool := range tools {
		forced.Before = append(forced.Before, strings.ReplaceAll(whole[name:brace], probeTool, tool.Name))
	}
	if len(tools) == 1 {
		forced.Prompt += forced.Before[0]
		forced.Before[0] = ""
	}
	return forced, nil
}

// written has the template write a call after a conversation, and finds the name of the tool in it, and the bracket
// that the arguments begin with.
func (f *Format) written(c *chat.Conversation, o chat.Options, rendered string) (whole string, name, brace int,
	err error) {
	if strings.Contains(rendered, probeTool) || strings.Contains(rendered, probeKey) {
		return "", 0, 0, ErrNotForced // by chance: it is not to be told from the call
	}
	message, err := jinja.FromJSON([]byte(`{"role": "assistant", "content": "", "tool_calls": [` +
		probeCall(f.textArguments) + `]}`))
	if err != nil {
		return "", 0, 0, err
	}
	with := *c
	with.Messages = jinja.NewList(append(slices.Clone(c.Messages.Items()), message)...)
	with.AddGenerationPrompt = false
	if whole, err = f.chat.Render(&with, o); err != nil {
		return "", 0, 0, err
	}
	name = strings.Index(whole, probeTool)
	key := strings.Index(whole, `"`+probeKey+`"`)
	if name < 0 || key < name {
		return "", 0, 0, ErrNotForced
	}
	brace = strings.LastIndexByte(whole[:key], '{')
	if brace < name || strings.Trim(whole[brace+1:key], spaces) != "" {
		return "", 0, 0, ErrNotForced
	}
	return whole, name, brace, nil
}

// Push takes the next part of the answer.
func (f *ForcedReader) Push(part string) Piece {
	f.text.WriteString(part)
	return Piece{}
}

// End returns the call, whose arguments are incomplete if the answer was truncated.
func (f *ForcedReader) End() Piece {
	text := f.text.String()
	for i, tool := range f.Tools {
		if given, ok := strings.CutPrefix(text, f.Before[i]); ok {
			f.called = true
			return Piece{Calls: []Call{{tool.Name, given}}}
		}
	}
	return Piece{Text: text, At: []Span{{0, len(text)}}}
}

// Called reports whether the answer has a call with at least the beginning of its arguments.
func (f *ForcedReader) Called() bool { return f.called }
