package readback

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/kernel"
)

// buffers declares every buffer but the exchanged vectors: weights in the order of their constants, which is that of
// weights.safetensors, and what the kernel has without a constant.
func (b *builder) buffers() {
	m := &b.facts
	for _, c := range b.config.order {
		if w, known := b.weight(c.name); known {
			b.config.taken[c.name] = true
			if c.array {
				b.p.Buffers = append(b.p.Buffers, b.runs(c, w.Count)...)
				continue
			}
			b.p.Buffers = append(b.p.Buffers, b.stored(w, 0))
		}
	}
	b.p.Buffers = append(b.p.Buffers, b.states()...)
	b.p.Buffers = append(b.p.Buffers,
		ir.Buffer{Name: kernel.Named.Token, Kind: ir.Input, DType: ir.I32, Shape: []int{1}},
		ir.Buffer{Name: m.Embeddings, Kind: ir.Input, DType: ir.F32, Shape: []int{m.Hidden}},
		ir.Buffer{Name: m.LastHidden, Kind: ir.Output, DType: ir.F32, Shape: []int{m.Hidden}},
		ir.Buffer{Name: kernel.Shared[ir.RoleLogits], Kind: ir.Output, DType: ir.F32,
			Shape: []int{m.Vocab / m.NumRanks()}})
	onChip := func(name string, dtype ir.DType, shape ...int) {
		b.p.Buffers = append(b.p.Buffers, ir.Buffer{Name: name, Kind: ir.Activation, DType: dtype, Shape: shape,
			Space: ir.SMEM})
	}
	ofRouters := func(name string, dtype ir.DType, shape ...int) {
		family := ir.Buffer{Name: name, Count: m.layers, Kind: ir.Activation, DType: dtype, Shape: shape,
			Space: ir.SMEM}
		if !b.unrolled {
			b.p.Buffers = append(b.p.Buffers, family)
			return
		}
		for layer := range m.layers {
			if b.p.Model.Of(layer).Experts > 0 {
				b.p.Buffers = append(b.p.Buffers, ofLayer(family, layer))
			}
		}
	}
	if m.replicated {
		onChip(kernel.Named.Residual, ir.F32, m.SMs, m.Hidden)
		onChip(kernel.Named.Rounded, m.dtypes.Activations, m.SMs, m.Hidden)
	} else {
		onChip(kernel.Named.Residual, ir.F32, m.Hidden)
	}
	if m.normRows {
		onChip(kernel.Named.Branch, m.dtypes.Activations, m.Hidden)
	}
	if slices.ContainsFunc(b.stages, func(d *descriptor) bool { return d.body.Keeps&kernel.Choice != 0 }) {
		chosen := b.p.Model.Most(ir.PerTokenOf)
		ofRouters(kernel.Named.Ids, ir.I32, m.SMs, chosen)
		ofRouters(kernel.Named.Shares, ir.F32, m.SMs, chosen)
	}
	if slices.ContainsFunc(b.stages, func(d *descriptor) bool { return d.Gated }) {
		ofRouters(kernel.Named.Gate, ir.F32, m.SMs, 1)
	}
	b.p.Buffers = append(b.p.Buffers, b.endingBuffers()...)
}

// states are the buffers of what layers keep from step to step: a family for each run of layers with states alike,
// those of one name side by side, in the order in which layers first have them, and rows of positions first.
func (b *builder) states() []ir.Buffer {
	if !b.unrolled && !b.p.Model.StatesDiffer() {
		one := b.statesOf(0)
		for i := range one {
			one[i].Count = b.facts.layers // whatever number of layers an edited header has
		}
		return one
	}
	var out []ir.Buffer
	for layer := range b.facts.layers {
		for _, one := range b.statesOf(layer) {
			last := len(out) - 1
			for last >= 0 && out[last].Name != one.Name && !b.unrolled {
				last--
			}
			switch {
			case b.unrolled:
				out = append(out, ofLayer(one, layer))
			case last >= 0 && out[last].Last() == layer-1 && slices.Equal(out[last].Shape, one.Shape):
				out[last].Count++
			case last >= 0:
				out = slices.Insert(out, last+1, one)
			default:
				out = append(out, one)
			}
		}
	}
	slices.SortStableFunc(out, func(x, y ir.Buffer) int { return cmp.Compare(x.Kind, y.Kind) })
	return out
}

// statesOf are the buffers of the states of one layer, of whichever body has states there.
func (b *builder) statesOf(layer int) (out []ir.Buffer) {
	facts := b.p.Model.Of(layer)
	for i := range kernel.Buffers {
		of := &kernel.Buffers[i]
		one := ir.Buffer{Name: of.Name, First: layer, Count: 1}
		switch {
		case of.State != nil && of.State(facts) != (ir.State{}):
			s := of.State(facts)
			one.Kind, one.DType, one.Shape = ir.KVCache, s.Type(b.facts.dtypes.Cache), s.Shape(b.facts.maxSeq)
			if one.Layout.Kind = ir.KVRows16; b.facts.fragments && !s.Inputs {
				one.Layout.Kind = ir.KVBlock16
			}
		case of.Keeps != nil && of.Keeps(facts) != nil:
			one.Kind, one.DType, one.Shape = ir.Recurrent, ir.F32, of.Keeps(facts)
		default:
			continue
		}
		out = append(out, one)
	}
	return out
}

// ofLayer is one member of a family, as a buffer in none.
func ofLayer(family ir.Buffer, layer int) ir.Buffer {
	family.Name, _ = ir.Resolve(family.Name, layer)
	family.First, family.Count = 0, 0
	return family
}

// weight is the buffer whose offset a constant of model_config.h is, or of whose families it lists the offsets layer by
// layer.
func (b *builder) weight(constant string) (ir.Buffer, bool) {
	if c := b.config.byName[constant]; c != nil && c.array {
		base, listed := strings.CutSuffix(constant, "At")
		w, known := b.weightOf(base, 0)
		return w, listed && known && !b.unrolled && (len(w.Shape) >= 2 || len(b.p.Model.Kinds) > 0) && w.Count > 0 &&
			w.Count == len(c.value.list)
	}
	if !b.unrolled {
		return b.weightOf(constant, 0)
	}
	layer, rest, single := layerOf(strings.TrimPrefix(constant, "k"))
	if !single {
		w, known := b.weightOf(constant, 0)
		return w, known && w.Count == 0
	}
	w, known := b.weightOf("k"+rest, layer)
	return ofLayer(w, layer), known && w.Count > 0 && layer < b.facts.layers
}

// stored is the buffer of a weight, as the stages of a kind of layers that read it say it is stored; 0 is of all.
func (b *builder) stored(w ir.Buffer, kind int) ir.Buffer {
	s, own := b.storage[matrixOf{w.Name, kind}]
	if !own {
		s = b.storage[matrixOf{w.Name, 0}]
	}
	if s.Quantised() {
		w.DType, w.Layout = s.DType, s.Layout()
	}
	return w
}

// runs are the families of a weight with a place for each of n layers: one for each run of layers whose stages read it
// as of one shape, and stored in one format, where rows are in pairs have heads of one size, and unless one stage reads
// it in all layers have experts or none. Layers without such a stage have none.
func (b *builder) runs(c *constant, n int) []ir.Buffer {
	var out []ir.Buffer
	layers := ir.Loop{Count: n, Kinds: b.kinds}
	for layer := range n {
		w, _ := b.weightOf(strings.TrimSuffix(c.name, "At"), layer)
		if !b.reads(w.Name, layers.Kind(layer)) {
			continue
		}
		in, m := b.stored(w, layers.Kind(layer)), &b.p.Model
		if last := len(out) - 1; last >= 0 && out[last].Last() == layer-1 && out[last].Format() == in.Format() &&
			slices.Equal(out[last].Shape, in.Shape) &&
			(!paired(strings.TrimSuffix(c.name, "At")) || m.Of(layer).HeadDim == m.Of(layer-1).HeadDim) &&
			(m.Of(layer).Experts == m.Of(layer-1).Experts || b.reads(w.Name, 0)) {
			out[last].Count++
			continue
		}
		in.First, in.Count = layer, 1
		out = append(out, in)
	}
	return out
}

// reads reports whether a stage of the layers of a kind reads a weight.
func (b *builder) reads(weight string, kind int) bool {
	return slices.ContainsFunc(b.stages, func(d *descriptor) bool {
		return (d.kind == 0 || d.kind == kind) && (d.Matrix == weight ||
			slices.ContainsFunc(d.argsOf(), func(a kernel.Arg) bool { return a.Weight && *a.At(&d.Stage) == weight }))
	})
}

// publishes reports whether a stage of the layers of a kind publishes a vector.
func (b *builder) publishes(vector string, kind int) bool {
	return slices.ContainsFunc(b.stages, func(d *descriptor) bool {
		return (d.kind == 0 || d.kind == kind) && strings.Replace(d.Out, "{i+1}", "{i}", 1) == vector
	})
}

// paired reports whether the rows of a weight are in the pairs of a rotation.
func paired(constant string) bool {
	if matrix, isBias := strings.CutSuffix(constant, "Bias"); isBias {
		constant = matrix + "Weight"
	}
	return slices.ContainsFunc(kernel.Buffers, func(w kernel.Buffer) bool {
		return w.Paired && constantFor(w.Name) == constant
	})
}

// weightOf is the weight, or the frequencies, whose offset a constant is called to be: kQkvWeight is that of
// L{i}.qkv.weight, and kQkvBias of what its rows are added to. Its shape is that in a layer.
func (b *builder) weightOf(constant string, layer int) (ir.Buffer, bool) {
	m := &b.facts
	for i, t := range m.rotations {
		if constant == numbered(invFreq, i) {
			return ir.Buffer{Name: t.Frequencies, Kind: ir.Const, DType: ir.F32, Shape: []int{t.Pairs}}, true
		}
	}
	matrix, isBias := strings.CutSuffix(constant, "Bias")
	if isBias = isBias && !slices.ContainsFunc(kernel.Buffers, func(w kernel.Buffer) bool {
		return w.Shape != nil && constantFor(w.Name) == constant // one that says its own shape
	}); isBias {
		constant = matrix + "Weight"
	}
	for _, w := range kernel.Buffers {
		if w.Shape == nil || constantFor(w.Name) != constant {
			continue
		}
		out := ir.Buffer{Name: w.Name, Kind: ir.Weight, DType: m.dtypes.Weights, Shape: w.Shape(b.factsOf(layer))}
		if ir.IsFamily(w.Name) {
			out.Count = m.layers
		}
		if isBias {
			out.Name, out.Shape = strings.TrimSuffix(w.Name, "weight")+"bias", out.Shape[:max(1, len(out.Shape)-1)]
		} else if len(out.Shape) >= 2 {
			out.Layout.Kind = ir.Tile8x32
		}
		if w.Exact {
			out.DType = ir.F32
		}
		return out, true
	}
	return ir.Buffer{}, false
}

// constantFor is the constant of a buffer: kPostNormWeight of L{i}.post_norm.weight.
func constantFor(name string) string {
	constant := "k"
	for _, word := range strings.FieldsFunc(strings.TrimPrefix(name, "L{i}."),
		func(r rune) bool { return r == '.' || r == '_' }) {
		constant += strings.ToUpper(word[:1]) + word[1:]
	}
	return constant
}

// checkWeights compares the offsets with the arena of weights.safetensors, whose data section the kernel gets, and with
// that of the cache.
func (b *builder) checkWeights() {
	r, s := &b.config, b.config.scope
	size := func(name string) int { return r.take(s, name, "size_t", integer).n }
	const why = "as the tensors lie in weights.safetensors"
	places, total := ir.WeightArena(b.p)
	offsets, stride, strides := map[string]int{}, 0, false
	for _, pl := range places {
		offsets[pl.Name] = pl.Offset
	}
	for _, c := range s.order {
		w, known := b.weight(c.name)
		if !known {
			continue
		}
		if c.array {
			b.checkOffsets(c, w, offsets)
			continue
		}
		at := func(member int) int {
			name, _ := ir.Resolve(w.Name, member) // which this package gives
			return offsets[name]
		}
		r.same(s, c.name, size(c.name), at(0), why)
		if w.Count > 1 {
			stride = at(1) - at(0)
		}
		strides = strides || w.Count > 0
	}
	if strides {
		r.same(s, "kLayerBytes", size("kLayerBytes"), stride, why)
	}
	r.same(s, "kWeightBytes", size("kWeightBytes"), total, why)
	caches, total := ir.CacheArena(b.one) // of each sequence
	r.same(s, "kCacheBytes", size("kCacheBytes"), total, "as large as its blocks")
	if b.p.Model.StatesDiffer() {
		b.checkCaches(caches)
	}
}

// placesOf is the list of where the states of a name begin, layer by layer, where layers differ in what they keep: one
// of all rows of positions, and one for each name of a STATE.
func placesOf(state *ir.Buffer) string {
	if state.Kind == ir.Recurrent {
		return constantFor(state.Name) + "At"
	}
	return constantFor(kernel.Named.Cache) + "At"
}

func (b *builder) checkCaches(places []ir.Placement) {
	r := &b.config
	offsets := map[string]int{}
	for _, pl := range places {
		offsets[pl.Name] = pl.Offset
	}
	want := map[string][]int{} // 0 of layers without
	for layer := range b.facts.layers {
		for _, state := range b.statesOf(layer) {
			name, _ := ir.Resolve(state.Name, layer)
			list := placesOf(&state)
			if want[list] == nil {
				want[list] = make([]int, b.facts.layers)
			}
			want[list][layer] = offsets[name]
		}
	}
	for _, list := range slices.Sorted(maps.Keys(want)) {
		c := r.scope.byName[list]
		if c == nil || c.typ != "size_t" || !c.array || len(c.value.list) != b.facts.layers {
			r.fail(r.scope.at, "no list %s of size_t with a value for each of %d layers; want where their caches begin",
				list, b.facts.layers)
			return
		}
		r.taken[c.name] = true
		for layer, v := range c.value.list {
			if v.kind != integer || v.n != want[list][layer] {
				r.fail(v.at, "%s is not where the cache of layer %d begins; want %d", list, layer, want[list][layer])
			}
		}
	}
}

// checkOffsets holds a list of offsets to where the members of families lie. A list is for those of several formats.
func (b *builder) checkOffsets(c *constant, w ir.Buffer, offsets map[string]int) {
	r := &b.config
	if runs := b.runs(c, w.Count); c.typ != "size_t" || len(runs) == 1 && runs[0].Count == w.Count &&
		!b.p.Model.Differ(ir.ExpertsOf) && !b.p.Model.Differ(ir.TapsOf) {
		r.fail(c.at, "%s is a list of %s; want one of size_t, and one offset where the layers have %s in one form",
			c.name, c.typ, w.Name)
		return
	}
	for layer, v := range c.value.list {
		name, _ := ir.Resolve(w.Name, layer)
		if want := offsets[name]; v.kind != integer || v.n != want { // 0 where it has none
			r.fail(v.at, "%s is not where layer %d has it; want %d, as the tensors lie in weights.safetensors", c.name,
				layer, want)
		}
	}
}
