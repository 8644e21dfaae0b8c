// Package dialogue holds a conversation with a model in a terminal, or line by line in a pipe. Each line is a message;
// the chat template makes a prompt of the conversation, and the answer is printed as it comes.
//
// The cache is kept from turn to turn: of a prompt, what it has in common with the ids that the decoder holds is not
// decoded again. What the model writes goes into a file or a pipe byte for byte, and to a terminal with everything
// escaped that it would act on. There what it thought before an answer is faint.
//
// The package is copied into every emitted launcher. It imports the standard library, text/chat, runtime/host,
// text/jinja, runtime/printable, runtime/progress, text/reply, text/sampling and text/tokenizer, and must
// not import any other package of amkc.
package dialogue

import (
	"context"
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
	Format    *chat.Format
	Stops     []int            // ids after which an answer ends
	Sampling  sampling.Options // how tokens are chosen
	System    string           // a first message that says how to answer; empty for none
	MaxTokens int              // of an answer; 0: as many as there are positions for
	Stats     bool             // say after each answer how fast it was
	Quiet     bool             // say nothing but what went wrong
	Now       time.Time        // the date that templates print, for all of the conversation

	In          io.Reader
	Out, Err    io.Writer
	Interrupts  <-chan os.Signal // each stops an answer; at the prompt the second in a row ends the conversation
	Interactive bool             // somebody sits there: there is a prompt, and what goes wrong is said and not the end
}

// An Error is a message that cannot be answered. It was printed if the conversation is interactive, and ends it if not.
type Error struct{ What string }

func (e *Error) Error() string { return e.What }

// A Dialogue is a conversation.
type Dialogue struct {
	Config
	messages []jinja.Value
	shown    bool // Out is a terminal
	reply    *reply.Format
	marks    []int // special tokens around thoughts

	decoder       Decoder
	vocab, maxSeq int
	held          []int // ids whose rows the decoder's cache has
	last          *stats
}

// New returns an empty conversation. It refuses a template that does not format one, or leaves the system message out,
// before a model is loaded for it: *Error.
func New(c Config) (*Dialogue, error) {
	d := &Dialogue{Config: c, shown: progress.IsTerminal(c.Out), reply: reply.Of(c.Format)}
	d.marks = d.reply.Shown(c.Tokenizer, false)
	d.clear()
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
	return d, nil
}

// clear begins the conversation anew. What the decoder holds of the old one stays, for the beginning is the same.
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
	return d.Format.Render(&chat.Conversation{Messages: jinja.NewList(messages...), AddGenerationPrompt: true},
		chat.Options{Now: d.Now})
}

// commands are the lines that are not messages.
const commands = "/clear begins anew, /stats says how fast the last answer was"

// Run answers line after line, until the input ends or the user ends the conversation. The decoder is at position 0,
// has vocab tokens and maxSeq positions. Errors are *Error where nobody sits there, those of the decoder and of the
// streams, and the cause of a cancelled context.
func (d *Dialogue) Run(ctx context.Context, decoder Decoder, vocab, maxSeq int) error {
	d.decoder, d.vocab, d.maxSeq = decoder, vocab, maxSeq
	if d.Interactive {
		d.note("a line is a message; " + commands + "; Ctrl-C stops an answer, Ctrl-D ends")
	}
	in := readLines(d.In)
	defer in.stop()
	for {
		line, err := d.ask(ctx, in)
		if err != nil || line == nil {
			return err
		}
		if err := d.take(ctx, strings.TrimSpace(*line)); err != nil {
			return err
		}
	}
}

// ask waits for a line; nil ends the conversation.
func (d *Dialogue) ask(ctx context.Context, in *lines) (*string, error) {
	for interrupted := false; ; {
		if d.Interactive {
			if _, err := io.WriteString(d.Out, "> "); err != nil {
				return nil, err
			}
		}
		select {
		case line, more := <-in.next:
			if !more && d.Interactive {
				fmt.Fprintln(d.Err)
			}
			if !more {
				return nil, in.err
			}
			return &line, nil
		case <-d.Interrupts:
			if !d.Interactive {
				return nil, context.Canceled
			}
			fmt.Fprintln(d.Err)
			if interrupted {
				return nil, nil
			}
			interrupted = true
			d.note("Ctrl-C again, or Ctrl-D, ends the conversation")
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take answers a line, or does what it says.
func (d *Dialogue) take(ctx context.Context, line string) error {
	switch {
	case line == "":
		return nil
	case line == "/clear":
		d.clear()
		return nil
	case line == "/stats":
		d.note(d.last.String())
		return nil
	case line[0] == '/' && strings.Trim(line[1:], "abcdefghijklmnopqrstuvwxyz") == "":
		return d.fault("there is no command %s; %s", line, commands)
	}
	return d.turn(ctx, line)
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
