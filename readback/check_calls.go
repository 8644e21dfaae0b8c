package readback

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
)

// checkCalls holds both walks of the kernel to the stages of each variant: their order, where each runs, and the
// pages, weights and caches that it is given. The producer streams the matrix or the cache of each stage that has one.
func (b *builder) checkCalls() {
	b.constants = map[string]string{}
	for _, c := range b.config.order {
		if w, known := b.weight(c.name); known {
			b.constants[w.Name] = c.name
		}
	}
	rotates := slices.ContainsFunc(b.stages, func(d *descriptor) bool { return d.Rotates })
	if b.computed.barrier != rotates {
		b.failCall(b.computed.spell(b.computed.begin), "consumer_barrier() is there or not; want it where attention "+
			"rotates, and there alone")
	}
	for i := range b.facts.rotations {
		for _, name := range []string{numbered(rotatedPairs, i), numbered(ropeScale, i)} {
			if b.computed.passed[name] != (b.config.scope.byName[name] != nil) {
				b.failCall(b.computed.spell(b.computed.begin), "%s is declared or passed to rotate_setup; want both, "+
					"or neither", name)
			}
		}
	}
	for i := range b.variants {
		l := &b.variants[i]
		var stream, compute []kernelCall
		for k, d := range l.stages {
			stream, compute = append(stream, b.streamOf(d)...), append(compute, b.callsOf(d)...)
			if b.barriers && l.endsLayer(k) {
				stream, compute = append(stream, d.awaits()), append(compute, d.barrierCalls()...)
			}
		}
		b.sameCalls(b.streamed, stream, i)
		b.sameCalls(b.computed, compute, i)
	}
}

// sameCalls compares the calls of a walk in a variant with those that its stages need.
func (b *builder) sameCalls(w *walk, want []kernelCall, variant int) {
	k := 0
	for i := range w.calls {
		c := &w.calls[i]
		switch {
		case c.variants>>variant&1 == 0:
			continue
		case k == len(want):
			b.failCall(w.spell(c.at), "%s comes after the last stage of variant %s; want no more calls", c.spell(),
				b.variants[variant].name)
			return
		case c.spell() != want[k].spell():
			b.failCall(w.spell(c.at), "%s in variant %s; want %s", c.spell(), b.variants[variant].name, want[k].spell())
			return
		}
		k++
	}
	if k < len(want) {
		b.failCall(w.spell(w.source.at), "the calls of variant %s end before %s; want it too", b.variants[variant].name,
			want[k].spell())
	}
}

func (b *builder) failCall(at, format string, args ...any) {
	if len(b.diags) < maxFindings {
		b.diags.Add(diag.Errorf(codeCalls, at, format, args...))
	}
}

// spell is a call with all that is said of it, for comparing and for messages.
func (c *kernelCall) spell() string {
	var out strings.Builder
	if c.looped {
		out.WriteString("in each layer ")
	}
	if c.kind > 0 {
		out.WriteString("of kind " + strconv.Itoa(c.kind) + " ")
	}
	if c.layer >= 0 {
		out.WriteString("c.layer = " + strconv.Itoa(c.layer) + "; ")
	}
	if c.entered != "" {
		out.WriteString("c.enter(" + c.entered + "); ")
	}
	if c.best {
		out.WriteString("best = ")
	}
	out.WriteString(c.what)
	if c.of != "" {
		out.WriteString("<" + c.of + ">")
	}
	return out.String() + "(" + spelled(c.args) + ")"
}

// contextOf is where the calls of a stage stand, in some variant.
func (d *descriptor) contextOf() context { return context{kind: d.kind, looped: d.looped()} }

// layerIn is the number of its layer, in a walk whose loop counts them in a variable.
func (d *descriptor) layerIn(variable string) place {
	if d.looped() {
		return place{name: variable}
	}
	return place{number: d.layer}
}

// set is the layer that the consumers note before a call, -1 where they do not.
func (d *descriptor) set() int {
	if d.single {
		return d.layer
	}
	return -1
}

// streamOf is what the producer does for a stage.
func (b *builder) streamOf(d *descriptor) []kernelCall {
	c := kernelCall{context: d.contextOf(), layer: -1, of: d.scope.name}
	switch d.body.Streams {
	case kernel.Tiles:
		c.what, c.args = "turns.weights", []place{b.addressOf(d, d.Matrix, "layer"), d.layerIn("layer")}
		if d.ByExperts() {
			c.what, c.args = "turns.experts", append(c.args, place{name: "step"})
		}
	case kernel.CacheRows:
		c.what, c.args = "turns.cache", []place{d.layerIn("layer"), {name: "position"}}
		c.args = append(c.args, b.stateAt(d, "layer")...)
	default:
		return nil
	}
	return []kernelCall{c}
}

// callsOf is what the consumers do for a stage; after the head's they end the step.
func (b *builder) callsOf(d *descriptor) []kernelCall {
	c := kernelCall{context: d.contextOf(), layer: d.set(), entered: "kStage" + d.scope.name, of: d.scope.name,
		what: d.body.Name}
	if d.body.Reader != nil {
		c.args = []place{{name: d.body.Reader(&d.Stage)}}
	}
	for _, a := range d.argsOf() {
		to, at := &c.args, place{}
		if name := *a.At(&d.Stage); a.Weight {
			at = b.addressOf(d, name, "c.layer")
		} else {
			at = b.pageOf(d, name)
		}
		if a.Inside {
			to = &c.args[0].inside
		}
		*to = append(*to, at)
	}
	c.args = append(c.args, b.stateAt(d, "c.layer")...)
	if d.body.Emitted {
		c.what, c.of, c.best = functionName(d.scope.name), "", d.head()
	}
	if !d.head() {
		return []kernelCall{c}
	}
	return append([]kernelCall{c}, d.endingCalls()...)
}

// awaits is what the producer does where a layer ends at a barrier, and barrierCalls what the consumers do.
func (d *descriptor) awaits() kernelCall {
	return kernelCall{context: context{looped: d.looped()}, layer: -1, what: "await_join",
		args: []place{{name: "step"}, d.layerIn("layer")}}
}

func (d *descriptor) barrierCalls() []kernelCall {
	at := context{looped: d.looped()}
	return []kernelCall{{context: at, layer: d.set(), what: "arrive"},
		{context: at, layer: d.set(), what: "join", args: []place{d.layerIn("c.layer")}}}
}

// stateAt is what a stage that keeps rows from step to step is told of them, in a walk whose loop counts layers in a
// variable: where they begin, if caches are of several sizes.
func (b *builder) stateAt(d *descriptor, variable string) (places []place) {
	if !b.p.Model.StatesDiffer() {
		return nil
	}
	layer := d.layerIn(variable)
	for i := range d.body.Buffers {
		of := &d.body.Buffers[i]
		if of.State == nil && of.Keeps == nil {
			continue
		}
		kept := ir.Buffer{Name: of.Name}
		if of.Keeps != nil {
			kept.Kind = ir.Recurrent
		}
		places = append(places, place{name: placesOf(&kept), index: layer.spell()})
	}
	return places
}

// addressOf is the address of a weight, or of its member for the layer of a stage, in a walk whose loop counts layers
// in a variable.
func (b *builder) addressOf(d *descriptor, weight, variable string) place {
	weight = b.outside(d, weight)
	if c := b.config.byName[b.constants[weight]]; c != nil && c.array {
		return place{base: "weights", name: c.name, index: variable}
	}
	if ir.IsFamily(weight) {
		return place{base: "base", name: b.constants[weight]}
	}
	return place{base: "weights", name: b.constants[weight]}
}

// pageOf is the page of a vector, or of its member for the layer of a stage.
func (b *builder) pageOf(d *descriptor, vector string) place {
	p := place{name: constantOf(strings.Replace(vector, "{i+1}", "{i}", 1))}
	m := &member{looped: d.looped(), number: strings.Count(vector, "{i+1}")}
	switch {
	case d.afterLayers():
		m.number = b.facts.layers
	case d.single:
		m.number += d.layer
	}
	if b.unrolled {
		return place{name: fmt.Sprintf("kL%02d%s", m.number, p.name[1:])}
	}
	if c := b.pages.byName[p.name]; c != nil && c.array {
		m.pages = len(c.value.list)
		p.member = m
	}
	return p
}

// constantOf is the constant that says where a vector lies.
func constantOf(buffer string) string {
	i := slices.IndexFunc(vectors, func(v vector) bool { return v.Name == buffer })
	return vectors[i].constant
}
