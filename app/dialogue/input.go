package dialogue

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// An Editor reads messages that a user types at a terminal.
type Editor interface {
	// Read shows a prompt and returns a message. Errors are io.EOF where the conversation is to end, context.Canceled,
	// with what was typed, after Ctrl-C, and those of the terminal.
	Read() (string, error)
	// Restore makes the terminal what it was while a Read waits that nobody waits for any more.
	Restore()
}

// maxLine bounds a message, in bytes: no context has room for more.
const maxLine = 4 << 20

// What was typed is a message, or why there is none.
type typed struct {
	text string
	err  error
}

// An input reads messages in a goroutine, so that waiting for one can be interrupted.
type input struct {
	read    func() (string, error)
	next    chan typed
	waiting bool // for a message that was asked for and did not come yet
}

func newInput(read func() (string, error)) *input {
	return &input{read: read, next: make(chan typed, 1)}
}

// ask returns a channel that the next message comes through. It is followed by taken, once the message has come.
func (in *input) ask() <-chan typed {
	if !in.waiting {
		in.waiting = true
		go func() {
			text, err := in.read()
			in.next <- typed{text, err}
		}()
	}
	return in.next
}

func (in *input) taken() { in.waiting = false }

// lines returns a function that reads a line at a time.
func lines(in io.Reader) func() (string, error) {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLine)
	return func() (string, error) {
		switch {
		case scanner.Scan():
			return scanner.Text(), nil
		case errors.Is(scanner.Err(), bufio.ErrTooLong):
			return "", &Error{"a line is longer than 4 MiB; a message is one line"}
		case scanner.Err() != nil:
			return "", scanner.Err()
		}
		return "", io.EOF
	}
}

// Signals returns a channel with a value for each Ctrl-C, and a context that a request to end (SIGTERM) cancels and
// Ctrl-C does not, until stop is called.
func Signals(ctx context.Context) (conversation context.Context, interrupts <-chan os.Signal, stop func()) {
	relay := make(chan os.Signal, 1)
	signal.Notify(relay, os.Interrupt)
	conversation, end := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
	return conversation, relay, func() {
		signal.Stop(relay)
		end()
	}
}
