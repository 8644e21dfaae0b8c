package jinja

import "time"

// A budget is what rendering has left of its limits.
type budget struct {
	limits              Limits
	steps, memory, size int
}

func newBudget(l Limits) budget {
	for _, f := range []struct{ field, standard *int }{{&l.Steps, &DefaultLimits.Steps},
		{&l.Memory, &DefaultLimits.Memory}, {&l.Output, &DefaultLimits.Output}, {&l.Depth, &DefaultLimits.Depth}} {
		if *f.field <= 0 {
			*f.field = *f.standard
		}
	}
	return budget{limits: l}
}

// interp renders one template once.
type interp struct {
	budget
	now    time.Time
	out    writer
	line   int // of what is being evaluated
	depth  int // of macros and values
	nested int // of expressions and statements
}

type writer interface{ WriteString(s string) (int, error) }

func (in *interp) fail(format string, args ...any) { fail(Failed, in.line, format, args...) }

func (in *interp) unsupported(what string) { unsupported(in.line, what) }

// work counts a step, and more for one that looks at a text or a list of some length.
func (in *interp) work(n int) {
	if in.steps += 1 + n>>5; in.steps > in.limits.Steps {
		fail(Limit, in.line, "rendering takes more than %d steps", in.limits.Steps)
	}
}

// alloc counts bytes that are about to be made. It comes before they are.
func (in *interp) alloc(n int) {
	in.work(n)
	if in.memory += n; n > in.limits.Memory || in.memory > in.limits.Memory {
		fail(Limit, in.line, "rendering makes more than %d bytes of values", in.limits.Memory)
	}
}

// made counts a text that was made, whose length its parts bound.
func (in *interp) made(s string) string {
	in.alloc(len(s))
	return s
}

// entrySize is about what an entry of a dictionary takes, in bytes.
const entrySize = 192

// maxEval is how deep expressions and statements are carried out inside each other. A template that nests as deep as it
// may, in macros that do too, would go deeper than a stack is large.
const maxEval = 20_000

// enter and leave stand around what is carried out inside something else.
func (in *interp) enter() {
	if in.nested++; in.nested > maxEval {
		fail(Limit, in.line, "more than %d expressions and statements are inside each other", maxEval)
	}
}

func (in *interp) leave() { in.nested-- }

// print writes a part of the result.
func (in *interp) print(s string) {
	in.work(len(s))
	if in.size += len(s); in.size > in.limits.Output {
		fail(Limit, in.line, "rendering prints more than %d bytes", in.limits.Output)
	}
	in.out.WriteString(s)
}

// deeper runs something inside something else.
func (in *interp) deeper(f func()) {
	if in.depth++; in.depth > in.limits.Depth {
		fail(Limit, in.line, "more than %d macros and recursive loops are inside each other", in.limits.Depth)
	}
	f()
	in.depth--
}
