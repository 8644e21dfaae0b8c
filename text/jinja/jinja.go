// Package jinja renders the templates of chat models: the language of Jinja, with the values of Python, as transformers
// sets the two up for chat templates. Blocks are trimmed on both sides (trim_blocks, lstrip_blocks), nothing is
// escaped, break, continue and generation are tags, tojson does not escape HTML, raise_exception and strftime_now are
// functions, and no template changes a list or a dictionary.
//
// The output of a template equals that of jinja2 3.1, byte for byte, or there is an error. An unsupported construct is
// an [Error] with its name, in most cases before anything is rendered. Templates and values are untrusted: work,
// output, memory and depth are bounded ([Limits]), and a template has no access to the machine. Even the clock is
// supplied by the caller.
//
// A template is compiled to closures: parse.go has the syntax and what each construct does, builtins.go the one table
// of filters, tests, methods and functions.
//
// The package is copied into every emitted launcher. It imports the standard library and runtime/infile, whose words
// for malformed JSON it takes, and must not import any other package of amkc.
package jinja

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// A Kind is the kind of an [Error].
type Kind int

const (
	Syntax      Kind = iota // the template is not a template of Jinja
	Unsupported             // jinja2 has the construct, and this package does not
	Raised                  // the template called raise_exception: What is its own message
	Failed                  // the template did with a value what Python refuses
	Limit                   // a bound of Limits
)

// An Error is the reason why a template cannot be parsed or rendered. Line is that of the template, from 1, or 0 if
// unknown.
type Error struct {
	Kind Kind
	Line int
	What string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.What
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.What)
}

// A Template is a compiled template. It is immutable, and may be rendered concurrently.
type Template struct{ body []stmt }

// Limits bounds what rendering may take. A field that is 0 has the value of [DefaultLimits].
type Limits struct {
	Steps  int // expressions, statements and rounds of loops; long texts count for more
	Memory int // bytes of values made while rendering, those no longer in use included
	Output int // bytes of the result
	Depth  int // macros and recursive loops inside each other
}

// DefaultLimits are at least a hundred times the needs of published templates for a conversation that fits a model.
var DefaultLimits = Limits{Steps: 5_000_000, Memory: 256 << 20, Output: 32 << 20, Depth: 200}

// Options are what rendering depends on besides the variables.
type Options struct {
	Now    time.Time // what strftime_now formats
	Limits Limits
}

// MaxSource is the maximum size of a template in bytes. The largest published ones have some 20,000.
const MaxSource = 1 << 20

// Parse compiles a template. Its errors are *Error.
func Parse(source string) (t *Template, err error) {
	defer catch(&err)
	if len(source) > MaxSource {
		return nil, &Error{Limit, 0, fmt.Sprintf("the template has %d bytes; %d are the most", len(source), MaxSource)}
	}
	if !utf8.ValidString(source) {
		return nil, &Error{Syntax, 0, "the template is not valid UTF-8"}
	}
	p := &parser{tokens: lex(source)}
	body := p.statements(nil)
	if len(p.unknown) > 0 {
		return nil, p.unknown[0]
	}
	return &Template{body}, nil
}

// Render returns the output of the template for variables by name. Its errors are *Error.
func (t *Template) Render(variables *Dict, o Options) (out string, err error) {
	defer catch(&err)
	in := &interp{limits: o.Limits, now: o.Now, out: &strings.Builder{}}
	for _, f := range []struct{ field, standard *int }{{&in.limits.Steps, &DefaultLimits.Steps},
		{&in.limits.Memory, &DefaultLimits.Memory}, {&in.limits.Output, &DefaultLimits.Output},
		{&in.limits.Depth, &DefaultLimits.Depth}} {
		if *f.field <= 0 {
			*f.field = *f.standard
		}
	}
	root := (*scope)(nil).inner()
	for _, e := range variables.entries {
		if name, ok := e.key.(string); ok {
			root.vars[name] = e.value
		}
	}
	in.block(t.body, root.inner())
	return in.out.String(), nil
}

// Reading and rendering fail from deep inside by a panic with an *Error, as text/template does, which ends here. Any
// other panic is a bug and goes on.
func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		*err = r
	default:
		panic(r)
	}
}

func fail(kind Kind, line int, format string, args ...any) {
	panic(&Error{kind, line, fmt.Sprintf(format, args...)})
}

// interp renders one template once.
type interp struct {
	limits              Limits
	steps, memory, size int // used of the limits so far
	now                 time.Time
	out                 *strings.Builder
	line                int // of what is being evaluated
	depth               int // of macros and values
	nested              int // of expressions and statements
}

// fail ends rendering. It returns a value so that a function may end with it.
func (in *interp) fail(format string, args ...any) Value {
	fail(Failed, in.line, format, args...)
	return nil
}

// unsupported refuses a construct that jinja2 has.
func (in *interp) unsupported(what string) Value {
	fail(Unsupported, in.line, "%s is not supported", what)
	return nil
}

// work counts a step, and more for one that looks at a text or a list of some length.
func (in *interp) work(n int) {
	if in.steps += 1 + n>>5; in.steps > in.limits.Steps {
		fail(Limit, in.line, "rendering takes more than %d steps", in.limits.Steps)
	}
}

// alloc counts bytes that are about to be allocated. Call it first.
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

// maxEval is how deep expressions and statements may be evaluated inside each other. A template that nests as deep as
// it may, in macros that do too, would exceed a stack.
const maxEval = 20_000

// enter and leave surround what is evaluated inside something else.
func (in *interp) enter() {
	if in.nested++; in.nested > maxEval {
		fail(Limit, in.line, "more than %d expressions and statements are inside each other", maxEval)
	}
}

func (in *interp) leave() { in.nested-- }

// deeper runs something inside something else.
func (in *interp) deeper(f func()) {
	if in.depth++; in.depth > in.limits.Depth {
		fail(Limit, in.line, "more than %d macros and recursive loops are inside each other", in.limits.Depth)
	}
	f()
	in.depth--
}

// print writes a part of the result.
func (in *interp) print(s string) {
	in.work(len(s))
	if in.size += len(s); in.size > in.limits.Output {
		fail(Limit, in.line, "rendering prints more than %d bytes", in.limits.Output)
	}
	in.out.WriteString(s)
}

// capture returns what f prints.
func (in *interp) capture(f func()) string {
	out, size := in.out, in.size
	in.out = &strings.Builder{}
	f()
	text := in.out.String()
	in.out, in.size = out, size
	return in.made(text)
}

// A scope holds the variables that were assigned inside of something, and leads to those around it.
type scope struct {
	vars   map[string]Value
	parent *scope
}

func (s *scope) inner() *scope { return &scope{map[string]Value{}, s} }

func (s *scope) lookup(name string) (Value, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.vars[name]; ok {
			return v, true
		}
	}
	if b, ok := builtins[name+"()"]; ok {
		return &function{name: name, do: b}, true
	}
	return nil, false
}
