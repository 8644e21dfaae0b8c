// Package jinja renders the templates of chat models: the language of Jinja, with the values of Python, as transformers
// sets the two up for chat templates. Blocks are trimmed on both sides (trim_blocks, lstrip_blocks), nothing is
// escaped, break, continue and generation are tags, tojson does not escape HTML, raise_exception and strftime_now are
// functions, and no template changes a list or a dictionary.
//
// What a template prints here is what jinja2 3.1 prints for it, byte for byte, or there is an error. An [Error] says
// which: a construct that this package does not have is refused by its name, most of them before anything is rendered.
// Templates and values may be anybody's: work, output, memory and depth are bounded ([Limits]), and nothing of a
// template reaches the machine, the clock included, which the caller gives.
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

// A Kind says what an [Error] is about.
type Kind int

const (
	Syntax      Kind = iota // the template is no template of Jinja
	Unsupported             // jinja2 has the construct, and this package does not
	Raised                  // the template called raise_exception: What is its own message
	Failed                  // the template did with a value what Python refuses
	Limit                   // a bound of Limits
)

// An Error says why a template cannot be read or rendered. Line is that of the template, from 1, or 0 where there is
// none.
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

// A Template is one that was read. It is not changed by rendering, and may be rendered concurrently.
type Template struct{ body []stmt }

// Limits bounds what rendering may take. A field that is 0 has the value of [DefaultLimits].
type Limits struct {
	Steps  int // expressions, statements and rounds of loops; long texts count for more
	Memory int // bytes of values made while rendering, those no longer in use included
	Output int // bytes of the result
	Depth  int // macros and recursive loops inside each other
}

// DefaultLimits are a hundred times and more what published templates take for a conversation that fits a model.
var DefaultLimits = Limits{Steps: 5_000_000, Memory: 256 << 20, Output: 32 << 20, Depth: 200}

// Options are what rendering depends on besides the variables.
type Options struct {
	Now    time.Time // what strftime_now formats
	Limits Limits
}

// MaxSource is the most bytes that a template may have. The largest ones that are published have some 20,000.
const MaxSource = 1 << 20

// Parse reads a template. Its errors are *Error.
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

// Render returns what the template prints. The variables are those that the template finds by name. Its errors are
// *Error.
func (t *Template) Render(variables *Dict, o Options) (out string, err error) {
	defer catch(&err)
	in := &interp{budget: newBudget(o.Limits), now: o.Now}
	root := &scope{vars: map[string]Value{}}
	for _, e := range variables.entries {
		if name, ok := e.key.(string); ok {
			root.vars[name] = e.value
		}
	}
	var b strings.Builder
	in.out = &b
	in.block(t.body, &scope{vars: map[string]Value{}, parent: root})
	return b.String(), nil
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

// unsupported refuses a construct that jinja2 has.
func unsupported(line int, what string) {
	fail(Unsupported, line, "%s is not supported", what)
}
