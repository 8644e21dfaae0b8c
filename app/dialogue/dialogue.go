// Package dialogue is a conversation with a model in a terminal, or line by line in a pipe. The chat template turns the
// conversation into a prompt, and the answer is printed as it is generated. A model without a template continues the
// text of the conversation. When the context is full the oldest turns are dropped, and the user is told.
//
// The cache is kept between turns: the prefix that a prompt shares with the tokens in the cache is not decoded again.
// The output of the model is written to a file or a pipe unchanged. On a terminal, control characters in it are
// escaped, and its reasoning before an answer is shown faint.
//
// The package is copied into every emitted launcher. It imports the standard library, text/chat, runtime/host,
// text/jinja, runtime/printable, runtime/progress, text/reply, text/sampling and text/tokenizer, and must not import
// any other package of amkc.
package dialogue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"amkc/runtime/host"
	"amkc/runtime/printable"
	"amkc/runtime/progress"
	"amkc/text/chat"
	"amkc/text/jinja"
	"amkc/text/reply"
	"amkc/text/sampling"
	"amkc/text/tokenizer"
)

// A Decoder decodes one sequence, as a session on a GPU does.
type Decoder interface {
	sampling.Feeder
	// Complete decodes a prompt at the decoder's position, and up to n tokens after it until one of stops, which the
	// decoder chooses (see [sampling.Chooser]), and gives each to emit.
	Complete(ctx context.Context, prompt []int, n int, stops []int, emit func(id int) error) (host.Completion, error)
	// Position returns the position of the next token; the cache holds the rows before it.
	Position() int
	// Rewind makes an earlier position the next.
	Rewind(position int) error
}

// Config configures a conversation.
type Config struct {
	Tokenizer *tokenizer.Tokenizer
	Format    *chat.Format     // nil: the model has no chat template, and continues text
	Stops     []int            // ids after which an answer ends
	Sampling  sampling.Options // how tokens are chosen
	System    string           // a first message that says how to answer; empty for none
	Think     *bool            // whether the model is to think before it answers; nil: as the template has it
	Variables *jinja.Dict      // of the template; may be nil
	MaxTokens int              // of an answer; 0: as many as there are positions for, or Continued without a template
	Stats     bool             // say after each answer how fast it was
	Quiet     bool             // say nothing but what went wrong
	Now       time.Time        // the date that templates print, for all of the conversation

	In          io.Reader // each line is a message
	Editor      Editor    // messages come from here instead, where it is not nil
	Out, Err    io.Writer
	Interrupts  <-chan os.Signal // each stops an answer; at the prompt the second in a row ends the conversation
	Interactive bool             // somebody sits there: there is a prompt, and what goes wrong is said and not the end
}

// Continued is the default number of tokens that a model without a chat template generates after a message: few such
// models end a text themselves.
const Continued = 256

// An Error is a message that cannot be answered. It was printed if the conversation is interactive, and ends it if not.
type Error struct{ What string }

func (e *Error) Error() string { return e.What }

// A Dialogue is a conversation.
type Dialogue struct {
	Config
	messages []jinja.Value
	shown    bool // Out is a terminal
	reply    *reply.Format
	marks    []int  // special tokens around thoughts
	thinking string // the variable of the template that turns thinking on and off; empty: it has none

	decoder       Decoder
	vocab, maxSeq int
	held          []int // ids whose rows the decoder's cache has
	last          *stats
}

// New returns an empty conversation. Settings that the template does not support are refused with an *Error, before a
// model is loaded.
func New(c Config) (*Dialogue, error) {
	d := &Dialogue{Config: c, shown: progress.IsTerminal(c.Out)}
	if c.Format == nil {
		return d.withoutTemplate()
	}
	d.reply = reply.Of(c.Format)
	d.marks = d.reply.Shown(c.Tokenizer, false)
	d.clear()
	if c.Variables != nil {
		for _, name := range c.Variables.Keys() {
			if !c.Format.Mentions(name) {
				return nil, &Error{fmt.Sprintf("the chat template of the model has no variable %q", name)}
			}
		}
	}
	const hello = "hello"
	text, err := d.render(append(d.messages, message("user", hello)))
	switch system := strings.TrimSpace(c.System); {
	case err != nil && c.System != "":
		return nil, &Error{fmt.Sprintf("the chat template does not format a conversation with a system message: %v",
			err)}
	case err != nil:
		return nil, &Error{fmt.Sprintf("the chat template does not format a conversation: %v", err)}
	case !strings.Contains(text, system):
		return nil, &Error{"the chat template of the model leaves system messages out"}
	case !strings.Contains(text, hello):
		return nil, &Error{"the chat template of the model leaves out what the user says"}
	}
	asked := &chat.Conversation{Messages: jinja.NewList(append(d.messages, message("user", hello))...),
		Extra: c.Variables}
	if d.thinking, err = c.Format.Thinking(asked, chat.Options{Now: c.Now}); err != nil {
		d.thinking = "" // a value of a variable that the template refuses
	}
	if d.thinking == "" && c.Think != nil {
		return nil, &Error{noSwitch + "; want neither --think nor --no-think"}
	}
	return d, nil
}

// withoutTemplate refuses what a template would be needed for.
func (d *Dialogue) withoutTemplate() (*Dialogue, error) {
	for name, wanted := range map[string]bool{"system message": d.System != "", "switch for thinking": d.Think != nil,
		"variables": d.Variables != nil} {
		if wanted {
			return nil, &Error{"the model has no chat template, and so no " + name}
		}
	}
	d.reply = reply.Of(chat.New(nil, nil))
	if d.MaxTokens == 0 {
		d.MaxTokens = Continued
	}
	return d, nil
}

const noSwitch = "the chat template of the model has no switch for thinking"

// clear starts a new conversation. The cache of the old one stays, because both begin alike.
func (d *Dialogue) clear() {
	d.messages = nil
	if d.System != "" {
		d.messages = []jinja.Value{message("system", d.System)}
	}
}

func message(role, content string) *jinja.Dict {
	m := &jinja.Dict{}
	m.Set("role", role)
	m.Set("content", content)
	return m
}

// render returns the prompt that the messages make.
func (d *Dialogue) render(messages []jinja.Value) (string, error) {
	if d.Format == nil {
		return continued(messages), nil
	}
	variables := &jinja.Dict{}
	if d.Variables != nil {
		for _, name := range d.Variables.Keys() {
			v, _ := d.Variables.Get(name)
			variables.Set(name, v)
		}
	}
	if d.Think != nil && d.thinking != "" {
		variables.Set(d.thinking, *d.Think)
	}
	return d.Format.Render(&chat.Conversation{Messages: jinja.NewList(messages...), AddGenerationPrompt: true,
		Extra: variables}, chat.Options{Now: d.Now})
}

// continued is the text that messages make where there is no template. A message begins a line of its own.
func continued(messages []jinja.Value) string {
	var text strings.Builder
	for _, m := range messages {
		role, _ := m.(*jinja.Dict).Get("role")
		content, _ := m.(*jinja.Dict).Get("content")
		if said := text.String(); role == "user" && said != "" && !strings.HasSuffix(said, "\n") {
			text.WriteByte('\n')
		}
		text.WriteString(content.(string))
	}
	return text.String()
}

// Run answers messages until the input ends or the user ends the conversation. The decoder is at position 0, has vocab
// tokens and maxSeq positions. Errors are *Error if the conversation is not interactive, those of the decoder and of
// the streams, and the cause of a cancelled context.
func (d *Dialogue) Run(ctx context.Context, decoder Decoder, vocab, maxSeq int) error {
	d.decoder, d.vocab, d.maxSeq = decoder, vocab, maxSeq
	if d.Format == nil {
		d.note(fmt.Sprintf("the model has no chat template: it continues what you type, by up to %d tokens "+
			"(--max-tokens)", d.MaxTokens))
	}
	if d.Interactive {
		d.note("/help lists the commands; Ctrl-C stops an answer, Ctrl-D ends")
	}
	in := newInput(lines(d.In))
	if d.Editor != nil {
		in = newInput(d.Editor.Read)
	}
	for {
		text, err := d.ask(ctx, in)
		if err != nil || text == nil {
			return err
		}
		if more, err := d.take(ctx, *text); err != nil || !more {
			return err
		}
	}
}

// ask waits for a message; nil ends the conversation.
func (d *Dialogue) ask(ctx context.Context, in *input) (*string, error) {
	if d.Interactive { // a Ctrl-C that came too late for the answer
		select {
		case <-d.Interrupts:
		default:
		}
	}
	for interrupted := false; ; {
		if d.Interactive && d.Editor == nil {
			if _, err := io.WriteString(d.Out, "> "); err != nil {
				return nil, err
			}
		}
		select {
		case m := <-in.ask():
			in.taken()
			switch {
			case m.err == nil:
				return &m.text, nil
			case errors.Is(m.err, io.EOF):
				if d.Interactive && d.Editor == nil {
					fmt.Fprintln(d.Err)
				}
				return nil, nil
			case !errors.Is(m.err, context.Canceled):
				return nil, m.err
			case m.text != "": // which Ctrl-C has dropped, and no more
				interrupted = false
				continue
			}
		case <-d.Interrupts:
			if !d.Interactive {
				return nil, context.Canceled
			}
			fmt.Fprintln(d.Err)
		case <-ctx.Done():
			d.restore()
			return nil, context.Cause(ctx)
		}
		if interrupted {
			d.restore()
			return nil, nil
		}
		interrupted = true
		d.note("Ctrl-C again, or Ctrl-D, ends the conversation")
	}
}

func (d *Dialogue) restore() {
	if d.Editor != nil {
		d.Editor.Restore()
	}
}

// A command is a message that is not for the model.
type command struct {
	name, does string
	run        func(*Dialogue) error // nil: it ends the conversation
}

// commands are listed in the order of the help.
func commands() []command {
	think := func(on bool) func(*Dialogue) error {
		return func(d *Dialogue) error {
			if d.thinking == "" {
				return d.fault(noSwitch)
			}
			d.Think = &on
			return nil
		}
	}
	return []command{
		{"/help", "list the commands", (*Dialogue).help},
		{"/clear", "begin a new conversation", func(d *Dialogue) error { d.clear(); return nil }},
		{"/think", "let the model think before it answers", think(true)},
		{"/no-think", "let the model answer at once", think(false)},
		{"/stats", "say how fast the last answer was", func(d *Dialogue) error { d.note(d.last.String()); return nil }},
		{"/exit", "end the conversation, as Ctrl-D does", nil},
	}
}

func (d *Dialogue) help() error {
	for _, c := range commands() {
		if c.does = fmt.Sprintf("%-10s %s", c.name, c.does); d.thinking != "" || !strings.Contains(c.name, "think") {
			fmt.Fprintln(d.Err, c.does)
		}
	}
	keys := "Anything else is a message. Ctrl-C stops an answer, Ctrl-D the conversation."
	if d.Editor != nil {
		keys += "\nUp and Down find earlier messages, and what is pasted may have several lines."
	}
	_, err := fmt.Fprintln(d.Err, keys)
	return err
}

// take answers a message, or does what it says. It reports whether the conversation goes on.
func (d *Dialogue) take(ctx context.Context, text string) (more bool, err error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return true, nil
	}
	if trimmed[0] == '/' && strings.Trim(trimmed[1:], "abcdefghijklmnopqrstuvwxyz-") == "" {
		var names []string
		for _, c := range commands() {
			if c.name == trimmed && c.run == nil {
				return false, nil
			}
			if c.name == trimmed {
				return true, c.run(d)
			}
			names = append(names, c.name)
		}
		return true, d.fault("there is no command %s; want one of %s", trimmed, strings.Join(names, ", "))
	}
	if d.Format == nil { // what a line begins with is a part of a text
		trimmed = strings.TrimRight(text, " \t\r\n")
	}
	return true, d.turn(ctx, trimmed)
}

// fault says what is wrong with a message to who sits there. If nobody does, the conversation ends with it.
func (d *Dialogue) fault(format string, args ...any) error {
	err := &Error{fmt.Sprintf(format, args...)}
	if !d.Interactive {
		return err
	}
	fmt.Fprintln(d.Err, printable.Clip(err.What))
	return nil
}

func (d *Dialogue) note(text string) {
	if !d.Quiet {
		fmt.Fprintln(d.Err, printable.Clip(text))
	}
}

// IsTerminal reports whether lines are read from a terminal.
func IsTerminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && progress.IsTerminal(f)
}

// print writes what the model wrote.
func (d *Dialogue) print(text string) error {
	if d.shown {
		text = printable.Text(text)
	}
	_, err := io.WriteString(d.Out, text)
	return err
}

// faint writes what the model thought to a terminal.
func (d *Dialogue) faint(text string) error {
	_, err := io.WriteString(d.Out, "\x1b[2m"+printable.Text(text)+"\x1b[22m")
	return err
}
