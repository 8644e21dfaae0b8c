package validate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// findings are what the rules have reported of one program.
type findings struct {
	diags            diag.List
	errors, warnings int
	without          without
}

// sound reports whether no rule has failed so far.
func (f *findings) sound() bool { return f.errors == 0 }

// What one proof reports is bounded: a broken edge can leave thousands of pairs unordered. Errors and warnings are
// counted apart, so that no number of warnings hides an error.
const (
	maxErrors   = 40
	maxWarnings = 10
)

// Errors is the number of errors so far, including those beyond the number that is kept.
func (f *findings) Errors() int { return f.errors }

// Full reports whether there is no room for another error, so that a rule may stop.
func (f *findings) Full() bool { return f.errors >= maxErrors }

// Errorf adds an error and returns it, so that the caller can attach notes.
func (f *findings) Errorf(code *diag.Code, pos, format string, args ...any) *diag.Diagnostic {
	d := diag.Errorf(code, pos, format, args...)
	locate(d)
	if f.without.drops(code.ID) {
		return d
	}
	if f.errors++; f.errors <= maxErrors {
		f.diags.Add(d)
	}
	return d
}

// without names codes of which nothing is reported: rules that are taken away. It is nil but in the tests that show
// what each rule is for.
type without map[string]bool

func (w without) drops(code string) bool { return w != nil && w[code] }

// from returns the diagnostics of a list that are reported.
func (w without) from(l diag.List) diag.List {
	if w == nil {
		return l
	}
	return slices.DeleteFunc(l, func(d *diag.Diagnostic) bool { return w.drops(d.Code) })
}

func (f *findings) warnf(code *diag.Code, pos, format string, args ...any) *diag.Diagnostic {
	d := diag.Warningf(code, pos, format, args...)
	locate(d)
	if f.warnings++; f.warnings <= maxWarnings {
		f.diags.Add(d)
	}
	return d
}

// Task is the position of a diagnostic about a task.
func (p *Proof) Task(t int32) string { return "task " + p.flat.Tasks[t].Name }

// Who names a task with its place, for use inside a message.
func (p *Proof) Who(t int32) string {
	if sm := p.flat.Tasks[t].SM; sm >= 0 {
		return fmt.Sprintf("%s (sm %d)", p.flat.Tasks[t].Name, sm)
	}
	return p.flat.Tasks[t].Name
}

// name puts the variant in front of every position.
func name(diags diag.List, variant string) {
	for _, d := range diags {
		d.Variant = variant
		if d.Pos == "" {
			d.Pos = "variant " + variant
		} else {
			d.Pos = "variant " + variant + ": " + d.Pos
		}
	}
}

// report reports a finding about the current segment, once a view: the rest of the view is as wrong. What the message
// says of task and memory is also set as data.
func (s *sweep) report(l *location, i int, a *access, code *diag.Code, format string, args ...any) *diag.Diagnostic {
	if s.quiet {
		return &diag.Diagnostic{}
	}
	s.quiet = true
	d := s.p.Errorf(code, s.p.Task(s.task), format, args...)
	b := &s.p.flat.Buffers[a.buf]
	lo, hi := l.elements(b, i)
	d.Buffer, d.Elements = b.Name, &[2]int{lo, hi}
	if from, end, _, ok := bytesOf(b, lo, hi); ok {
		d.Bytes = &[2]int{from, end}
	}
	if s.tried {
		pos := s.pos
		d.Position = &pos
	}
	return d
}

// span names the part of a view that a segment is, in elements of the buffer and bytes of its layout.
func (s *sweep) span(l *location, i int, a *access) string {
	b := &s.p.flat.Buffers[a.buf]
	lo, hi := l.elements(b, i)
	where := ""
	if l.paged {
		where = " on page " + s.p.where(l)
	}
	return elements(b, lo, hi) + where + s.at()
}

func (s *sweep) at() string {
	if s.tried {
		return fmt.Sprintf(" at pos %d", s.pos)
	}
	return ""
}

// elements returns the elements of a buffer that a segment holds.
func (l *location) elements(b *ir.Buffer, i int) (lo, hi int) {
	lo, hi = l.bounds[i], l.bounds[i+1]
	if l.paged {
		lo, hi = lo/unit(b), (hi+unit(b)-1)/unit(b)
	}
	return lo, hi
}

// elements prints elements [lo, hi) of a buffer, in row-major order, with the bytes that they are in.
func elements(b *ir.Buffer, lo, hi int) string {
	out := fmt.Sprintf("%s[%d:%d]", b.Name, lo, hi)
	if len(b.Shape) > 1 {
		out = fmt.Sprintf("%s elements %v to %v", b.Name, coordinates(b, lo), coordinates(b, hi-1))
	}
	from, end, solid, ok := bytesOf(b, lo, hi)
	switch {
	case ok && solid:
		out += fmt.Sprintf(" (bytes %d to %d)", from, end-1)
	case ok:
		out += fmt.Sprintf(" (within bytes %d to %d)", from, end-1)
	}
	return out
}

// maxScattered bounds the elements that bytesOf looks at where the layout does not keep them in order.
const maxScattered = 1 << 16

// bytesOf returns the smallest range of bytes, in one copy, that holds elements [lo, hi), and whether it holds nothing
// else. It is not ok for more scattered elements than anybody would read about.
func bytesOf(b *ir.Buffer, lo, hi int) (from, end int, solid, ok bool) {
	size := max(1, unit(b))
	if b.Layout.Kind == ir.RowMajor || b.Layout.Words() {
		return b.Offset(lo), b.Offset(hi-1) + size, true, true
	}
	if hi-lo > maxScattered {
		return 0, 0, false, false
	}
	from, end = b.Offset(lo), b.Offset(lo)+size
	for e := lo + 1; e < hi; e++ {
		at := b.Offset(e)
		from, end = min(from, at), max(end, at+size)
	}
	return from, end, end-from == (hi-lo)*size, true
}

func coordinates(b *ir.Buffer, linear int) []int {
	at := make([]int, len(b.Shape))
	for d := len(at) - 1; d >= 0; d-- {
		at[d] = linear % b.Shape[d]
		linear /= b.Shape[d]
	}
	return at
}

// locate sets the fields of a diagnostic that its position says already.
func locate(d *diag.Diagnostic) {
	d.Task, _ = strings.CutPrefix(d.Pos, "task ")
	if d.Task == d.Pos {
		d.Task = ""
	}
	if name, ok := strings.CutPrefix(d.Pos, "buffer "); ok {
		d.Buffer = name
	}
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
