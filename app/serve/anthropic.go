package serve

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"amkc/text/chat"
	"amkc/text/jinja"
)

// messagesPath is where Anthropic's Messages API begins.
const messagesPath = "/v1/messages"

// countFields are the fields of Anthropic's Messages API of which the prompt's length may depend, or which change
// nothing.
var countFields = map[string]field{
	"model":         modelName,
	"output_config": outputConfig,
	"cache_control": tolerated, // the cache keeps what it has room for
	"speed":         tolerated,
}

// anthropicFields are the fields of the Messages API, less those of its prompt.
var anthropicFields = with(without(with(sharedFields, countFields), "stop", "n", "stream_options", "store", "user",
	"safety_identifier", "prompt_cache_key", "prompt_cache_retention"), map[string]field{
	"stop_sequences": func(_ *Server, r *request, v value) (err error) {
		if r.stops, err = list[string](v, MaxStops, "a list of up to 16 strings that are not empty"); err != nil {
			return err
		}
		return r.checkStops(v)
	},
	"temperature": number(0, 1, temperature),
	"metadata": func(s *Server, _ *request, v value) error {
		err := named(v, func(name string, member value) error {
			if name != "user_id" {
				return unknown(member.name)
			}
			_, err := member.text()
			return err
		})
		if err == nil {
			s.hint(v.name)
		}
		return err
	},
	"thread": func(_ *Server, _ *request, v value) error {
		e := unsupported(v.name, "thread is not supported, as nothing is stored here; want messages with all of the "+
			"conversation")
		e.code = "thread_unsupported_request" // at which Anthropic's clients send all of it
		return e
	},
	"inference_geo":   tolerated,
	"user_profile_id": tolerated,
})

// blockFields are those that the prompt of a message is made of.
var blockFields = []string{"messages", "system", "tools", "tool_choice", "thinking", "chat_template_kwargs"}

// outputConfig reads what the answer has to be. Its effort is a variable of the template.
func outputConfig(s *Server, r *request, v value) error {
	return named(v, func(name string, member value) error {
		switch name {
		case "format":
			return s.format(r, member, "")
		case "effort":
			_, err := member.text()
			return err
		}
		return unknown(member.name)
	})
}

// fromBlocks is where the messages of Anthropic's API come from.
var fromBlocks = source{"messages", (*Server).blocks}

func (s *Server) createMessage(w http.ResponseWriter, r *http.Request) {
	var req *request
	var p *chatPrompt
	err := s.prepare(w, r, func(all map[string]value) (err error) {
		req, p, err = s.messageRequest(all)
		return err
	})
	if err != nil {
		refuse(w, r, err)
		return
	}
	s.complete(w, r, req, [][]int{p.ids}, s.anthropicForm(req, p, recordOf(r).usage))
}

// messageRequest reads a request of the Messages API.
func (s *Server) messageRequest(all map[string]value) (*request, *chatPrompt, error) {
	req := s.asked()
	left, err := req.read(s, all, anthropicFields, blockFields...)
	if err == nil && req.most < 0 {
		err = invalid("max_tokens", "there is no max_tokens; want an integer from 1 to %d", math.MaxInt32)
	}
	if err == nil {
		err = s.blocksInChat(req, all, left)
	}
	if err != nil {
		return nil, nil, err
	}
	p, err := s.conversing(req, fromBlocks, left)
	return req, p, err
}

// countTokens answers with the length of a prompt.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	var p *chatPrompt
	err := s.prepare(w, r, func(all map[string]value) error {
		req := s.asked()
		left, err := req.read(s, all, countFields, blockFields...)
		if err == nil {
			err = s.blocksInChat(req, all, left)
		}
		if err != nil {
			return err
		}
		p, err = s.chatPrompt(fromBlocks, left, req.form != nil)
		return err
	})
	if err != nil {
		refuse(w, r, err)
		return
	}
	send(w, http.StatusOK, "application/json", marshal(struct {
		Input int `json:"input_tokens"`
	}{len(p.ids)}))
}

// blocksInChat puts what the Messages API says of tools and effort as chat completions say it.
func (s *Server) blocksInChat(req *request, all, left map[string]value) (err error) {
	if v, said := all["output_config"]; said {
		err := named(v, func(name string, member value) error {
			if name == "effort" {
				left[effort] = member
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if v, said := left["tools"]; said {
		if left["tools"], err = s.nestedTools(v, blockTools); err != nil {
			return err
		}
	}
	if v, said := left["tool_choice"]; said {
		left["tool_choice"], err = blockChoice(req, v)
	}
	return err
}

// blockTools are tools as the Messages API has them.
var blockTools = toolForm{kind: "custom", untyped: true, schema: "input_schema",
	hints: []string{"cache_control", "eager_input_streaming"}}

// blockChoice makes a choice that of chat completions.
func blockChoice(req *request, v value) (value, error) {
	var kind, name string
	err := named(v, func(member string, of value) (err error) {
		switch member {
		case "type":
			kind, err = of.text()
		case "name":
			name, err = of.text()
		case "disable_parallel_tool_use":
			req.oneCall, err = of.bool()
		default:
			err = unknown(of.name)
		}
		return err
	})
	words := map[string]string{"auto": "auto", "any": "required", "none": "none"}
	switch word := words[kind]; {
	case err != nil:
		return v, err
	case word != "" && name == "":
		return value{v.name, marshal(word)}, nil
	case kind == "tool" && name != "":
		return value{v.name, marshal(function{"function", functionContents{Name: name}})}, nil
	}
	return v, unsupported(v.name, `tool_choice %s is not supported; want {"type": TYPE} of the type auto, any or `+
		`none, or {"type": "tool", "name": NAME}`, v.short())
}

// A blockKind is what content blocks of a type may have, and how they become messages.
type blockKind struct {
	members []string
	read    func(t *turns, at string, block *jinja.Dict) error
}

// blockKinds are those of a role, by their type. The members of all types change nothing.
var blockKinds = map[string]map[string]blockKind{
	"user": {
		"text":        {[]string{"text", "citations"}, (*turns).userText},
		"tool_result": {[]string{"tool_use_id", "content", "is_error"}, (*turns).toolResult},
	},
	"assistant": {
		"text":     {[]string{"text", "citations"}, (*turns).answerText},
		"thinking": {[]string{"thinking", "signature"}, (*turns).thinking},
		"tool_use": {[]string{"id", "name", "input"}, (*turns).toolUse},
	},
	"system": {
		"text": {[]string{"text", "citations"}, (*turns).systemText},
	},
}

// blocks reads system and messages of the Messages API. An answer continues a last message that is the assistant's.
func (s *Server) blocks(left map[string]value) ([]jinja.Value, error) {
	t := &turns{s: s}
	system, err := fromJSON(left, "system")
	if err != nil {
		return nil, err
	}
	if system != nil {
		if err := t.blocks("system", "system", system); err != nil {
			return nil, err
		}
	}
	list, err := objects(left, "messages")
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, invalid("messages", "there are no messages; want at least one")
	}
	for i, item := range list {
		at, m := fmt.Sprintf("messages[%d]", i), item.(*jinja.Dict)
		role, _ := textOf(m, "role")
		if blockKinds[role] == nil {
			return nil, invalid(at+".role", "%s.role is not as expected; want user, assistant or system", at)
		}
		for _, key := range m.Keys() {
			if key != "role" && key != "content" {
				where := at + "." + value{}.cut(key)
				return nil, unsupported(where, "%s is not supported; want role and content", where)
			}
		}
		content, _ := m.Get("content")
		if list, ok := content.(*jinja.List); ok && len(list.Items()) == 0 {
			return nil, invalid(at+".content", "%s.content has no blocks; want a string or at least one block", at)
		}
		if err := t.blocks(at+".content", role, content); err != nil {
			return nil, err
		}
		if i == len(list)-1 && role == "assistant" {
			left[continueFinal] = value{"messages", []byte("true")}
		}
	}
	return t.all, nil
}

// blocks reads a content: a text, or a list of blocks.
func (t *turns) blocks(at, role string, content jinja.Value) error {
	switch content := content.(type) {
	case string:
		block := &jinja.Dict{}
		block.Set("text", content)
		return blockKinds[role]["text"].read(t, at, block)
	case *jinja.List:
		for i, item := range content.Items() {
			if err := t.block(fmt.Sprintf("%s[%d]", at, i), role, item); err != nil {
				return err
			}
		}
		return nil
	}
	return invalid(at, "%s is not as expected; want a string or a list of content blocks", at)
}

// block reads a content block.
func (t *turns) block(at, role string, item jinja.Value) error {
	block, _ := item.(*jinja.Dict)
	if block == nil {
		return invalid(at, "%s is not an object", at)
	}
	name, _ := textOf(block, "type")
	kind, known := blockKinds[role][name]
	if !known {
		var want []string
		for name := range blockKinds[role] {
			want = append(want, name)
		}
		slices.Sort(want)
		return unsupported(at+".type", "%s is of type %q, which is not supported here; want %s", at, value{}.cut(name),
			strings.Join(want, ", "))
	}
	for _, key := range block.Keys() {
		member, _ := block.Get(key)
		switch {
		case member == nil || key == "type" || slices.Contains(kind.members, key):
		case key == "cache_control":
			t.s.hint(key)
		default:
			where := at + "." + value{}.cut(key)
			return unsupported(where, "%s is not supported; want none", where)
		}
	}
	return kind.read(t, at, block)
}

// say adds a text to a message. Texts that follow each other, of one message or of several of a role, are one message
// to the template, a line each.
func (t *turns) say(at, role string, block *jinja.Dict) error {
	text, err := required(at, block, "text")
	if err != nil {
		return err
	}
	if cites, _ := block.Get("citations"); cites != nil {
		if list, ok := cites.(*jinja.List); !ok || len(list.Items()) > 0 {
			return unsupported(at+".citations", "%s has citations, which no model here reads; want none", at)
		}
	}
	if n := len(t.all); n > 0 {
		last := t.all[n-1].(*jinja.Dict)
		before, _ := textOf(last, "content")
		of, _ := textOf(last, "role")
		if calls, _ := last.Get("tool_calls"); of == role && calls == nil {
			if before != "" {
				text[0] = before + "\n" + text[0]
			}
			last.Set("content", text[0])
			return nil
		}
	}
	m := t.add(role, text[0])
	if role == "assistant" {
		t.assistant = m
	}
	return nil
}

func (t *turns) userText(at string, block *jinja.Dict) error   { return t.say(at, "user", block) }
func (t *turns) answerText(at string, block *jinja.Dict) error { return t.say(at, "assistant", block) }
func (t *turns) systemText(at string, block *jinja.Dict) error { return t.say(at, "system", block) }

// thinking reads what was thought. The signature is not looked at.
func (t *turns) thinking(at string, block *jinja.Dict) error {
	text, err := required(at, block, "thinking")
	if err == nil && text[0] != "" {
		t.answer("reasoning_content", "content", "tool_calls").Set("reasoning_content", text[0])
	}
	return err
}

func (t *turns) toolUse(at string, block *jinja.Dict) error {
	given, err := required(at, block, "id", "name")
	if err != nil {
		return err
	}
	input, _ := block.Get("input")
	arguments, ok := input.(*jinja.Dict)
	if !ok {
		return invalid(at+".input", "%s.input is not an object", at)
	}
	if !t.s.reply.TextArguments() {
		t.calls(given[0], given[1], arguments)
		return nil
	}
	named := &jinja.Dict{}
	named.Set("tools", arguments)
	text, err := inJSON().Render(named, jinja.Options{})
	if err != nil {
		return invalid(at+".input", "%s.input cannot be written as JSON: %v", at, err)
	}
	t.calls(given[0], given[1], text)
	return nil
}

func (t *turns) toolResult(at string, block *jinja.Dict) error {
	id, err := required(at, block, "tool_use_id")
	if err != nil {
		return err
	}
	text := ""
	if content, _ := block.Get("content"); content != nil {
		if text, err = texts(at+".content", block, "content", "text"); err != nil {
			return err
		}
	}
	m := t.add("tool", text)
	m.Set("tool_call_id", id[0])
	if failed, _ := block.Get("is_error"); failed != nil {
		wrong, ok := failed.(bool)
		if !ok {
			return invalid(at+".is_error", "%s.is_error is not as expected; want true or false", at)
		}
		m.Set("is_error", wrong)
		if wrong && !t.s.chat.Mentions("is_error") { // the content says so too
			t.s.hint("is_error")
		}
	}
	return nil
}

// thinking reads whether to think, and sets the variable of the template that says so.
func (s *Server) thinking(c *chat.Conversation, left map[string]value) error {
	v, said := left["thinking"]
	if !said {
		return nil
	}
	kind := ""
	const budget = "thinking_budget"
	err := named(v, func(name string, member value) (err error) {
		switch name {
		case "type":
			kind, err = member.text()
		case "budget_tokens":
			var tokens int
			if tokens, err = member.integer(1, math.MaxInt32); s.chat.Mentions(budget) {
				c.Extra.Set(budget, int64(tokens))
			} else { // max_tokens is the limit
				s.hint(member.name)
			}
		case "display":
			var how string
			if how, err = member.text(); err == nil && how != "summarized" {
				err = unsupported(member.name, "%s %s is not supported: a thought comes as it is; want summarized, or "+
					"none", member.name, member.short())
			}
		default:
			err = unknown(member.name)
		}
		return err
	})
	switch _, thoughts := s.reply.Names(); {
	case err != nil:
		return err
	case kind == "adaptive": // as the template has it
		return nil
	case kind != "enabled" && kind != "disabled":
		return unsupported(v.name, "thinking of type %q is not supported; want enabled, disabled or adaptive",
			v.cut(kind))
	case kind == "disabled" && thoughts == "": // it does not think
		return nil
	}
	name, err := s.chat.Thinking(c, chat.Options{Now: s.now()})
	if err != nil {
		return unformatted("messages", err)
	}
	if name == "" {
		return unsupported(v.name, "thinking cannot be %s: the chat template of this model has no variable for it; "+
			"want adaptive, or none", kind)
	}
	c.Extra.Set(name, kind == "enabled")
	return nil
}
