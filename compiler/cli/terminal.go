package cli

import (
	"fmt"
	"io"
	"os"
	"unicode/utf8"
)

// isTerminal reports whether w is a terminal. A character device that is no terminal (/dev/null) is not told apart from
// one: nobody reads it, and what is written there does no harm.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// A progress line is rewritten in place, and only shown to someone who watches.
type progress struct {
	w     io.Writer // nil: nobody watches
	width int       // of what is on the line
}

func (c *call) progress() *progress {
	if c.quiet || c.json || !isTerminal(c.stderr) {
		return &progress{}
	}
	return &progress{w: c.stderr}
}

// show replaces the line.
func (p *progress) show(format string, args ...any) {
	if p.w == nil {
		return
	}
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(p.w, "\r%-*s", p.width, text)
	p.width = utf8.RuneCountInString(text)
}

// report shows how far an activity is; total 0 means that nobody knows.
func (p *progress) report(activity string, done, total int64) {
	if total > 0 {
		p.show("%s: %d%%", activity, 100*done/total)
	} else {
		p.show("%s", activity)
	}
}

// clear removes the line, so that what is printed next starts at the left.
func (p *progress) clear() {
	if p.w != nil && p.width > 0 {
		fmt.Fprintf(p.w, "\r%*s\r", p.width, "")
		p.width = 0
	}
}
