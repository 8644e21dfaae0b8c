// Package chat turns the messages of a conversation into the prompt that a model was trained on, with the chat template
// that comes with the model, as apply_chat_template of transformers does. [Load] finds the template and the special
// tokens in the folder of a model or a build, [Parse] reads messages, tools and documents, and [Format.Render] makes
// the text. Encode it with its special tokens recognised and without adding others: the template writes them.
//
// The package is copied into every emitted launcher. It imports the standard library, runtime/infile and text/jinja,
// and must not import any other package of amkc.
package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"amkc/text/jinja"
)

// A Conversation is what a template formats. Values are those of JSON, whose objects keep the order of their keys.
type Conversation struct {
	Messages  *jinja.List // of objects: role, content, tool_calls and whatever else the template knows
	Tools     *jinja.List // of objects, JSON schemas of functions; nil without tools
	Documents *jinja.List // of objects; nil without documents
	Extra     *jinja.Dict // further variables of the template, such as enable_thinking; may be nil

	// AddGenerationPrompt asks for the start of the answer after the last message.
	AddGenerationPrompt bool
	// ContinueFinalMessage asks for a prompt that ends with the content of the last message, a string, for an answer
	// that continues it.
	ContinueFinalMessage bool
}

// Options are the inputs of a rendering besides the conversation.
type Options struct {
	Template string    // its name, where a model has several; empty: tool_use with tools, and else default
	Now      time.Time // the date that some templates print
	Limits   jinja.Limits
}

// fields are those of a conversation that is an object, which Parse reads.
var fields = []string{"messages", "tools", "documents", "add_generation_prompt", "continue_final_message",
	"chat_template_kwargs"}

// Parse reads a conversation in JSON: a list of messages, or an object with messages and optionally tools, documents,
// add_generation_prompt (true by default), continue_final_message and chat_template_kwargs, an object of
// additional variables.
func Parse(data []byte) (*Conversation, error) {
	v, err := jinja.FromJSON(data)
	if err != nil {
		return nil, err
	}
	c := &Conversation{AddGenerationPrompt: true}
	all, ok := v.(*jinja.Dict)
	if !ok {
		all = &jinja.Dict{}
		all.Set("messages", v)
	}
	for _, key := range all.Keys() {
		if !slices.Contains(fields, key) {
			return nil, fmt.Errorf("the conversation has a field %q; want a list of messages, or an object with %s",
				key, strings.Join(fields, ", "))
		}
	}
	for _, part := range []struct {
		name string
		to   **jinja.List
	}{{"messages", &c.Messages}, {"tools", &c.Tools}, {"documents", &c.Documents}} {
		if *part.to, err = objects(all, part.name); err != nil {
			return nil, err
		}
	}
	if c.Messages == nil || len(c.Messages.Items()) == 0 {
		return nil, fmt.Errorf(`there are no messages; want at least one, such as {"role": "user", "content": "..."}`)
	}
	if v, there := all.Get("add_generation_prompt"); there {
		if c.AddGenerationPrompt, ok = v.(bool); !ok {
			return nil, fmt.Errorf("add_generation_prompt is neither true nor false")
		}
	}
	if v, there := all.Get("continue_final_message"); there {
		if c.ContinueFinalMessage, ok = v.(bool); !ok {
			return nil, fmt.Errorf("continue_final_message is neither true nor false")
		}
		if _, both := all.Get("add_generation_prompt"); c.ContinueFinalMessage && c.AddGenerationPrompt && both {
			return nil, fmt.Errorf("continue_final_message and add_generation_prompt are both true; want one of them")
		}
	}
	if v, _ := all.Get("chat_template_kwargs"); v != nil {
		if c.Extra, err = variables(v); err != nil {
			return nil, fmt.Errorf("chat_template_kwargs %w", err)
		}
	}
	return c, nil
}

// ParseVariables reads further variables of a template, an object in JSON.
func ParseVariables(data []byte) (*jinja.Dict, error) {
	v, err := jinja.FromJSON(data)
	if err != nil {
		return nil, err
	}
	d, err := variables(v)
	if err != nil {
		return nil, fmt.Errorf("it %w", err)
	}
	return d, nil
}

// variables refuses anything but an object, and names that conversations have a field for.
func variables(v jinja.Value) (*jinja.Dict, error) {
	d, ok := v.(*jinja.Dict)
	if !ok {
		return nil, errors.New("is not an object")
	}
	for _, name := range d.Keys() {
		if slices.Contains(fields, name) {
			return nil, fmt.Errorf("has %q, which is set separately", name)
		}
	}
	return d, nil
}

// media are what parts of messages are called, or have, that are not text.
var media = []string{"image", "image_url", "input_image", "video", "video_url", "input_video", "audio", "audio_url",
	"input_audio"}

// OnlyText refuses a conversation in which a part of a message is an image, a video or a sound. The template of a model
// that takes one writes tokens instead, and the compiled model would read those as text.
func (c *Conversation) OnlyText() error {
	for i, item := range c.Messages.Items() {
		content, _ := item.(*jinja.Dict).Get("content")
		parts, ok := content.(*jinja.List)
		if !ok {
			continue
		}
		for _, v := range parts.Items() {
			part, ok := v.(*jinja.Dict)
			if !ok {
				continue
			}
			kind, _ := part.Get("type")
			for _, medium := range media {
				if _, has := part.Get(medium); has || kind == medium {
					return fmt.Errorf("number %d of messages has a part of type %q; want text, which is all that the "+
						"model reads", i+1, medium)
				}
			}
		}
	}
	return nil
}

// objects is a field that is a list of objects, or absent.
func objects(all *jinja.Dict, name string) (*jinja.List, error) {
	v, _ := all.Get(name)
	if v == nil {
		return nil, nil
	}
	list, ok := v.(*jinja.List)
	if !ok {
		return nil, fmt.Errorf("%s is not a list; want a list of objects", name)
	}
	for i, item := range list.Items() {
		if _, ok := item.(*jinja.Dict); !ok {
			return nil, fmt.Errorf("number %d of %s is not an object", i+1, name)
		}
	}
	return list, nil
}

// ErrNotContinued says that a prompt cannot end with the last message.
var ErrNotContinued = errors.New("the chat template does not write the last message once, as it is")

// Render returns the prompt of a conversation. Its errors are *jinja.Error if the template is invalid, or refuses
// the conversation, and [ErrNotContinued].
func (f *Format) Render(c *Conversation, o Options) (string, error) {
	if c.ContinueFinalMessage {
		return f.renderOpen(c, o)
	}
	return f.render(c, o)
}

// end marks the end of the last message. A template that trims contents leaves the spaces in front of it.
const end = "amkc-end-of-the-last-message"

// renderOpen returns the prompt of a conversation up to the end of the last message's content.
func (f *Format) renderOpen(c *Conversation, o Options) (string, error) {
	list := slices.Clone(c.Messages.Items())
	if len(list) == 0 {
		return "", ErrNotContinued
	}
	last := &jinja.Dict{}
	for given, i := list[len(list)-1].(*jinja.Dict), 0; i < len(given.Keys()); i++ {
		v, _ := given.Get(given.Keys()[i])
		last.Set(given.Keys()[i], v)
	}
	content, _ := last.Get("content")
	text, ok := content.(string)
	if !ok {
		return "", ErrNotContinued
	}
	last.Set("content", text+end)
	list[len(list)-1] = last
	open := *c
	open.Messages, open.AddGenerationPrompt = jinja.NewList(list...), false
	whole, err := f.render(&open, o)
	if err != nil {
		return "", err
	}
	prompt, _, _ := strings.Cut(whole, end)
	if strings.Count(whole, end) != 1 || !strings.HasSuffix(prompt, strings.TrimLeft(text, " \t\r\n")) {
		return "", ErrNotContinued
	}
	return prompt, nil
}

func (f *Format) render(c *Conversation, o Options) (string, error) {
	t, err := f.template(o.Template, c.Tools != nil)
	if err != nil {
		return "", err
	}
	variables := &jinja.Dict{}
	for _, from := range []*jinja.Dict{f.tokens, c.Extra} {
		if from == nil {
			continue
		}
		for _, name := range from.Keys() {
			v, _ := from.Get(name)
			variables.Set(name, v)
		}
	}
	messages := make([]jinja.Value, len(c.Messages.Items()))
	for i, m := range c.Messages.Items() {
		messages[i] = message(m.(*jinja.Dict))
	}
	variables.Set("messages", jinja.NewList(messages...))
	variables.Set("tools", orNone(c.Tools))
	variables.Set("documents", orNone(c.Documents))
	variables.Set("add_generation_prompt", c.AddGenerationPrompt)
	return t.Render(variables, jinja.Options{Now: o.Now, Limits: o.Limits})
}

func orNone(l *jinja.List) jinja.Value {
	if l == nil {
		return nil
	}
	return l
}

// reasoning are the names under which a message has what the model thought. The first is the one that templates read.
var reasoning = []string{"reasoning_content", "thinking", "reasoning"}

// message is a message as transformers hands it to a template: fields that are null are as good as absent, and what
// the model thought has the names that templates know.
func message(m *jinja.Dict) *jinja.Dict {
	out := &jinja.Dict{}
	var thought jinja.Value
	for i := len(reasoning) - 1; i >= 0; i-- {
		if v, _ := m.Get(reasoning[i]); v != nil {
			thought = v
		}
	}
	if thought != nil {
		out.Set("thinking", thought)
	}
	for _, key := range m.Keys() {
		if v, _ := m.Get(key); v != nil {
			out.Set(key, v)
		}
	}
	if thought != nil {
		out.Set("reasoning_content", thought)
	}
	return out
}
