package serve

import (
	"errors"
	"slices"
	"sync"

	"amkc/runtime/infile"
	"amkc/text/chat"
	"amkc/text/grammar"
	"amkc/text/jinja"
	"amkc/text/reply"
)

// A chatPrompt is what a conversation has become.
type chatPrompt struct {
	field string // of the request that the messages come from
	text  string
	ids   []int
	plain bool // the answer is text alone, without a thought or calls
	typed bool // it is calls alone, or what the request's format says

	asWritten bool   // a thought is text too
	begun     string // what the answer continues

	tools       *reply.Tools // that the model may call; nil: none
	forced      *reply.Forced
	forcedTools []reply.Tool // one of which the answer has to call; nil: it may be anything
	held        *reply.Held  // the form of calls, each of which is constrained to a schema; nil: they are not
}

// An answerReader tells thoughts, text and calls of an answer apart.
type answerReader interface {
	Push(part string) reply.Piece
	End() reply.Piece
	Called() bool
}

// A oneCallReader leaves out calls after the first, which come with it in a list.
type oneCallReader struct {
	answerReader
	had bool
}

func (r *oneCallReader) Push(part string) reply.Piece { return r.cut(r.answerReader.Push(part)) }
func (r *oneCallReader) End() reply.Piece             { return r.cut(r.answerReader.End()) }

func (r *oneCallReader) cut(p reply.Piece) reply.Piece {
	switch {
	case r.had:
		p.Calls = nil
	case len(p.Calls) > 0:
		p.Calls, r.had = p.Calls[:1], true
	}
	return p
}

// reader returns a reader of the answer, which has one call at most or any number of them.
func (p *chatPrompt) reader(s *Server, one bool) answerReader {
	var r answerReader
	switch {
	case p.forced != nil:
		r = p.forced.Reader()
	case p.plain:
		r = &reply.Reader{}
	default:
		answer := s.reply.Reader(p.text, p.tools).After(p.begun)
		if p.typed {
			answer.Alone()
		}
		if p.asWritten {
			answer.AsWritten()
		}
		r = answer
	}
	if one {
		return &oneCallReader{answerReader: r}
	}
	return r
}

// chatPrompt turns messages, and what goes with them, into a prompt; formed: of an answer that has a format, which is
// text alone unless there are tools.
func (s *Server) chatPrompt(from source, left map[string]value, formed bool) (*chatPrompt, error) {
	if s.chat == nil {
		e := unsupported(from.field, "this model has no chat template, which says how messages are formatted for it; "+
			"give a whole prompt to /v1/completions")
		e.code = "no_chat_template"
		return nil, e
	}
	c, err := s.conversation(from, left)
	if err != nil {
		return nil, err
	}
	p := &chatPrompt{field: from.field}
	if err := s.tools(p, c, left); err != nil {
		return nil, err
	}
	p.plain, p.typed = formed && p.tools == nil, formed && p.tools != nil && p.forcedTools == nil
	if err := p.ends(c, left); err != nil {
		return nil, err
	}
	if p.text, err = s.render(p.field, c); err != nil {
		return nil, err
	}
	if s.tokenizer.Least(p.text) > s.engine.Limits().MaxSeq { // before more is made of it
		return nil, s.tooLong(p.field, 0)
	}
	if p.tools != nil {
		if err := s.tellTools(p, c); err != nil {
			return nil, err
		}
	}
	switch {
	case p.forcedTools != nil:
		err = s.force(p, c)
	case p.typed, p.tools != nil && slices.ContainsFunc(p.tools.All(), func(t reply.Tool) bool { return t.Strict }):
		err = s.hold(p, c)
	}
	if err != nil {
		return nil, err
	}
	if p.plain {
		p.text = s.reply.CloseThought(p.text)
	}
	if p.ids, err = s.encode(p.field, p.text, false); err != nil {
		return nil, err
	}
	return p, s.fits(p.field, p.ids)
}

// ends refuses what does not go with a prompt that ends otherwise than with the beginning of an answer.
func (p *chatPrompt) ends(c *chat.Conversation, left map[string]value) error {
	strict := p.tools != nil && slices.ContainsFunc(p.tools.All(), func(t reply.Tool) bool { return t.Strict })
	switch {
	case c.ContinueFinalMessage && (p.plain || p.tools != nil):
		field := left[continueFinal].name
		return unsupported(field, "an answer that continues the last message is not supported alongside tools or a "+
			"format of the answer; want one of them, or tool_choice none")
	case !c.ContinueFinalMessage && !c.AddGenerationPrompt && (p.forcedTools != nil || p.typed || strict):
		return unsupported(addGeneration, "%s false is not supported alongside tools that are strict or that go with "+
			"a format of the answer, or a tool_choice that has the model call; want true, or none", addGeneration)
	case c.ContinueFinalMessage:
		list := c.Messages.Items()
		p.begun, _ = textOf(list[len(list)-1].(*jinja.Dict), "content")
	}
	return nil
}

// render formats messages, which come from a field.
func (s *Server) render(field string, c *chat.Conversation) (string, error) {
	text, err := s.chat.Render(c, chat.Options{Now: s.now()})
	if errors.Is(err, chat.ErrNotContinued) {
		return "", unsupported(field, "an answer cannot continue the last message: %v", err)
	}
	if err != nil {
		return "", unformatted(field, err)
	}
	return text, nil
}

// unformatted is what is wrong with messages, which come from a field, that the template refuses.
func unformatted(field string, err error) *apiError {
	return invalid(field, "the chat template does not format the messages: %v", err)
}

// maxTools is how many tools a request may have: whether the prompt has them takes a look through it for each.
const maxTools = 1024

// tools reads tools and tool_choice.
func (s *Server) tools(p *chatPrompt, c *chat.Conversation, left map[string]value) error {
	list, err := objects(left, "tools")
	if err != nil {
		return err
	}
	choice, name, err := toolChoice(left)
	if err != nil {
		return err
	}
	if len(list) == 0 && choice == "required" {
		return invalid("tool_choice", "tool_choice %s goes with tools", left["tool_choice"].short())
	}
	if len(list) == 0 || choice == "none" {
		return nil
	}
	if len(list) > maxTools {
		return invalid("tools", "tools has %d items; want at most %d", len(list), maxTools)
	}
	for i, item := range list {
		if kind, said := item.(*jinja.Dict).Get("type"); said && kind != "function" {
			return unsupported("tools", "tools[%d] is of a type that is not supported; want function", i)
		}
		if list[i], err = withoutStrict(item.(*jinja.Dict)); err != nil {
			return invalid("tools", "tools[%d].function.%v", i, err)
		}
	}
	if !s.chat.Mentions("tools") {
		return unsupported("tools", "the chat template of this model knows no tools")
	}
	if !s.reply.Calls() {
		return unsupported("tools", "this model writes calls of tools in a form that is not known; docs/serving.md "+
			"has those that are")
	}
	c.Tools = jinja.NewList(list...)
	p.tools = reply.ParseTools(left["tools"].raw)
	if choice != "required" {
		return nil
	}
	for _, tool := range p.tools.All() {
		if name == "" || tool.Name == name {
			p.forcedTools = append(p.forcedTools, tool)
		}
	}
	if p.forcedTools == nil {
		return invalid("tool_choice", "tool_choice names %q, which is not one of tools", value{}.cut(name))
	}
	return nil
}

// toolChoice reads tool_choice: none, auto, or required, perhaps with the name of the tool.
func toolChoice(left map[string]value) (choice, name string, err error) {
	v, said := left["tool_choice"]
	if !said {
		return "auto", "", nil
	}
	wrong := unsupported("tool_choice", "tool_choice %s is not supported; want none, auto, required, or "+
		`{"type": "function", "function": {"name": NAME}}`, v.short())
	if choice, err = v.text(); err == nil {
		if choice != "none" && choice != "auto" && choice != "required" {
			err = wrong
		}
		return choice, "", err
	}
	var named struct {
		Type     string
		Function struct{ Name string }
	}
	if infile.Unmarshal(v.raw, &named) != nil || named.Type != "function" || named.Function.Name == "" {
		return "", "", wrong
	}
	return "required", named.Function.Name, nil
}

// tellTools sees to it that the prompt has the tools. Some templates look for them in the system message: as a list, as
// the first GLM-4's does, or in JSON, as Phi-4-mini's.
func (s *Server) tellTools(p *chatPrompt, c *chat.Conversation) error {
	without := *c
	without.Tools = nil
	plain, err := s.render(p.field, &without)
	if err != nil || plain != p.text { // an error is one of a template that takes no conversation without tools
		return nil
	}
	list := c.Messages.Items()
	given := &jinja.Dict{}
	given.Set("role", "system")
	given.Set("content", "")
	if first := list[0].(*jinja.Dict); isSystem(first) {
		given, list = first, list[1:]
	}
	named := &jinja.Dict{}
	named.Set("tools", c.Tools)
	text, err := inJSON().Render(named, jinja.Options{})
	if err != nil {
		return invalid("tools", "tools cannot be written as JSON: %v", err)
	}
	for _, form := range []jinja.Value{c.Tools, text} {
		given.Set("tools", form)
		c.Messages = jinja.NewList(append([]jinja.Value{given}, list...)...)
		if text, err := s.render(p.field, c); err == nil && p.tools.NamedIn(text, plain) {
			p.text = text
			return nil
		}
	}
	return unsupported("tools", "the chat template of this model leaves tools out of this prompt")
}

// inJSON writes tools as templates do.
var inJSON = sync.OnceValue(func() *jinja.Template {
	t, err := jinja.Parse("{{ tools | tojson }}")
	if err != nil {
		panic(err) // it can always be read
	}
	return t
})

func isSystem(message *jinja.Dict) bool {
	role, _ := message.Get("role")
	return role == "system"
}

// force begins the answer with a call.
func (s *Server) force(p *chatPrompt, c *chat.Conversation) error {
	forced, err := s.reply.Force(c, chat.Options{Now: s.now()}, p.text, p.forcedTools)
	var refused *jinja.Error
	switch {
	case errors.Is(err, reply.ErrNotForced):
		return unsupported("tool_choice", "tool_choice that has the model call a tool is not supported for this "+
			"model: %v", err)
	case errors.As(err, &refused):
		return unsupported("tool_choice", "tool_choice that has the model call a tool is not supported here: the chat "+
			"template does not format a call after the messages: %v", err)
	case err != nil:
		return err
	}
	for _, before := range forced.Before {
		ids, err := s.encode("tools", before, false)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if s.tokenizer.IsSpecial(id) {
				return unsupported("tool_choice", "tool_choice required among several tools is not supported for this "+
					"model, which writes a special token after the name of a tool; want tool_choice to name one")
			}
		}
	}
	p.forced, p.text = forced, forced.Prompt
	return nil
}

// callGrammar is what a call has to be from where the prompt ends.
func (s *Server) callGrammar(forced *reply.Forced) (*grammar.Grammar, error) {
	vocabulary, err := s.vocabulary()
	if err != nil {
		return nil, unsupported("tool_choice", "tool_choice that has the model call a tool is not supported for this "+
			"model: %v", err)
	}
	var options []grammar.Option
	for i, tool := range forced.Tools {
		options = append(options, option(tool, forced.Before[i]))
	}
	g, err := s.grammars.of("call", options, func() (*grammar.Grammar, error) {
		return grammar.Options(vocabulary, options)
	})
	var refused *grammar.Error
	if errors.As(err, &refused) {
		return nil, schemaFault("tools", refused, "tool_choice constrains the answer to the schemas of tools: %s")
	}
	return g, err
}
