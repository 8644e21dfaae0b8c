package amk

import "amkc/ir/diag"

// Budgets of a file. They are far above what a lowering writes: Llama-3.1-8B in 15,000 tasks has 350,000 values.
const (
	maxValues   = 3 << 19 // JSON values
	maxFields   = 1 << 17 // keys of one object
	maxErrors   = 50      // reported
	maxWarnings = 100     // reported
)

// findings collects what is wrong with a file, and no more than a reader can use: every value of a hostile file can be
// worth an error.
type findings struct {
	diags            diag.List
	errors, warnings int
}

// full reports whether there is no room for another error, so that the reading may stop.
func (f *findings) full() bool { return f.errors >= maxErrors }

func (f *findings) errorf(s *source, code *diag.Code, off int, format string, args ...any) {
	if f.full() {
		return
	}
	f.errors++
	f.diags.Add(diag.Errorf(code, s.pos(off), format, args...))
}

// warnf adds a warning and returns it, so that the caller can attach notes; nil if there are too many already.
func (f *findings) warnf(s *source, code *diag.Code, off int, format string, args ...any) *diag.Diagnostic {
	switch f.warnings++; {
	case f.warnings == maxWarnings+1:
		f.diags.Add(diag.Warningf(code, s.pos(off), "more than %d warnings; further ones are not listed", maxWarnings))
		return nil
	case f.warnings > maxWarnings:
		return nil
	}
	d := diag.Warningf(code, s.pos(off), format, args...)
	f.diags.Add(d)
	return d
}
