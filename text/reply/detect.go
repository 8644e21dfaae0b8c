package reply

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"amkc/text/chat"
	"amkc/text/jinja"
)

// A Format describes how a model writes calls and thoughts, as far as its chat template says. It may be used
// concurrently.
type Format struct {
	chat     *chat.Format
	calls    *form        // nil: it is not known to call tools
	thoughts *thoughtForm // nil: it is not known to think

	textArguments bool // the template wants arguments of calls as JSON in a string
}

// What the template is asked to write.
const (
	probeText  = "amkc probe"
	probeTool  = "amkc_probe_tool"
	probeKey   = "amkc_probe_argument"
	probeID    = "callprobe" // Mistral wants nine letters and digits
	probeTools = `[{"type": "function", "function": {"name": "` + probeTool + `", "description": "A tool.",
		"parameters": {"type": "object", "required": ["` + probeKey + `"], "properties": {
			"` + probeKey + `": {"type": "string", "description": "Any."},
			"count": {"type": "integer", "description": "Any."}, "all": {"type": "boolean", "description": "Any."},
			"names": {"type": "array", "items": {"type": "string"}, "description": "Any."}}}}}]`
	probeArguments = `{"` + probeKey + `": "some text", "count": 3, "all": true, "names": ["x", "y"]}`
	probeThought   = "amkc thought"
)

// Limits of what a template may take to say how a model writes: a tenth and less of what a conversation may.
var probeLimits = jinja.Limits{Steps: 500_000, Memory: 32 << 20, Output: 1 << 20, Depth: 200}

// Of detects the format of a model: the form that parses a call, and a thought, as the chat template renders them. If
// the template renders none, it is the form whose markers the template contains.
func Of(f *chat.Format) *Format {
	out := &Format{chat: f}
	tools := ParseTools([]byte(probeTools))
	written := false
	prompt, _ := render(f, "", true, true)
	for _, asText := range []bool{false, true} {
		for _, content := range []string{`"content": "", `, ""} {
			whole, err := render(f, `, {"role": "assistant", `+content+`"tool_calls": [`+probeCall(asText)+`]}`, true,
				false)
			if err != nil || out.calls != nil {
				continue
			}
			answer := whole[strings.LastIndex(whole, probeText)+1:]
			written = written || tools.NamedIn(whole, prompt)
			out.calls = readBack(prompt, whole, answer, tools)
			out.textArguments = asText && out.calls != nil
		}
	}
	if out.calls == nil && !written {
		out.calls = mentioned(f)
	}
	out.thoughts = thinkingOf(f)
	return out
}

// probeCall is a call as messages have it.
func probeCall(asText bool) string {
	given := probeArguments
	if asText {
		given = quoted(given)
	}
	return `{"id": "` + probeID + `", "type": "function", "function": {"name": "` + probeTool + `", "arguments": ` +
		given + `}}`
}

// render renders a conversation of one question, and more.
func render(f *chat.Format, more string, tools, generate bool) (string, error) {
	text := `{"messages": [{"role": "user", "content": "` + probeText + `"}` + more + `]`
	if tools {
		text += `, "tools": ` + probeTools
	}
	if !generate {
		text += `, "add_generation_prompt": false`
	}
	c, err := chat.Parse([]byte(text + "}"))
	if err != nil {
		return "", err
	}
	return f.Render(c, chat.Options{Now: time.Unix(0, 0), Limits: probeLimits})
}

// readBack finds the form in which the probe's call is what it was.
func readBack(prompt, whole, answer string, tools *Tools) *form {
	for _, f := range forms {
		text := answer
		if f.bare() {
			var begins bool
			if text, begins = strings.CutPrefix(whole, prompt); !begins || prompt == "" {
				continue
			}
		}
		r := newCallReader(f, "", tools)
		_, calls := r.push(text)
		_, more := r.end()
		if calls = append(calls, more...); len(calls) == 1 && calls[0].Name == probeTool &&
			equalJSON(calls[0].Arguments, probeArguments) {
			return f
		}
	}
	return nil
}

func equalJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// mentioned finds the form whose words a template has.
func mentioned(f *chat.Format) *form {
	for _, candidate := range forms {
		all := candidate.words != nil
		for _, word := range candidate.words {
			all = all && f.Mentions(word)
		}
		if all {
			return candidate
		}
	}
	return nil
}

// thinkingOf finds how a model thinks: by what the template writes of a message with a thought, or by the closing mark,
// where it looks for that in texts.
func thinkingOf(f *chat.Format) *thoughtForm {
	whole, _ := render(f, `, {"role": "assistant", "content": "fine", "reasoning_content": "`+probeThought+`"}`, false,
		false)
	before, after, written := strings.Cut(whole, probeThought)
	for _, t := range thoughtForms {
		if written && strings.HasSuffix(strings.TrimRight(before, spaces), t.open) &&
			strings.HasPrefix(strings.TrimLeft(after, spaces), t.close) {
			return t
		}
	}
	for _, t := range thoughtForms {
		if f.Mentions(t.close) {
			return t
		}
	}
	return nil
}

// Calls reports whether calls of tools can be read.
func (f *Format) Calls() bool { return f.calls != nil }

// Names names the forms in which the model writes calls and thoughts, for display; empty if none is known.
func (f *Format) Names() (calls, thoughts string) {
	if f.calls != nil {
		calls = f.calls.name
	}
	if f.thoughts != nil {
		thoughts = f.thoughts.open
	}
	return calls, thoughts
}

// TextArguments reports whether the template takes arguments of earlier calls as JSON in a string instead of values.
func (f *Format) TextArguments() bool { return f.textArguments }

// A Tokenizer encodes a text, and reports which ids are special tokens.
type Tokenizer interface {
	Encode(text string, addSpecial bool) ([]int, error)
	IsSpecial(id int) bool
}

// Shown returns the special tokens among the markers that a Reader needs; tools reports whether it parses calls.
func (f *Format) Shown(t Tokenizer, tools bool) (all []int) {
	var marks []string
	if f.thoughts != nil {
		marks = append(marks, f.thoughts.open, f.thoughts.close, f.thoughts.answer.open, f.thoughts.answer.close)
	}
	if f.calls != nil && tools {
		marks = append(marks, f.calls.marks()...)
	}
	for _, mark := range marks {
		ids, err := t.Encode(mark, false)
		if err != nil {
			continue // a tokenizer without characters of it has no answer with it either
		}
		for _, id := range ids {
			if t.IsSpecial(id) && !slices.Contains(all, id) {
				all = append(all, id)
			}
		}
	}
	return all
}
