// Package editor reads messages that a user types at a terminal, with the keys of readline, a history, and pasted text
// of several lines.
//
// The package is copied into every emitted launcher. It imports the standard library, runtime/printable,
// runtime/progress and the line editor github.com/reeflective/readline, which no other package imports, and must not
// import any other package of amkc.
package editor

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/reeflective/readline"

	"amkc/runtime/printable"
	"amkc/runtime/progress"
)

// An Editor reads from the terminal of the process. Its history ends with the process.
type Editor struct {
	shell  *readline.Shell
	normal state // of the terminal, as it was found
}

// New returns an editor, or nil unless in and out are the standard streams and a terminal that moves its cursor.
func New(in io.Reader, out io.Writer) *Editor {
	if in != os.Stdin || out != os.Stdout || !progress.IsTerminal(os.Stdin) || !progress.IsTerminal(out) ||
		os.Getenv("TERM") == "dumb" {
		return nil
	}
	shell := readline.NewShell()
	shell.Prompt.Primary(func() string { return "> " })
	// A prompt begins where a line does, so the terminal need not be asked where the cursor is. Some never answer.
	_ = shell.Config.Set("cursor-position-probe", false)
	_ = shell.Config.Set("enable-bracketed-paste", true) // the terminal marks what is pasted
	shell.PasteTransformer = pasted
	return &Editor{shell, current()}
}

// Read returns a message. Errors are io.EOF after Ctrl-D, context.Canceled, with what was typed, after Ctrl-C, and
// those of the terminal.
func (e *Editor) Read() (string, error) {
	text, err := e.shell.Readline()
	if errors.Is(err, readline.ErrInterrupt) {
		err = context.Canceled
	}
	return text, err
}

// Restore restores the settings of the terminal, for a program that ends during a Read.
func (e *Editor) Restore() { e.normal.restore() }

// pasted drops what a terminal would act on, as most terminals do themselves when they paste: the text may come from
// anywhere, and the editor shows it.
func pasted(text string) string {
	return strings.Map(func(r rune) rune {
		if s := string(r); printable.Text(s) != s {
			return -1
		}
		return r
	}, text)
}
