// Package diag holds the diagnostics that every other package reports: a stable code, a severity, a position, a
// message and related notes, and the registry of codes of `amkc explain`.
//
// It renders untrusted text: names, keys, paths and messages of other programs are printed as runtime/printable escapes
// them, in one line each. Callers need not escape anything.
//
// It imports runtime/printable and the standard library, and must not import any other package of amkc.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"amkc/runtime/printable"
)

// Severity says whether a diagnostic stops the work.
type Severity string

const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// A Diagnostic is one finding. Pos is the most precise place known: `file:line:col` for text inputs, else
// `config.json: hidden_size` or `task L03.down.s017`. Msg says what is wrong, then what would be accepted.
//
// The fields after Related repeat parts of a message about a schedule as data.
type Diagnostic struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Pos      string   `json:"pos"`
	Msg      string   `json:"message"`
	Related  []string `json:"related,omitempty"`

	Variant  string  `json:"variant,omitempty"`
	Task     string  `json:"task,omitempty"`
	Other    string  `json:"other,omitempty"`    // the task that it conflicts with
	Buffer   string  `json:"buffer,omitempty"`   // which the view is of
	Elements *[2]int `json:"elements,omitempty"` // of the buffer, in row-major order: [first, end)
	// of one copy of the buffer, in its layout: the smallest [first, end) that holds them
	Bytes    *[2]int `json:"bytes,omitempty"`
	Position *int    `json:"position,omitempty"` // at which it happens, where not at all
	Fix      string  `json:"fix,omitempty"`      // the smallest change that would do
}

// Errorf returns an error diagnostic. The code must have been registered.
func Errorf(code *Code, pos, format string, args ...any) *Diagnostic {
	return &Diagnostic{Code: code.ID, Severity: Error, Pos: pos, Msg: fmt.Sprintf(format, args...)}
}

// Warningf returns a warning diagnostic.
func Warningf(code *Code, pos, format string, args ...any) *Diagnostic {
	return &Diagnostic{Code: code.ID, Severity: Warning, Pos: pos, Msg: fmt.Sprintf(format, args...)}
}

// With returns d with related notes added.
func (d *Diagnostic) With(notes ...string) *Diagnostic {
	d.Related = append(d.Related, notes...)
	return d
}

// Suggest sets the smallest change that would make the input acceptable. The message ends with it.
func (d *Diagnostic) Suggest(format string, args ...any) *Diagnostic {
	d.Fix = fmt.Sprintf(format, args...)
	d.Msg += "; " + d.Fix
	return d
}

// Error makes a Diagnostic usable as an error: `POS: severity: message [CODE]`, related notes indented below.
func (d *Diagnostic) Error() string { return d.Render(Style{}) }

// Style decorates parts of a diagnostic that are safe to print already. A nil function leaves its part as it is.
type Style struct {
	Pos      func(string) string // `POS: `
	Severity func(Severity) string
}

// Render is Error in a style.
func (d *Diagnostic) Render(style Style) string {
	var b strings.Builder
	if d.Pos != "" {
		pos := printable.Clip(d.Pos) + ": "
		if style.Pos != nil {
			pos = style.Pos(pos)
		}
		b.WriteString(pos)
	}
	severity := printable.Clip(string(d.Severity)) + ":"
	if style.Severity != nil {
		severity = style.Severity(d.Severity)
	}
	fmt.Fprintf(&b, "%s %s [%s]", severity, printable.Clip(d.Msg), printable.Clip(d.Code))
	for _, note := range d.Related {
		fmt.Fprintf(&b, "\n    %s", printable.Clip(note))
	}
	return b.String()
}

// List is an ordered collection of diagnostics. The zero List is empty and ready to use.
type List []*Diagnostic

// Add appends diagnostics, ignoring nil ones.
func (l *List) Add(ds ...*Diagnostic) {
	for _, d := range ds {
		if d != nil {
			*l = append(*l, d)
		}
	}
}

// Errors returns the diagnostics of severity Error, in order.
func (l List) Errors() List { return l.only(Error) }

// Warnings returns the diagnostics of severity Warning, in order.
func (l List) Warnings() List { return l.only(Warning) }

func (l List) only(s Severity) List {
	var out List
	for _, d := range l {
		if d.Severity == s {
			out = append(out, d)
		}
	}
	return out
}

// Strict returns the list with its warnings made errors. The diagnostics of l stay as they are.
func (l List) Strict() List {
	out := make(List, len(l))
	for i, d := range l {
		strict := *d
		strict.Severity = Error
		out[i] = &strict
	}
	return out
}

// Err returns the list as an error if it holds an error, and nil otherwise.
func (l List) Err() error {
	if len(l.Errors()) == 0 {
		return nil
	}
	return l
}

// Error joins the diagnostics, one per line.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, d := range l {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}

// Sort orders the list by position, then code, then message. The sort is stable.
func (l List) Sort() {
	slices.SortStableFunc(l, func(a, b *Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Pos, b.Pos), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Msg, b.Msg))
	})
}
