package serve

import (
	"fmt"
	"slices"

	"amkc/text/jinja"
)

// fromInput is where the messages of responses come from.
var fromInput = source{"input", (*Server).input}

// An itemKind is what items of a type may have, and how they become messages.
type itemKind struct {
	members []string
	read    func(t *turns, at string, item *jinja.Dict) error
}

// itemKinds are those of input, by their type.
var itemKinds = map[string]itemKind{
	"message":              {[]string{"role", "content"}, (*turns).message},
	"function_call":        {[]string{"call_id", "name", "arguments"}, (*turns).call},
	"function_call_output": {[]string{"call_id", "name", "output"}, (*turns).output},
	"reasoning":            {[]string{"content", "summary", "encrypted_content"}, (*turns).thought},
}

// turns are messages that items become: a thought, a text and calls that follow each other are one of the assistant's.
type turns struct {
	s         *Server
	all       []jinja.Value
	assistant *jinja.Dict // the last message, which further items belong to; nil: they do not
}

// input reads instructions and input of responses: a text, or items.
func (s *Server) input(left map[string]value) ([]jinja.Value, error) {
	const want = "a string or a list of items"
	t := &turns{s: s}
	if v, said := left["instructions"]; said {
		text, err := v.text()
		if err != nil {
			return nil, err
		}
		t.add("system", text)
	}
	v, err := fromJSON(left, "input")
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case string:
		t.add("user", v)
	case *jinja.List:
		if len(v.Items()) == 0 {
			return nil, invalid("input", "there are no items in input; want at least one")
		}
		for i, item := range v.Items() {
			if err := t.item(fmt.Sprintf("input[%d]", i), item); err != nil {
				return nil, err
			}
		}
	case nil:
		return nil, invalid("input", "there is no input; want %s", want)
	default:
		return nil, left["input"].unexpected(want)
	}
	return t.all, nil
}

// add adds a message.
func (t *turns) add(role string, content jinja.Value) *jinja.Dict {
	m := &jinja.Dict{}
	m.Set("role", t.s.role(role))
	m.Set("content", content)
	t.all, t.assistant = append(t.all, m), nil
	return m
}

// answer is the message of the assistant that an item belongs to. One that has any of some members is complete.
func (t *turns) answer(complete ...string) *jinja.Dict {
	if t.assistant == nil || slices.ContainsFunc(complete, func(name string) bool {
		v, _ := t.assistant.Get(name)
		return v != nil && v != ""
	}) {
		t.assistant = t.add("assistant", "")
	}
	return t.assistant
}

// item reads an item. Of what it may have, the members of all types change nothing.
func (t *turns) item(at string, v jinja.Value) error {
	item, _ := v.(*jinja.Dict)
	if item == nil {
		return invalid(at, "%s is not an object", at)
	}
	name, said := textOf(item, "type")
	if _, typed := item.Get("type"); !typed {
		name, said = "message", true
	}
	kind, known := itemKinds[name]
	switch {
	case !said:
		return invalid(at+".type", "%s.type is not a string", at)
	case name == "item_reference":
		return unsupported(at+".type", "%s refers to an item, and nothing is stored here; want the item itself", at)
	case !known:
		return unsupported(at+".type", "%s is of type %q, which is not supported; want message, function_call, "+
			"function_call_output or reasoning", at, value{}.cut(name))
	}
	for _, key := range item.Keys() {
		member, _ := item.Get(key)
		if member != nil && !slices.Contains([]string{"type", "id", "status"}, key) &&
			!slices.Contains(kind.members, key) {
			where := at + "." + value{}.cut(key)
			return unsupported(where, "%s is not supported; want none", where)
		}
	}
	return kind.read(t, at, item)
}

func (t *turns) message(at string, item *jinja.Dict) error {
	role, _ := textOf(item, "role")
	kind := "input_text"
	switch role {
	case "assistant":
		kind = "output_text"
	case "user", "system", "developer":
	default:
		return invalid(at+".role", "%s.role is not as expected; want one of system, developer, user, assistant", at)
	}
	text, err := texts(at+".content", item, "content", kind)
	if err != nil {
		return err
	}
	if role == "assistant" {
		t.answer("content", "tool_calls").Set("content", text)
	} else {
		t.add(role, text)
	}
	return nil
}

// texts reads a member that is a string, or a list of parts.
func texts(at string, item *jinja.Dict, name, kind string) (string, error) {
	v, _ := item.Get(name)
	switch v := v.(type) {
	case string:
		return v, nil
	case *jinja.List:
		return parts(at, v, kind)
	}
	return "", invalid(at, "%s is not as expected; want a string or a list of parts of type %s", at, kind)
}

// required reads members that have to be strings.
func required(at string, item *jinja.Dict, names ...string) ([]string, error) {
	all := make([]string, len(names))
	for i, name := range names {
		text, ok := textOf(item, name)
		if !ok {
			return nil, invalid(at+"."+name, "%s.%s is not a string", at, name)
		}
		all[i] = text
	}
	return all, nil
}

func (t *turns) call(at string, item *jinja.Dict) error {
	given, err := required(at, item, "call_id", "name", "arguments")
	if err != nil {
		return err
	}
	arguments, err := t.s.argumentsOf(at+".arguments", at+".arguments", given[2])
	if err != nil {
		return err
	}
	t.calls(given[0], given[1], arguments)
	return nil
}

// calls adds a call to the answer of the assistant.
func (t *turns) calls(id, name string, arguments jinja.Value) {
	function, call := &jinja.Dict{}, &jinja.Dict{}
	function.Set("name", name)
	function.Set("arguments", arguments)
	call.Set("id", id)
	call.Set("type", "function")
	call.Set("function", function)
	m := t.answer()
	var calls []jinja.Value
	if list, ok := m.Get("tool_calls"); ok {
		calls = list.(*jinja.List).Items()
	}
	m.Set("tool_calls", jinja.NewList(append(calls, call)...))
}

func (t *turns) output(at string, item *jinja.Dict) error {
	id, err := required(at, item, "call_id")
	if err != nil {
		return err
	}
	text, err := texts(at+".output", item, "output", "input_text")
	if err != nil {
		return err
	}
	m := t.add("tool", text)
	m.Set("tool_call_id", id[0])
	if name, said := textOf(item, "name"); said {
		m.Set("name", name)
	}
	return nil
}

// thought reads what was thought, which the template leaves out or not.
func (t *turns) thought(at string, item *jinja.Dict) error {
	if v, _ := item.Get("encrypted_content"); v != nil {
		return unsupported(at+".encrypted_content", "%s has encrypted_content, which this server does not write; want "+
			"content", at)
	}
	if v, _ := item.Get("summary"); v != nil {
		if list, ok := v.(*jinja.List); !ok || len(list.Items()) > 0 {
			return unsupported(at+".summary", "%s has a summary, which no model here reads; want [], and content", at)
		}
	}
	content, _ := item.Get("content")
	if content == nil {
		return nil
	}
	list, ok := content.(*jinja.List)
	if !ok {
		return invalid(at+".content", "%s.content is not a list of parts of type reasoning_text", at)
	}
	text, err := parts(at+".content", list, "reasoning_text")
	if err != nil {
		return err
	}
	if text != "" {
		t.answer("reasoning_content", "content", "tool_calls").Set("reasoning_content", text)
	}
	return nil
}
