package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"amkc/app/dialogue"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
	"amkc/runtime/printable"
	"amkc/runtime/progress"
	"amkc/text/sampling"
	"amkc/text/tokenizer"
)

// Exit codes.
const (
	exitOK     = 0
	exitInput  = 1
	exitBroken = 2

	exitInterrupted = 130 // as of a process that Ctrl-C ends
)

// A failure is a result that is not a success, and has been printed.
type failure struct{ msg string }

func (e *failure) Error() string { return e.msg }

// report prints an error, if there is one, and returns the exit code. Its text may quote a file or an argument, and
// is one printable line.
func (c *command) report(err error) int {
	if err == nil || errors.Is(err, errHelp) {
		return exitOK
	}
	if c.json {
		line, _ := json.Marshal(map[string]string{"severity": "error", "pos": c.launcher.Model.Name,
			"message": err.Error()})
		fmt.Fprintf(c.stderr, "%s\n", printable.Text(string(line)))
	} else {
		word := "error"
		if progress.Colourful(c.stderr) {
			word = "\x1b[1;31merror\x1b[0m"
		}
		text := printable.Clip(err.Error())
		if usage := new(usageError); errors.As(err, &usage) && usage.help != "" {
			text += "\n" + printable.Text(usage.help)
		}
		fmt.Fprintf(c.stderr, "%s: %s: %s\n", c.launcher.Model.Name, word, text)
	}
	return exitCode(err)
}

// exitCode tells an interrupt and input at fault from everything else.
func exitCode(err error) int {
	if errors.Is(err, errInterrupted) {
		return exitInterrupted
	}
	var (
		build       *host.BuildError
		several     *host.SeveralError
		position    *host.PositionError
		prefix      *host.PrefixError
		id          *host.TokenError
		format      *tokenizer.FormatError
		unsupported *tokenizer.UnsupportedError
		config      *sampling.ConfigError
		logits      *sampling.LogitsError
		refused     *dialogue.Error
		failed      *failure
	)
	for _, target := range []any{&build, &several, &position, &prefix, &id, &format, &unsupported, &config, &logits,
		&refused, &failed} {
		if errors.As(err, target) {
			return exitInput
		}
	}
	return exitBroken
}

// print writes a result: v as JSON, or text. Whatever a terminal would act on is escaped.
func (c *command) print(v any, text string) error {
	if c.json {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return err
		}
		text = b.String()
	}
	_, err := io.WriteString(c.stdout, printable.Text(text))
	return err
}

// newProgress returns the line that long work is shown on, if anybody watches.
func (c *command) newProgress() *progress.Line {
	if c.json {
		return &progress.Line{}
	}
	return progress.New(c.stderr)
}

// mayWrite refuses a path that a flag names for a file to be written, before anything is measured for it. A file that
// the build is made of is not written over.
func (c *command) mayWrite(flag, path, example string) error {
	if path == "" {
		return usagef("%s: no file is named; want one, as %s", flag, example)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return usagef("%s: %s is a directory; want a file, as %s", flag, path, filepath.Join(path, example))
	}
	if own := host.FileAt(c.dir, path); own != "" {
		return usagef("%s: %s is %s of the build; want another file, as %s", flag, path, own, example)
	}
	if _, err := outfile.Clean(path); err != nil {
		return usagef("%s: %s: %s", flag, path, infile.Reason(err))
	}
	f, err := outfile.Create(path)
	if err != nil {
		return usagef("%s: %s: %s", flag, path, infile.Reason(err))
	}
	return f.Release()
}
