package readback

import (
	"strings"

	"amkc/ir"
	"amkc/kernel"
)

// wire finds out what each stage reads and publishes, from the first call of each.
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

// wireCall takes the arguments of a stage's call: members of families of vectors, those of the stage's layer or of the
// next one, and weights. Embed publishes the first member, and the head reads the last.
func (b *builder) wireCall(d *descriptor, c, stream *kernelCall) {
	args := c.args
	if d.body.Reader != nil && len(args) > 0 {
		args = append(args[0].inside[:len(args[0].inside):len(args[0].inside)], args[1:]...)
	}
	d.Resident = d.body.ReadsResidual && !d.body.Emitted && b.facts.replicated
	want := d.argsOf()
	for _, a := range d.body.Args {
		if n := len(want); a.Optional && n < len(args) && args[n].base != "" {
			*a.At(&d.Stage) = args[n].name
			want = d.argsOf()
		}
	}
	if d.body.Streams == kernel.Tiles {
		if d.head() {
			d.Out = bestVectors
		}
		if stream == nil || len(stream.args) == 0 {
			b.failCall(b.streamed.spell(b.streamed.begin), "no matrix is streamed for stage %s; want one", d.scope.name)
			return
		}
		d.Matrix = b.weightAt(b.streamed, &stream.args[0])
	}
	if n := len(want) + len(b.stateAt(d, "")); len(args) == n {
		args = args[:len(want)] // checkCalls looks at the cache
	}
	if len(args) != len(want) {
		b.failCall(b.computed.spell(c.at), "%s has %d arguments; want %d", c.what, len(args), len(want))
		return
	}
	for i, w := range want {
		switch a := &args[i]; {
		case w.Weight != (a.base != ""):
			b.failCall(b.computed.spell(a.at), "%s is not an argument of %s; want pages and addresses in their places",
				a.spell(), c.what)
		case w.Weight:
			*w.At(&d.Stage) = b.weightAt(b.computed, a)
		default:
			*w.At(&d.Stage) = b.vectorAt(d, a)
		}
	}
}

// argsOf are the arguments of a stage's call: those of its body, or of the function of a product.
func (d *descriptor) argsOf() []kernel.Arg {
	if !d.body.Emitted {
		return d.body.ArgsOf(&d.Stage)
	}
	var out []kernel.Arg
	for _, p := range d.function.params {
		if a, known := kernel.Params[p.name]; known {
			out = append(out, a)
		}
	}
	return out
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
		if v.constant == constant && ir.IsFamily(v.Name) && (member == own || member == own+1) {
			return strings.Replace(v.Name, "{i}", [2]string{"{i}", "{i+1}"}[member-own], 1)
		}
	}
	b.failCall(b.computed.spell(p.at), "%s is the page of no vector that stage %s can use; want one of pages.h, of "+
		"its layer or of the next", p.spell(), d.scope.name)
	return vectors[0].Name
}

// wireMembers says which member of a family a stage in the loop uses, which a page alone does not. The n-th stage of a
// step that writes the family writes its n-th member: that is the one of the layer, and of the next layer where one is
// written before the loop. What is read was written last.
func (b *builder) wireMembers() {
	first := map[string]bool{}
	for _, d := range b.stages {
		if !d.inLayer() && d.Out != "" {
			first[d.Out] = true
		}
	}
	next := func(family string) string { return strings.Replace(family, "{i}", "{i+1}", 1) }
	written := map[string]int{} // by which call
	for _, d := range b.stages {
		if d.looped() && first[d.Out] {
			written[d.Out], d.Out = d.called, next(d.Out)
		}
	}
	for _, d := range b.stages {
		if order, inLoop := written[d.In]; inLoop && d.looped() && order < d.called {
			d.In = next(d.In)
		}
		if d.head() && !b.unrolled && !first[d.In] && d.In != "" {
			b.failCall(b.computed.spell(b.computed.calls[d.called].at), "the logits are made of a vector that the "+
				"last layer does not hand on; want one that the first layer reads")
		}
	}
}
