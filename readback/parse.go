package readback

import (
	"slices"
	"strconv"
	"strings"

	"amkc/ir/diag"
)

// A value is a literal, the name of an enumerator or of a constant before, or a list of them.
type value struct {
	at   pos
	kind valueKind
	n    int     // of an integer; 1 for true
	f    float64 // of a float: what a C++ float holds
	name string
	list []value
}

type valueKind int

const (
	integer valueKind = iota
	float
	boolean
	name
	list
)

var kindNames = [...]string{"an integer", "a hex float", "true or false", "a name", "a list"}

// A constant is a declaration with a value. Array marks NAME[]{…}.
type constant struct {
	at    pos
	typ   string
	name  string
	array bool
	value value
}

// A scope holds the constants of a block or of a descriptor, in order. What is taken is known; the rest is reported.
type scope struct {
	name   string // of a descriptor; "" for a block
	at     pos
	order  []*constant
	byName map[string]*constant
	taken  map[string]bool
	above  []token // the comments that stand directly before it
}

func newScope(name string, at pos) *scope {
	return &scope{name: name, at: at, byName: map[string]*constant{}, taken: map[string]bool{}}
}

// An enumeration is the only one of a block.
type enumeration struct {
	at    pos
	name  string
	names []string
}

// A block is what the literals of a header declare.
type block struct {
	*source
	*scope
	structs []*scope
	funcs   []*function // of stages.h, which has nothing else
	enum    enumeration
	types   map[string]value // of using NAME = NAME
	names   map[string]bool
	above   []token
}

// parse reads the literals of a header.
func parse(file string, text []byte) (*block, *diag.Diagnostic) {
	b := &block{source: &source{file: file, text: string(text), code: codeGrammar, marks: "{}[]=;,:"},
		scope: newScope("", pos{1, 1}), names: map[string]bool{},
		types: map[string]value{}}
	if file == stagesFile {
		b.marks += "()<>&*+."
	}
	b.open()
	b.want("namespace")
	b.want("amk")
	b.want("{")
	if file == stagesFile {
		b.funcs = functionsOf(b)
	}
	for file != stagesFile && b.err == nil {
		t := b.token()
		if t.text == "}" && t.kind == punctuation {
			break
		}
		b.declaration(t)
	}
	if t := b.token(); b.err == nil && t.kind != endOfText {
		b.fail(t.at, "%v after the namespace; want the end of the literals", t)
	}
	return b, b.err
}

// elementTypes are the names that model_config.h has for types of elements: of weights, of what stages publish, and
// of the cache.
var elementTypes = []string{weightElement, element, cacheElement}

const weightElement, element, cacheElement = "WeightElement", "Element", "CacheElement"

func (b *block) declaration(t token) {
	switch {
	case t.kind == word && t.text == "using":
		n := b.declared()
		b.want("=")
		v := b.value()
		if b.want(";"); b.err == nil && (!slices.Contains(elementTypes, n.text) || v.kind != name) {
			b.fail(n.at, "using %s; want using NAME = NAME for %s", n.text, strings.Join(elementTypes, ", "))
		}
		b.types[n.text] = v
	case t.kind == word && t.text == "constexpr":
		b.constant(b.scope, true)
	case t.kind == word && t.text == "__device__": // what the kernel looks up at run time
		b.want("constexpr")
		if b.constant(b.scope, true); b.err == nil && !b.scope.order[len(b.scope.order)-1].array {
			b.fail(t.at, "__device__ before a constant that is not an array; want constexpr alone")
		}
	case t.kind == word && t.text == "enum":
		b.enumerate()
	case t.kind == word && t.text == "struct":
		above := b.above
		n := b.declared()
		s := newScope(n.text, n.at)
		s.above = above
		b.structs = append(b.structs, s)
		b.want("{")
		for b.err == nil {
			if t := b.token(); t.text == "}" {
				break
			} else if t.text != "static" {
				b.fail(t.at, "%v in struct %s; want static constexpr TYPE NAME and a literal", t, n.text)
			}
			b.want("constexpr")
			b.constant(s, false)
		}
		b.want(";")
	default:
		b.fail(t.at, "%v; want using, constexpr, enum or struct", t)
	}
}

// constant reads TYPE NAME = VALUE; or TYPE NAME{…}; or, in a block, TYPE NAME[]{…};
func (b *block) constant(s *scope, lists bool) {
	typ := b.word("a type")
	c := &constant{typ: typ.text}
	if lists {
		n := b.declared()
		c.name, c.at = n.text, n.at
	} else {
		n := b.word("a name")
		c.name, c.at = n.text, n.at
		if b.err == nil && s.byName[c.name] != nil {
			b.fail(c.at, "%s is declared twice in struct %s", c.name, s.name)
		}
	}
	t := b.token()
	switch {
	case lists && t.text == "[":
		b.want("]")
		b.want("{")
		c.array, c.value = true, b.values(t.at)
	case t.text == "{":
		c.value = b.values(t.at)
	case t.text == "=":
		c.value = b.value()
	default:
		b.fail(t.at, "%v after %s; want = and a literal", t, c.name)
	}
	b.want(";")
	s.order, s.byName[c.name] = append(s.order, c), c
}

func (b *block) enumerate() {
	n := b.declared()
	if b.enum.name != "" {
		b.fail(n.at, "a second enumeration; want one")
	}
	b.enum = enumeration{at: n.at, name: n.text}
	for _, want := range []string{":", "unsigned", "{"} {
		b.want(want)
	}
	for b.err == nil {
		t := b.token()
		if t.text == "}" {
			break
		}
		if t.kind != word {
			b.fail(t.at, "%v; want an enumerator", t)
		}
		b.declare(t)
		b.enum.names = append(b.enum.names, t.text)
		b.want(",")
	}
	b.want(";")
}

// values reads the rest of a brace list, a comma after the last value allowed.
func (b *block) values(at pos) value {
	v := value{at: at, kind: list}
	for b.err == nil {
		t := b.token()
		if t.text == "}" && t.kind == punctuation {
			break
		}
		v.list = append(v.list, b.literal(t))
		if t = b.token(); t.text == "}" {
			break
		} else if t.text != "," {
			b.fail(t.at, "%v in a list; want a comma or }", t)
		}
	}
	return v
}

func (b *block) value() value { return b.literal(b.token()) }

func (b *block) literal(t token) value {
	v := value{at: t.at}
	switch {
	case t.kind == word && (t.text == "true" || t.text == "false"):
		v.kind, v.n = boolean, len("false")-len(t.text)
	case t.kind == word:
		v.kind, v.name = name, t.text
	case t.kind == number && strings.HasPrefix(t.text, "0x"):
		v.kind = float
		digits, ok := strings.CutSuffix(t.text, "f")
		f, err := strconv.ParseFloat(digits, 32)
		if !ok || err != nil || strings.Contains(t.text, "_") {
			b.fail(t.at, "%v; want a finite hex float such as 0x1.8p+01f", t)
		}
		v.f = f
	case t.kind == number:
		n, err := strconv.ParseUint(t.text, 10, 53)
		if err != nil || len(t.text) > 1 && t.text[0] == '0' {
			b.fail(t.at, "%v; want a decimal integer below 2^53 or a hex float", t)
		}
		v.n = int(n)
	default:
		b.fail(t.at, "%v; want a literal or a name", t)
	}
	return v
}

// token returns the next token that is not a comment, and leaves the comments before it in above.
func (b *block) token() token {
	b.above = nil
	for {
		t := b.next()
		if t.kind != comment {
			return t
		}
		b.above = append(b.above, t)
	}
}

func (b *block) want(text string) {
	if t := b.token(); t.text != text {
		b.fail(t.at, "%v; want %s", t, text)
	}
}

func (b *block) word(what string) token {
	t := b.token()
	if t.kind != word {
		b.fail(t.at, "%v; want %s", t, what)
	}
	return t
}

// declared reads the name of something new.
func (b *block) declared() token {
	t := b.word("a name")
	b.declare(t)
	return t
}

func (b *block) declare(t token) {
	if b.names[t.text] {
		b.fail(t.at, "%s is declared twice", t.text)
	}
	b.names[t.text] = true
}
