package readback

import (
	"strconv"
	"strings"
)

// stages.h has a function for each matrix stage. Its grammar, in which NAME is a new name and TYPE one of amk/*.cuh:
//
//	template <class C>
//	__device__ __forceinline__ void NAME(C& c, const TYPE NAME, …) {
//	  const READER NAME{ARGUMENT, …};
//	  const RowWeights<DESCRIPTOR> NAME(c, PARAMETER);
//	  const SHAPE NAME(PARAMETER);
//	  gemv<DESCRIPTOR>(c, READER, [&](const auto& r, auto NAME) {
//	    STATEMENT…
//	  });
//	}
//
// A function that looks for the largest logit returns a Best, which it declares first. A statement is a
// call, or the definition of a value by a call, by a call and a name, or by two names.

// A function is one of stages.h, as it stands there.
type function struct {
	at         pos
	name       string
	best       bool        // it declares and returns a Best
	params     []parameter // after the context
	reader     call        // with the name that it is given; "" for one that stands in the product's call
	weights    call        // that the finisher reads row by row; "" for none
	weightsOf  string      // the descriptor that they are of
	shape      call        // of the weights of an activation; "" for none
	descriptor string
	row        string // the variable that the finisher is given
	statements []statement
}

type parameter struct{ typ, name string }

// A call is FUNCTION<NUMBERS>(ARGUMENTS), or TYPE{ARGUMENTS}.
type call struct {
	at      pos
	name    string // the variable that it defines
	what    string // the function or type
	numbers []int
	args    []argument
}

// An argument is a name or a float.
type argument struct {
	name string
	f    float64
}

// A statement is a call, or the sum of a call and a variable.
type statement struct {
	call
	plus string
}

// functionsOf parses the literals of stages.h.
func functionsOf(b *block) []*function {
	var out []*function
	for b.err == nil {
		t := b.token()
		if t.text == "}" && t.kind == punctuation {
			break
		}
		if t.text != "template" {
			b.fail(t.at, "%v; want template <class C> and a function", t)
			break
		}
		out = append(out, b.function())
	}
	return out
}

// phrase wants a sequence of tokens.
func (b *block) phrase(text string) {
	for _, w := range strings.Fields(text) {
		b.want(w)
	}
}

func (b *block) function() *function {
	f := &function{}
	b.phrase("< class C > __device__ __forceinline__")
	switch t := b.token(); t.text {
	case "void":
	case "Best":
		f.best = true
	default:
		b.fail(t.at, "%v; want a function that returns void or Best", t)
	}
	n := b.declared()
	f.name, f.at = n.text, n.at
	b.phrase("( C & c")
	known := map[string]bool{"c": true, "r": true, "best": true}
	for b.err == nil {
		t := b.token()
		if t.text == ")" {
			break
		}
		if t.text != "," {
			b.fail(t.at, "%v after a parameter; want a comma or )", t)
		}
		b.want("const")
		typ := b.word("a type").text
		if typ == "u8" {
			b.want("*")
			typ = "u8*"
		}
		f.params = append(f.params, parameter{typ, b.fresh(known)})
	}
	b.want("{")
	t := b.token()
	if f.best {
		if t.text != "Best" {
			b.fail(t.at, "%v; want Best best, which the function returns", t)
		}
		b.phrase("best ;")
		t = b.token()
	}
	for ; t.text == "const" && b.err == nil; t = b.token() {
		typ := b.word("a type")
		switch {
		case typ.text == "RowWeights" && f.weights.what == "":
			b.want("<")
			f.weightsOf = b.word("a descriptor").text
			b.want(">")
			f.weights = call{at: typ.at, what: typ.text, name: b.fresh(known)}
			b.want("(")
			f.weights.args = b.arguments(")")
		case isShape(typ.text) && f.shape.what == "":
			f.shape = call{at: typ.at, what: typ.text, name: b.fresh(known)}
			b.want("(")
			f.shape.args = b.arguments(")")
		case f.reader.what == "":
			f.reader = b.braces(typ, known)
		default:
			b.fail(typ.at, "%v; want one reader, and weights of rows and of an activation once", typ)
		}
		b.want(";")
	}
	b.product(f, t, known)
	return f
}

// fresh reads the name of a variable that the function does not have yet.
func (b *block) fresh(known map[string]bool) string {
	t := b.word("a name")
	if b.err == nil && known[t.text] {
		b.fail(t.at, "%s is declared twice", t.text)
	}
	known[t.text] = true
	return t.text
}

// braces reads the rest of TYPE NAME{ARGUMENTS}.
func (b *block) braces(typ token, known map[string]bool) call {
	name := b.fresh(known)
	b.want("{")
	return call{at: typ.at, name: name, what: typ.text, args: b.arguments("}")}
}

// product reads the product and its finisher, from its first token on, to the end of the function.
func (b *block) product(f *function, t token, known map[string]bool) {
	if t.text != "gemv" {
		b.fail(t.at, "%v; want the call of gemv", t)
	}
	b.want("<")
	f.descriptor = b.word("a descriptor").text
	b.phrase("> ( c ,")
	reader := b.word("a reader")
	if f.reader.what == "" {
		b.want("{")
		f.reader = call{at: reader.at, what: reader.text, args: b.arguments("}")}
	} else if reader.text != f.reader.name {
		b.fail(reader.at, "%v; want %s, the reader before", reader, f.reader.name)
	}
	b.phrase(", [ & ] ( const auto & r , auto")
	f.row = b.fresh(known)
	b.phrase(") {")
	for b.err == nil {
		t := b.token()
		if t.text == "}" {
			break
		}
		f.statements = append(f.statements, b.statement(t, known))
	}
	b.phrase(") ;")
	if f.best {
		b.phrase("return best ;")
	}
	b.want("}")
}

func (b *block) statement(t token, known map[string]bool) statement {
	var s statement
	s.at = t.at
	if t.text == "const" {
		b.want("auto")
		s.name = b.word("a name").text
		b.want("=")
		t = b.token()
	}
	if t.kind != word {
		b.fail(t.at, "%v; want a call", t)
	}
	s.what = t.text
	t = b.token()
	if t.text == "." { // a method of best, or of the weights of rows
		s.what += "." + b.word("a method").text
		t = b.token()
	}
	if t.text == "<" {
		for t = b.token(); b.err == nil; t = b.token() {
			n := b.literal(t)
			if n.kind != integer {
				b.fail(n.at, "%s; want an integer", kindNames[n.kind])
			}
			s.numbers = append(s.numbers, n.n)
			if t = b.token(); t.text != "," {
				break
			}
		}
		if t.text != ">" {
			b.fail(t.at, "%v after the numbers of %s; want >", t, s.what)
		}
		t = b.token()
	}
	if t.text != "(" {
		b.fail(t.at, "%v; want ( and the arguments of %s", t, s.what)
	}
	s.args = b.arguments(")")
	t = b.token()
	if t.text == "+" && s.name != "" {
		s.plus = b.word("a name").text
		t = b.token()
	}
	if t.text != ";" {
		b.fail(t.at, "%v after a statement; want ;", t)
	}
	if s.name != "" && b.err == nil {
		if known[s.name] {
			b.fail(s.at, "%s is declared twice", s.name)
		}
		known[s.name] = true
	}
	return s
}

// arguments reads names and floats up to the end of a list.
func (b *block) arguments(end string) []argument {
	var out []argument
	for b.err == nil {
		t := b.token()
		if t.text == end && len(out) == 0 {
			break
		}
		switch v := b.literal(t); v.kind {
		case name:
			out = append(out, argument{name: v.name})
		case float:
			out = append(out, argument{f: v.f})
		default:
			b.fail(t.at, "%s; want a name or a hex float", kindNames[v.kind])
		}
		if t = b.token(); t.text == end {
			break
		} else if t.text != "," {
			b.fail(t.at, "%v in a list; want a comma or %s", t, end)
		}
	}
	return out
}

// is reports whether the arguments of a call are these; a word after a star is taken and returned, one for each star.
func (c *call) is(numbers int, args ...string) ([]string, bool) {
	if len(c.numbers) != numbers || len(c.args) != len(args) {
		return nil, false
	}
	var taken []string
	for i, a := range c.args {
		if args[i] == "*" && a.name != "" {
			taken = append(taken, a.name)
		} else if a.name != args[i] || a.name == "" {
			return nil, false
		}
	}
	return taken, true
}

// spell is the call as a message quotes it.
func (s *statement) spell() string {
	args := make([]string, len(s.args))
	for i, a := range s.args {
		if args[i] = a.name; a.name == "" {
			args[i] = strconv.FormatFloat(a.f, 'g', -1, 32)
		}
	}
	return s.what + "(" + strings.Join(args, ", ") + ")"
}
