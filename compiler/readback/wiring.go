package readback

import (
	"strings"

	"amkc/ir"
)

// A wiring is what the calls of a stage say that it reads and hands over. Vectors are members of families, those of
// the stage's layer or of the next one; embed hands the first member over, and the head reads the last.
type wiring struct {
	in, out      string
	matrix       string // that the producer streams for the stage
	norm, shift  string // the weight of a matrix stage's norm, and its bias
	bias         string // of a matrix stage that has one
	curve        string // the weights of its activation
	table        string // that tokens are looked up in
	positions    string // the table of positions, a row of which is added to a token's
	qNorm, kNorm string // of attention that normalises heads

	qShift, kShift string // and adds biases
	called         int    // which of the calls of the consumers is its first
}

// wire finds out what each stage reads and hands over, from the first call of each.
func (b *builder) wire() {
	streams := map[string]*kernelCall{}
	for i := range b.streamed.calls {
		streams[b.streamed.calls[i].of] = &b.streamed.calls[i]
	}
	for _, d := range b.stages {
		b.wireCall(d, d.call, streams[d.scope.name])
	}
	b.wireMembers()
}

// wireCall takes the arguments of a stage's call.
func (b *builder) wireCall(d *descriptor, c, stream *kernelCall) {
	var vectors, weights []*string
	args := c.args
	switch d.body {
	case embedBody:
		vectors, weights = []*string{&d.out}, []*string{&d.table}
		if b.facts.positions > 0 {
			weights = append(weights, &d.positions)
		}
	case embedReplicatedBody:
		weights = []*string{&d.table}
	case addNormBody:
		vectors, weights = []*string{&d.in}, []*string{&d.norm}
	case addNormRowsBody:
		vectors, weights = []*string{&d.in, &d.out}, []*string{&d.norm}
	case combineBody:
		vectors = []*string{&d.in, &d.out}
	case attendBody:
		if len(args) > 0 && args[0].inside != nil {
			args = append(args[0].inside[:len(args[0].inside):len(args[0].inside)], args[1:]...)
		}
		vectors = []*string{&d.in, &d.out}
		if d.normed {
			weights = []*string{&d.qNorm, &d.kNorm}
			if d.shifted {
				weights = append(weights, &d.qShift, &d.kShift)
			}
		}
	default:
		for _, p := range d.function.params {
			switch p.name {
			case "in":
				vectors = append(vectors, &d.in)
			case "out":
				vectors = append(vectors, &d.out)
			case "gain":
				weights = append(weights, &d.norm)
			case "shift":
				weights = append(weights, &d.shift)
			case "bias":
				weights = append(weights, &d.bias)
			case "curve":
				weights = append(weights, &d.curve)
			}
		}
		if d.head() {
			d.out = bestVectors
		}
		if stream == nil || len(stream.args) == 0 {
			b.failCall(b.streamed.spell(b.streamed.begin), "no matrix is streamed for stage %s; want one", d.scope.name)
			return
		}
		d.matrix = b.weightAt(b.streamed, &stream.args[0])
	}
	if len(args) != len(vectors)+len(weights) {
		b.failCall(b.computed.spell(c.at), "%s has %d arguments; want %d", c.what, len(args), len(vectors)+len(weights))
		return
	}
	for i := range args {
		if a := &args[i]; a.base != "" && len(weights) > 0 {
			*weights[0], weights = b.weightAt(b.computed, a), weights[1:]
		} else if a.base == "" && len(vectors) > 0 {
			*vectors[0], vectors = b.vectorAt(d, a), vectors[1:]
		} else {
			b.failCall(b.computed.spell(a.at), "%s is no argument of %s; want pages and addresses in their places",
				a.spell(), c.what)
		}
	}
}

// bestVectors stands for the two vectors of the best logits, which one counter announces.
const bestVectors = "best"

// weightAt is the weight at an address.
func (b *builder) weightAt(w *walk, p *place) string {
	c := b.config.byName[p.name]
	if buf, known := b.weight(p.name); known && p.base != "" && (p.index != "") == (c != nil && c.array) {
		return buf.Name
	}
	b.failCall(w.spell(p.at), "%s is the address of no weight; want base or weights and a constant of model_config.h",
		p.spell())
	return "none"
}

// vectorAt is the vector on a page: the family, or where the layers are in no loop its member by what the layer of the
// stage is to it.
func (b *builder) vectorAt(d *descriptor, p *place) string {
	constant, own := p.name, b.memberOf(d)
	member := own
	if layer, rest, single := layerOf(strings.TrimPrefix(p.name, "k")); single && b.unrolled {
		constant, member = "k"+rest, layer
	}
	for _, v := range vectors {
		if v.constant == constant && ir.IsFamily(v.buffer) && (member == own || member == own+1) {
			return strings.Replace(v.buffer, "{i}", [2]string{"{i}", "{i+1}"}[member-own], 1)
		}
	}
	b.failCall(b.computed.spell(p.at), "%s is the page of no vector that stage %s can use; want one of pages.h, of "+
		"its layer or of the next", p.spell(), d.scope.name)
	return vectors[0].buffer
}

// wireMembers says which member of a family a stage in the loop uses, which a page alone does not. The n-th stage of a
// step that writes the family writes its n-th member: that is the one of the layer, and of the next layer where one is
// written before the loop. What is read was written last.
func (b *builder) wireMembers() {
	first := map[string]bool{}
	for _, d := range b.stages {
		if !d.inLayer() && d.out != "" {
			first[d.out] = true
		}
	}
	next := func(family string) string { return strings.Replace(family, "{i}", "{i+1}", 1) }
	written := map[string]int{} // by which call
	for _, d := range b.stages {
		if d.looped() && first[d.out] {
			written[d.out], d.out = d.called, next(d.out)
		}
	}
	for _, d := range b.stages {
		if order, inLoop := written[d.in]; inLoop && d.looped() && order < d.called {
			d.in = next(d.in)
		}
		if d.head() && !b.unrolled && !first[d.in] && d.in != "" {
			b.failCall(b.computed.spell(b.computed.calls[d.called].at), "the logits are made of a vector that the "+
				"last layer does not hand on; want one that the first layer reads")
		}
	}
}
