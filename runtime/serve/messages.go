package serve

import (
	"fmt"
	"slices"
	"strings"

	"amkc/runtime/chat"
	"amkc/runtime/infile"
	"amkc/runtime/jinja"
)

// conversationFields are those that a prompt is made of.
var conversationFields = []string{"messages", "tools", "tool_choice", "documents", "chat_template_kwargs"}

// roles are those that a message may have.
var roles = []string{"system", "developer", "user", "assistant", "tool"}

// conversation reads messages and what goes with them for the chat template.
func (s *Server) conversation(left map[string]value) (*chat.Conversation, error) {
	c := &chat.Conversation{AddGenerationPrompt: true}
	list, err := objects(left, "messages")
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, invalid("messages", "there are no messages; want at least one")
	}
	for i, m := range list {
		if err := s.message(fmt.Sprintf("messages[%d]", i), m.(*jinja.Dict)); err != nil {
			return nil, err
		}
	}
	c.Messages = jinja.NewList(list...)
	if err := s.tools(c, left); err != nil {
		return nil, err
	}
	documents, err := objects(left, "documents")
	if err != nil {
		return nil, err
	}
	if documents != nil {
		if !s.chat.Mentions("documents") {
			return nil, unsupported("documents", "the chat template of this model knows no documents")
		}
		c.Documents = jinja.NewList(documents...)
	}
	extra, err := fromJSON(left, "chat_template_kwargs")
	if err != nil || extra == nil {
		return c, err
	}
	var ok bool
	if c.Extra, ok = extra.(*jinja.Dict); !ok {
		return nil, invalid("chat_template_kwargs", "chat_template_kwargs is not an object")
	}
	for _, name := range c.Extra.Keys() {
		param := "chat_template_kwargs." + name
		if slices.Contains([]string{"messages", "tools", "documents", "add_generation_prompt"}, name) {
			return nil, invalid(param, "chat_template_kwargs has %s, which a request says by itself", name)
		}
		if !s.chat.Mentions(name) {
			return nil, unsupported(param, "the chat template of this model knows no %s", name)
		}
	}
	return c, nil
}

// tools reads tools and tool_choice.
func (s *Server) tools(c *chat.Conversation, left map[string]value) error {
	list, err := objects(left, "tools")
	if err != nil {
		return err
	}
	choice := "auto"
	if v, said := left["tool_choice"]; said {
		if choice, err = v.text(); err != nil || choice != "none" && choice != "auto" {
			return unsupported("tool_choice", "tool_choice %s is not supported; want none or auto", v.short())
		}
	}
	if len(list) == 0 || choice == "none" {
		return nil
	}
	if !s.chat.Mentions("tools") {
		return unsupported("tools", "the chat template of this model knows no tools")
	}
	if s.calls == nil {
		return unsupported("tools", "this model writes calls of tools in a form that is not read; want a model whose "+
			"chat template has them as JSON, between %s and %s or alone as Llama 3 does", callOpens, callCloses)
	}
	c.Tools = jinja.NewList(list...)
	return nil
}

// objects is a field that is a list of objects, nil if it is absent.
func objects(left map[string]value, name string) ([]jinja.Value, error) {
	v, err := fromJSON(left, name)
	if err != nil || v == nil {
		return nil, err
	}
	list, ok := v.(*jinja.List)
	if !ok {
		return nil, invalid(name, "%s is not a list of objects", name)
	}
	for i, item := range list.Items() {
		if _, ok := item.(*jinja.Dict); !ok {
			return nil, invalid(name, "%s[%d] is not an object", name, i)
		}
	}
	return list.Items(), nil
}

func fromJSON(left map[string]value, name string) (jinja.Value, error) {
	field, said := left[name]
	if !said {
		return nil, nil
	}
	v, err := jinja.FromJSON(field.raw)
	if err != nil {
		return nil, invalid(name, "%s cannot be read: %s", name, infile.Reason(err))
	}
	return v, nil
}

// message makes of a message of OpenAI's API one that templates know: its content is a string, and the arguments of
// calls are values. at is where it stands in the request.
func (s *Server) message(at string, m *jinja.Dict) error {
	v, _ := m.Get("role")
	role, _ := v.(string)
	if !slices.Contains(roles, role) {
		return invalid(at+".role", "%s.role is not as expected; want one of %s", at, strings.Join(roles, ", "))
	}
	if role == "developer" && !s.chat.Mentions(role) {
		m.Set("role", "system") // which OpenAI has renamed
	}
	content, _ := m.Get("content")
	calls, _ := m.Get("tool_calls")
	switch content := content.(type) {
	case string:
	case *jinja.List:
		text, err := parts(at+".content", content)
		if err != nil {
			return err
		}
		m.Set("content", text)
	case nil:
		if role != "assistant" || calls == nil {
			return invalid(at+".content", "%s.content is missing; want a string or a list of text parts", at)
		}
	default:
		return invalid(at+".content", "%s.content is not as expected; want a string or a list of text parts", at)
	}
	return arguments(at+".tool_calls", calls)
}

// parts joins the texts of a content that is a list, one to a line.
func parts(at string, list *jinja.List) (string, error) {
	var texts []string
	for i, item := range list.Items() {
		part, _ := item.(*jinja.Dict)
		if part == nil {
			return "", invalid(at, "%s[%d] is not an object", at, i)
		}
		v, _ := part.Get("type")
		kind, _ := v.(string)
		v, _ = part.Get("text")
		text, isText := v.(string)
		switch {
		case kind != "text":
			return "", unsupported(at, "%s[%d] is of type %q, and this server takes parts of type text alone", at, i,
				value{}.cut(kind))
		case !isText:
			return "", invalid(at, "%s[%d].text is not a string", at, i)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n"), nil
}

// arguments reads those of calls, which OpenAI's API has as JSON in a string.
func arguments(at string, calls jinja.Value) error {
	if calls == nil {
		return nil
	}
	list, ok := calls.(*jinja.List)
	if !ok {
		return invalid(at, "%s is not a list", at)
	}
	for i, item := range list.Items() {
		call, _ := item.(*jinja.Dict)
		var function *jinja.Dict
		if call != nil {
			v, _ := call.Get("function")
			function, _ = v.(*jinja.Dict)
		}
		if function == nil {
			return invalid(at, "%s[%d] is no call of a function", at, i)
		}
		given, _ := function.Get("arguments")
		if text, isText := given.(string); isText {
			v, err := jinja.FromJSON([]byte(text))
			if err != nil {
				return invalid(at, "%s[%d].function.arguments is not JSON: %s", at, i, infile.Reason(err))
			}
			function.Set("arguments", v)
		}
	}
	return nil
}
