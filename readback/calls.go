package readback

import (
	"slices"
	"strconv"
)

// megakernel.cu has two walks over a step: what the producer streams, and what the consumers compute. Between their
// marks stand loops over the layers, branches, and calls of stages; docs/verify.md has the grammar. Each call is noted
// with where it runs, so that what is left of a walk is a list of calls.

// A context is where a call stands.
type context struct {
	variants uint // a bit for each, by its number
	kind     int  // of layers; 0: of all
	looped   bool // in the loop over the layers
}

// A kernelCall is one call, with what is said right before it.
type kernelCall struct {
	context
	at      pos
	entered string // the number of a stage, in c.enter(…); "" for none
	layer   int    // in c.layer = …; -1 for none
	what    string // the function, or method of turns
	of      string // the descriptor between its angles
	args    []place
	best    bool // its result is the best logit
}

// A walk is one of the two, being read.
type walk struct {
	*block
	streams  bool   // the producer's
	variable string // that counts the layers, and the one that holds the position
	position string
	ends     map[string]int // the variants, by the constants past their last positions
	kinds    []int          // of the layers, sorted
	here     context
	entered  token
	layer    int
	looped   bool // a loop over the layers has been there
	bases    [2]bool
	begin    pos
	tables   int             // of angles
	passed   map[string]bool // constants that rotate_setup is given
	barrier  bool            // consumers meet once the angles are there
	calls    []kernelCall
}

// walks reads the two walks of megakernel.cu.
func (b *builder) walks(text []byte) {
	regions, err := regionsOf(kernelFile, string(text), walkMark, consumeMark)
	if b.diags.Add(err); err != nil {
		return
	}
	read := func(s *source, w walk) *walk {
		w.block = &block{source: s, scope: newScope("", s.at), names: map[string]bool{}}
		w.begin, w.ends, w.layer = s.at, map[string]int{}, -1
		w.tables, w.passed = len(b.facts.rotations), map[string]bool{}
		w.kinds = slices.Compact(slices.Sorted(slices.Values(b.kinds)))
		for i, end := range b.ends {
			w.ends[end] = i
			w.here.variants |= 1 << i
		}
		w.read()
		b.diags.Add(w.err)
		return &w
	}
	b.streamed = read(regions[0], walk{streams: true, variable: "layer", position: "position"})
	b.computed = read(regions[1], walk{variable: "c . layer", position: "c . position"})
}

func (w *walk) read() {
	if w.streams {
		for t := w.token(); t.kind != endOfText && w.err == nil; t = w.token() {
			w.stream(t)
		}
		return
	}
	for i := range w.tables {
		w.rotateSetup(i)
	}
	if w.peek().text == "consumer_barrier" {
		w.phrase("consumer_barrier ( ) ;")
		w.barrier = true
	}
	w.statements("")
}

// rotateSetup reads the call that makes a table of angles.
func (w *walk) rotateSetup(table int) {
	w.want("rotate_setup")
	if table > 0 || w.peek().text == "<" {
		pairs := numbered(rotatedPairs, table)
		w.want("<")
		if table > 0 && w.peek().text == "kHeadDim" {
			w.phrase("kHeadDim / 2")
		} else {
			w.want(pairs)
			w.passed[pairs] = true
		}
		if table > 0 {
			w.phrase(", " + strconv.Itoa(table))
		}
		w.want(">")
	}
	w.phrase("( c , reinterpret_cast < const float * > ( weights + " + numbered(invFreq, table) + " )")
	if w.peek().text == "," {
		w.phrase(", " + numbered(ropeScale, table))
		w.passed[numbered(ropeScale, table)] = true
	}
	w.phrase(") ;")
}

const unroll = "#pragma unroll 1"

// stream reads a loop of the producer: that over the layers, or one that takes what is streamed one by one.
func (w *walk) stream(t token) {
	if t.text != unroll {
		w.fail(t.at, "%v; want %s and a loop", t, unroll)
	}
	w.phrase("for (")
	if !w.here.looped && w.peek().text == "int" {
		w.overLayers("int layer = 0 ; layer < kLayers && ! p . stopped ; ++ layer ) {")
		return
	}
	w.phrase("Turns turns ; turns . left ( ) ; turns . copy ( p , step ) ) {")
	w.statements("}")
}

// overLayers reads the loop over the layers, from behind its parenthesis on.
func (w *walk) overLayers(head string) {
	if w.looped {
		w.fail(w.peek().at, "a second loop over the layers; want one")
	}
	w.phrase(head)
	w.looped, w.here.looped, w.bases = true, true, [2]bool{}
	if w.peek().text == "const" {
		w.phrase("const u8 * base = weights + " + w.variable + " * kLayerBytes ;")
		w.bases[0] = true
	}
	if end := w.peek().at; w.streams {
		w.stream(w.token())
		w.want("}")
	} else if w.statements("}"); w.bases[0] != w.bases[1] {
		w.fail(end, "base is declared or used in the loop over the layers; want both, or neither")
	}
	if w.streams && w.bases[0] != w.bases[1] {
		w.fail(w.source.at, "base is declared or used in the loop over the layers; want both, or neither")
	}
	w.here.looped = false
}

// statements reads statements up to an end, which is that of the text for "".
func (w *walk) statements(end string) {
	for w.err == nil {
		t := w.token()
		if t.text == end {
			break
		}
		w.statement(t)
	}
	if w.entered.text != "" || w.layer >= 0 {
		w.fail(w.source.at, "no call after c.enter or c.layer; want that of the stage")
	}
}

func (w *walk) statement(t token) {
	switch {
	case t.text == "if":
		w.want("(")
		w.conditional()
	case t.text == unroll && !w.streams && w.here.kind == 0 && !w.here.looped:
		w.phrase("for (")
		w.overLayers("c . layer = 0 ; c . layer < kLayers ; ++ c . layer ) {")
	case t.text == "c" && !w.streams:
		w.want(".")
		w.prepare()
	case t.text == "const" && !w.streams:
		w.phrase("Best best =")
		w.call(w.word("the stage of the logits"), "c", ";", true)
	case t.kind != word:
		w.fail(t.at, "%v; want the call of a stage", t)
	case w.streams:
		w.call(t, "p.c", ";", false)
	default:
		w.call(t, "c", ";", false)
	}
}

// prepare reads what stands before the call of a stage: its layer, and its number.
func (w *walk) prepare() {
	switch t := w.token(); {
	case t.text == "enter" && w.entered.text == "":
		w.want("(")
		w.entered = w.word("an enumerator of StageNumber")
		w.phrase(") ;")
	case t.text == "layer" && w.entered.text == "" && w.layer < 0:
		w.want("=")
		w.layer = w.integer()
		w.want(";")
	default:
		w.fail(t.at, "%v; want c.layer = NUMBER, then c.enter(STAGE), then the call", t)
	}
}

// conditional reads what begins with if and a parenthesis: a branch; or what ends a step, or a turn.
func (w *walk) conditional() {
	t := w.peek()
	switch {
	case t.text == "stopped" && !w.streams:
		w.call(w.token(), "c", ") break ;", false)
	case t.text == "turns" && w.streams:
		w.phrase("turns . now ( ) )")
		w.call(w.word("await_join"), "p", ";", false)
	default:
		w.branch(t.text == "of_kind")
	}
}

// branch reads the arms of a branch, from behind its first parenthesis on: on the position, or on the kind of a layer.
func (w *walk) branch(onKind bool) {
	outer, left := w.here, w.here
	kinds := w.kinds
	at := w.peek().at
	if outer.kind != 0 || onKind && !outer.looped || !onKind && outer.variants+1 != 1<<len(w.ends) {
		w.fail(at, "a branch where none can be; want one on the position, and in it one on the kind of a layer")
	}
	for w.err == nil {
		arm := left
		if onKind {
			arm.kind, kinds = w.ofKind(kinds)
		} else {
			arm.variants = w.before(left.variants)
			left.variants &^= arm.variants
		}
		w.arm(arm)
		if w.peek().text != "else" {
			break
		}
		w.want("else")
		if w.peek().text == "if" {
			w.phrase("if (")
			continue
		}
		at := w.peek().at
		w.want("{")
		if onKind {
			if len(kinds) != 1 {
				w.fail(at, "else of a branch on the kind is for %d kinds; want one", len(kinds))
				break
			}
			left.kind = kinds[0]
		} else if left.variants == 0 {
			w.fail(at, "else of a branch on the position is for no variant; want one")
		}
		w.arm(left)
		break
	}
	w.here = outer
}

func (w *walk) arm(here context) {
	w.here = here
	w.statements("}")
}

// before reads a condition on the position, and returns which of the variants it is for.
func (w *walk) before(of uint) uint {
	w.phrase(w.position + " <")
	t := w.word("the end of a variant")
	i, known := w.ends[t.text]
	of &= 1<<(i+1) - 1
	if w.err == nil && (!known || of == 0) {
		w.fail(t.at, "%v is not an end of a variant that comes here; want one", t)
	}
	w.phrase(") {")
	return of
}

// ofKind reads a condition on the kind of a layer, and returns it and the kinds that are left.
func (w *walk) ofKind(of []int) (kind int, left []int) {
	w.phrase("of_kind <")
	at := w.peek().at
	kind = w.integer()
	w.phrase("> ( " + w.variable + " ) ) {")
	for _, k := range of {
		if k != kind {
			left = append(left, k)
		}
	}
	if w.err == nil && len(left) == len(of) {
		w.fail(at, "%d is not a kind of the layers that come here; want one", kind)
	}
	return kind, left
}

// call reads a call from its name on, with its first argument and what ends it.
func (w *walk) call(t token, first, end string, best bool) {
	c := kernelCall{context: w.here, at: t.at, entered: w.entered.text, layer: w.layer, what: t.text, best: best}
	w.entered, w.layer = token{}, -1
	if t = w.token(); t.text == "." {
		c.what += "." + w.word("a method").text
		t = w.token()
	}
	if t.text == "<" {
		c.of = w.word("a descriptor").text
		w.want(">")
		t = w.token()
	}
	if t.text != "(" {
		w.fail(t.at, "%v; want ( and the arguments of %s", t, c.what)
	}
	c.args = w.places(")")
	if w.err == nil && (len(c.args) == 0 || !c.args[0].is(first)) {
		w.fail(c.at, "%s without the context; want %s as its first argument", c.what, first)
	} else if w.err == nil {
		c.args = c.args[1:]
	}
	w.phrase(end)
	w.calls = append(w.calls, c)
}

func (w *walk) integer() int {
	t := w.token()
	v := w.literal(t)
	if v.kind != integer || t.kind != number {
		w.fail(t.at, "%v; want an integer", t)
	}
	return v.n
}

// peek is the next token that is not a comment.
func (w *walk) peek() token {
	i, at := w.source.i, w.source.at
	t := w.token()
	w.source.i, w.source.at = i, at
	return t
}
