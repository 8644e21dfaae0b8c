// Package reply parses the output of a chat model: its thought, its text, and its calls of tools. Families write these
// in different forms. One table declares the forms, one row each. [Of] finds the form of a model by its chat template:
// it renders a call with the template, and selects the form that parses it. A [Reader] takes an answer in parts. Text
// that looks like a call and is not one stays text. Only spaces around calls and thoughts are dropped.
//
// The package is copied into every launcher. It imports the standard library, text/chat, runtime/infile,
// text/jinja and text/stopping, and must not import any other package of amkc.
package reply

import "strings"

// A Call is a call of a tool.
type Call struct {
	Name      string
	Arguments string // in JSON, as a rule an object
}

// A Piece is the parsed content of a part of an answer. Any field may be empty.
type Piece struct {
	Thought string
	Text    string
	Calls   []Call
	At      []Span // where the text stands in the answer
}

// A Span is a range of bytes of an answer.
type Span struct{ From, To int }

// A Reader parses one answer. The zero Reader takes all of it as text. The concatenation of its results does not depend
// on the division of the answer into parts.
type Reader struct {
	thoughts *thoughtReader // nil: the model is not known to think
	calls    *callReader    // nil: nothing is read as a call
	called   bool

	given int  // bytes that have come
	begun bool // something has come that is not a thought
	front int  // bytes in front of that

	asWritten bool
	whole     string // where thoughts are text: what has come and is not out yet
}

// Reader returns a reader of the answer to a prompt. Calls are read if there are tools.
func (f *Format) Reader(prompt string, tools *Tools) *Reader {
	r := &Reader{}
	if f.thoughts != nil {
		r.thoughts = newThoughtReader(f.thoughts, prompt)
	}
	if f.calls != nil && (tools != nil || f.calls.prose != "") {
		r.calls = newCallReader(f.calls, prompt, tools)
	}
	return r
}

// AsWritten makes a new reader keep a thought in the text, including its markers.
func (r *Reader) AsWritten() *Reader {
	r.asWritten = true
	return r
}

// After makes a new reader one of the rest of an answer that begins with some text.
func (r *Reader) After(text string) *Reader {
	if r.thoughts != nil {
		r.thoughts.after(text)
	}
	return r
}

// Alone makes a new reader look for calls only where the answer begins with one: what else has their marks in it, as a
// string in JSON may, is text.
func (r *Reader) Alone() *Reader {
	if r.calls != nil {
		r.calls.alone = true
	}
	return r
}

// Called reports whether there was a call.
func (r *Reader) Called() bool { return r.called }

// Push takes the next part of the answer.
func (r *Reader) Push(part string) Piece {
	r.given += len(part)
	p := Piece{Text: part}
	before := ""
	switch {
	case r.thoughts != nil && r.asWritten:
		before, p.Text = r.split(part)
	case r.thoughts != nil:
		p.Thought, p.Text = r.thoughts.push(part)
	}
	if before != "" {
		to := r.given - len(p.Text)
		p.At = []Span{{to - len(before), to}}
	}
	r.read(&p, false)
	p.Text = before + p.Text
	return p
}

// read finds the calls in the text of a piece, and where in the answer what is left of that stands.
func (r *Reader) read(p *Piece, end bool) {
	to := r.given
	if r.thoughts != nil {
		to -= len(r.thoughts.held)
	}
	if p.Text != "" && !r.begun {
		r.begun, r.front = true, to-len(p.Text)
	}
	switch {
	case r.calls != nil:
		p.Text, p.Calls = r.calls.push(p.Text)
		if end {
			rest, calls := r.calls.end()
			p.Text, p.Calls = p.Text+rest, append(p.Calls, calls...)
		}
		for _, s := range r.calls.spans {
			p.At = append(p.At, Span{r.front + s.From, r.front + s.To})
		}
		r.calls.spans = nil
	case p.Text != "":
		p.At = append(p.At, Span{to - len(p.Text), to})
	}
	r.called = r.called || p.Calls != nil
}

// split tells a thought, and what is around it, from what may have calls, of which nothing is held back.
func (r *Reader) split(part string) (before, rest string) {
	r.whole += part
	_, answer := r.thoughts.push(part)
	switch r.thoughts.at {
	case inThought:
		before, r.whole = r.whole, ""
	case inAnswer:
		at := len(r.whole) - len(answer) - len(r.thoughts.held)
		before, rest = r.whole[:at], r.whole[at:]
		r.thoughts, r.whole = nil, ""
	}
	return before, rest
}

// End ends the answer and returns what was held back.
func (r *Reader) End() Piece {
	var p Piece
	switch {
	case r.asWritten:
		p.Text, r.thoughts = r.whole, nil
	case r.thoughts != nil:
		p.Thought, p.Text = r.thoughts.end()
	}
	r.read(&p, true)
	return p
}

// marks stand around something.
type marks struct{ open, close string }

const spaces = " \t\r\n"

// begun reports whether a text may be the beginning of another one, but is not all of it.
func begun(text, other string) bool { return len(text) < len(other) && strings.HasPrefix(other, text) }
