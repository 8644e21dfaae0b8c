package cli

import (
	"fmt"
	"io"
	"strings"

	"amkc/runtime/printable"
	"amkc/runtime/progress"
	"amkc/runtime/tokenizer"
)

// A writer prints tokens as they come: text in whole characters, or ids when there is no tokenizer. The prompt comes
// first, because what a token looks like may depend on the one before.
//
// What the model writes goes into a file or a pipe byte for byte. On a terminal, control characters other than line
// breaks and tabs are shown and not obeyed, as the prompt and the weights may be somebody else's.
type writer struct {
	out     io.Writer
	shown   bool               // out is a terminal
	text    *tokenizer.Decoder // nil: ids
	written string             // text after the prompt
	any     bool               // something was printed
}

func newWriter(tok *tokenizer.Tokenizer, out io.Writer) *writer {
	w := &writer{out: out, shown: progress.IsTerminal(out)}
	if tok != nil {
		w.text = tok.NewDecoder(true)
	}
	return w
}

func (w *writer) prompt(ids []int) error {
	if w.text == nil {
		return nil
	}
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(w.text.Push(id))
	}
	return w.put(b.String())
}

// token prints what an id completes, which may be nothing.
func (w *writer) token(id int) error {
	if w.text != nil {
		s := w.text.Push(id)
		w.written += s
		return w.put(s)
	}
	if w.any {
		return w.put(fmt.Sprintf(" %d", id))
	}
	return w.put(fmt.Sprint(id))
}

// end prints what was held back, and ends the line.
func (w *writer) end() error {
	rest := ""
	if w.text != nil {
		rest = w.text.Flush()
		w.written += rest
	}
	return w.put(rest + "\n")
}

func (w *writer) put(s string) error {
	if s == "" {
		return nil
	}
	w.any = true
	if w.shown {
		s = printable.Text(s)
	}
	_, err := io.WriteString(w.out, s)
	return err
}
