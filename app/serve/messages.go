package serve

import (
	"fmt"
	"slices"
	"strings"

	"amkc/runtime/infile"
	"amkc/text/chat"
	"amkc/text/jinja"
)

// conversationFields are those that a prompt is made of.
var conversationFields = []string{"messages", "tools", "tool_choice", "documents", "chat_template_kwargs", effort,
	addGeneration, continueFinal}

// Fields that say where a prompt ends, as vLLM has them.
const (
	addGeneration = "add_generation_prompt"
	continueFinal = "continue_final_message"
)

// effort is a field of OpenAI's API, and the variable of templates that has its value.
const effort = "reasoning_effort"

// roles are those that a message may have.
var roles = []string{"system", "developer", "user", "assistant", "tool"}

// A source is where the messages of a conversation come from.
type source struct {
	field string
	read  func(*Server, map[string]value) ([]jinja.Value, error)
}

var fromMessages = source{"messages", (*Server).messages}

// messages reads those of chat completions.
func (s *Server) messages(left map[string]value) ([]jinja.Value, error) {
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
	return list, nil
}

// conversation reads messages and what goes with them for the chat template.
func (s *Server) conversation(from source, left map[string]value) (*chat.Conversation, error) {
	c := &chat.Conversation{AddGenerationPrompt: true}
	list, err := from.read(s, left)
	if err != nil {
		return nil, err
	}
	c.Messages = jinja.NewList(list...)
	if err := promptEnd(c, left); err != nil {
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
	return c, s.variables(c, left)
}

// promptEnd reads where the prompt ends: with the beginning of an answer, or without, or with the last message.
func promptEnd(c *chat.Conversation, left map[string]value) (err error) {
	add, said := left[addGeneration]
	if said {
		if c.AddGenerationPrompt, err = add.bool(); err != nil {
			return err
		}
	}
	open, wanted := left[continueFinal]
	if wanted {
		if c.ContinueFinalMessage, err = open.bool(); err != nil || !c.ContinueFinalMessage {
			return err
		}
		if said && c.AddGenerationPrompt {
			return invalid(open.name, "%s and %s are both true; want one of them", continueFinal, addGeneration)
		}
		c.AddGenerationPrompt = false
		list := c.Messages.Items()
		last := list[len(list)-1].(*jinja.Dict)
		role, _ := textOf(last, "role")
		_, isText := textOf(last, "content")
		if calls, _ := last.Get("tool_calls"); role != "assistant" || !isText || calls != nil {
			return invalid(open.name, "an answer continues a last message that is a text of the assistant; want one, "+
				"or a message of the user after it")
		}
	}
	return nil
}

// variables reads those of the template that a request sets.
func (s *Server) variables(c *chat.Conversation, left map[string]value) error {
	c.Extra = &jinja.Dict{}
	if v, said := left[effort]; said {
		text, err := v.text()
		if err != nil {
			return err
		}
		if !s.chat.Mentions(effort) {
			return unsupported(v.name, "the chat template of this model knows no reasoning_effort; want none. Some "+
				"know enable_thinking, which chat_template_kwargs may have")
		}
		c.Extra.Set(effort, text)
	}
	if err := s.thinking(c, left); err != nil {
		return err
	}
	extra, err := fromJSON(left, "chat_template_kwargs")
	if err != nil || extra == nil {
		return err
	}
	given, ok := extra.(*jinja.Dict)
	if !ok {
		return invalid("chat_template_kwargs", "chat_template_kwargs is not an object")
	}
	for _, name := range given.Keys() {
		param := "chat_template_kwargs." + name
		if slices.Contains([]string{"messages", "tools", "documents", addGeneration, continueFinal}, name) {
			return invalid(param, "chat_template_kwargs has %s, which a request states separately", name)
		}
		if !s.chat.Mentions(name) {
			return unsupported(param, "the chat template of this model knows no %s", name)
		}
		v, _ := given.Get(name)
		c.Extra.Set(name, v)
	}
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
	role, _ := textOf(m, "role")
	if !slices.Contains(roles, role) {
		return invalid(at+".role", "%s.role is not as expected; want one of %s", at, strings.Join(roles, ", "))
	}
	m.Set("role", s.role(role))
	content, _ := m.Get("content")
	calls, _ := m.Get("tool_calls")
	switch content := content.(type) {
	case string:
	case *jinja.List:
		text, err := parts(at+".content", content, "text")
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
	return s.arguments(at+".tool_calls", calls)
}

// role is a role as the template knows it.
func (s *Server) role(role string) string {
	if role == "developer" && !s.chat.Mentions(role) {
		return "system" // which OpenAI has renamed
	}
	return role
}

// parts joins the texts of a content that is a list of parts of one type, one to a line.
func parts(at string, list *jinja.List, want string) (string, error) {
	var texts []string
	for i, item := range list.Items() {
		part, _ := item.(*jinja.Dict)
		if part == nil {
			return "", invalid(at, "%s[%d] is not an object", at, i)
		}
		kind, _ := textOf(part, "type")
		text, isText := textOf(part, "text")
		switch {
		case kind != want:
			return "", unsupported(at, "%s[%d] is of type %q, and this server takes parts of type %s alone here", at,
				i, value{}.cut(kind), want)
		case !isText:
			return "", invalid(at, "%s[%d].text is not a string", at, i)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n"), nil
}

// arguments reads those of calls, which OpenAI's API has as JSON in a string, and few templates too.
func (s *Server) arguments(at string, calls jinja.Value) error {
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
			return invalid(at, "%s[%d] is not a call of a function", at, i)
		}
		given, _ := function.Get("arguments")
		if text, isText := given.(string); isText {
			v, err := s.argumentsOf(at, fmt.Sprintf("%s[%d].function.arguments", at, i), text)
			if err != nil {
				return err
			}
			function.Set("arguments", v)
		}
	}
	return nil
}

// argumentsOf are arguments as the template wants them.
func (s *Server) argumentsOf(param, at, text string) (jinja.Value, error) {
	v, err := jinja.FromJSON([]byte(text))
	if err != nil {
		return nil, invalid(param, "%s is not JSON: %s", at, infile.Reason(err))
	}
	if s.reply.TextArguments() {
		return text, nil
	}
	return v, nil
}

// textOf is the member of an object that is a string.
func textOf(d *jinja.Dict, name string) (string, bool) {
	v, _ := d.Get(name)
	text, ok := v.(string)
	return text, ok
}
