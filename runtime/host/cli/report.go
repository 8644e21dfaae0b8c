package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"amkc/runtime/host"
	"amkc/runtime/tokenizer"
)

// Exit codes.
const (
	exitOK     = 0
	exitInput  = 1
	exitBroken = 2
)

// A failure is a result that is not a success, and has been printed.
type failure struct{ msg string }

func (e *failure) Error() string { return e.msg }

// report prints an error, if there is one, and returns the exit code.
func (c *command) report(err error) int {
	if err == nil || errors.Is(err, errHelp) {
		return exitOK
	}
	if c.json {
		line, _ := json.Marshal(map[string]string{"severity": "error", "pos": c.launcher.Model.Name, "message": err.Error()})
		fmt.Fprintf(c.stderr, "%s\n", line)
	} else {
		word := "error"
		if colourful(c.stderr) {
			word = "\x1b[1;31merror\x1b[0m"
		}
		fmt.Fprintf(c.stderr, "%s: %s: %v\n", c.launcher.Model.Name, word, err)
	}
	return exitCode(err)
}

// exitCode tells input at fault from everything else.
func exitCode(err error) int {
	var (
		build       *host.BuildError
		position    *host.PositionError
		id          *host.TokenError
		format      *tokenizer.FormatError
		unsupported *tokenizer.UnsupportedError
		failed      *failure
	)
	for _, target := range []any{&build, &position, &id, &format, &unsupported, &failed} {
		if errors.As(err, target) {
			return exitInput
		}
	}
	return exitBroken
}

// print writes a result: v as JSON, or text.
func (c *command) print(v any, text string) error {
	if !c.json {
		_, err := io.WriteString(c.stdout, text)
		return err
	}
	enc := json.NewEncoder(c.stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// terminal says whether w is one.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// colourful says whether colour may be written to w.
func colourful(w io.Writer) bool {
	_, forbidden := os.LookupEnv("NO_COLOR")
	return !forbidden && terminal(w)
}

// progress rewrites one line of a terminal.
type progress struct {
	w     io.Writer // nil: say nothing
	shown string
}

func (c *command) newProgress() *progress {
	if c.json || !terminal(c.stderr) {
		return &progress{}
	}
	return &progress{w: c.stderr}
}

func (p *progress) report(activity string, done, total int64) {
	if p.w == nil || total == 0 {
		return
	}
	line := fmt.Sprintf("%s %d%%", activity, done*100/total)
	if line != p.shown {
		fmt.Fprintf(p.w, "\r\x1b[K%s", line)
		p.shown = line
	}
}

// done clears the line.
func (p *progress) done() {
	if p.shown != "" {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = ""
	}
}
