package readback

import (
	"strings"

	"amkc/ir"
)

// Names of buffers that more than one stage uses.
const (
	residual             = "residual"
	rounded              = "x"          // the residual as it is read, where every SM has all of it
	normedRows           = "branch"     // what owners add to the residual, where that is norms of branches
	embeddings           = "embeddings" // what the host gives in the place of rows of tokens
	lastHidden           = "hidden"     // the last hidden state
	bestValue, bestIndex = "best.value", "best.index"
	nextToken, nextOnSM  = "next", "next.sm"
	stopTokens, stopLast = "stop.ids", "stop.last"
	stopOnSM             = "stop"
	sampling             = "sampling"
)

// buffers declares every buffer but the exchanged vectors: weights in the order of their constants, which is that of
// weights.safetensors, and what the kernel has without a constant.
func (b *builder) buffers() {
	m := &b.facts
	for _, c := range b.config.order {
		if w, known := b.weight(c.name); known {
			b.config.taken[c.name] = true
			if c.array {
				b.p.Buffers = append(b.p.Buffers, b.runs(w)...)
				continue
			}
			b.p.Buffers = append(b.p.Buffers, b.stored(w, 0))
		}
	}
	cache := ir.KVRows16
	if m.fragments {
		cache = ir.KVBlock16
	}
	kv := ir.Buffer{Name: "L{i}.kv", Count: m.layers, Kind: ir.KVCache, DType: m.dtypes.Cache,
		Shape:  []int{m.KVHeads, m.maxSeq, 2, m.HeadDim},
		Layout: ir.Layout{Kind: cache}}
	if b.unrolled {
		for layer := range m.layers {
			b.p.Buffers = append(b.p.Buffers, ofLayer(kv, layer))
		}
	} else {
		b.p.Buffers = append(b.p.Buffers, kv)
	}
	b.p.Buffers = append(b.p.Buffers,
		ir.Buffer{Name: "token", Kind: ir.Input, DType: ir.I32, Shape: []int{1}},
		ir.Buffer{Name: embeddings, Kind: ir.Input, DType: ir.F32, Shape: []int{m.Hidden}},
		ir.Buffer{Name: lastHidden, Kind: ir.Output, DType: ir.F32, Shape: []int{m.Hidden}},
		ir.Buffer{Name: "logits", Kind: ir.Output, DType: ir.F32, Shape: []int{m.Vocab}},
		ir.Buffer{Name: residual, Kind: ir.Activation, DType: ir.F32, Shape: []int{m.Hidden}, Space: ir.SMEM})
	if m.replicated {
		shape := []int{m.SMs, m.Hidden}
		b.p.Buffers[len(b.p.Buffers)-1].Shape = shape
		b.p.Buffers = append(b.p.Buffers, ir.Buffer{Name: rounded, Kind: ir.Activation, DType: m.dtypes.Activations,
			Shape: shape, Space: ir.SMEM})
	}
	if m.normRows {
		b.p.Buffers = append(b.p.Buffers, ir.Buffer{Name: normedRows, Kind: ir.Activation, DType: m.dtypes.Activations,
			Shape: []int{m.Hidden}, Space: ir.SMEM})
	}
	b.p.Buffers = append(b.p.Buffers, b.endingBuffers()...)
}

// ofLayer is one member of a family, as a buffer in none.
func ofLayer(family ir.Buffer, layer int) ir.Buffer {
	family.Name, _ = ir.Resolve(family.Name, layer)
	family.Count = 0
	return family
}

// weight is the buffer whose offset a constant of model_config.h is, or of whose families it lists the offsets layer by
// layer.
func (b *builder) weight(constant string) (ir.Buffer, bool) {
	if c := b.config.byName[constant]; c != nil && c.array {
		base, listed := strings.CutSuffix(constant, "At")
		w, known := b.weightOf(base)
		return w, listed && known && !b.unrolled && len(w.Shape) == 2 && w.Count > 0 && w.Count == len(c.value.list)
	}
	if !b.unrolled {
		return b.weightOf(constant)
	}
	layer, rest, single := layerOf(strings.TrimPrefix(constant, "k"))
	if !single {
		w, known := b.weightOf(constant)
		return w, known && w.Count == 0
	}
	w, known := b.weightOf("k" + rest)
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

// runs are the families of a weight with a place for each layer: one for each run of layers whose stages read it as
// stored in one format.
func (b *builder) runs(w ir.Buffer) []ir.Buffer {
	var out []ir.Buffer
	layers := ir.Loop{Count: w.Count, Kinds: b.kinds}
	for layer := range w.Count {
		in := b.stored(w, layers.Kind(layer))
		if last := len(out) - 1; last >= 0 && out[last].Format() == in.Format() {
			out[last].Count++
			continue
		}
		in.First, in.Count = layer, 1
		out = append(out, in)
	}
	return out
}

func (b *builder) weightOf(constant string) (ir.Buffer, bool) {
	m := &b.facts
	vector := func(name string, layers, n int) (ir.Buffer, bool) {
		return ir.Buffer{Name: name, Count: layers, Kind: ir.Weight, DType: m.dtypes.Weights, Shape: []int{n}}, true
	}
	matrix := func(name string, layers, rows, columns int) (ir.Buffer, bool) {
		return ir.Buffer{Name: name, Count: layers, Kind: ir.Weight, DType: m.dtypes.Weights,
			Shape: []int{rows, columns}, Layout: ir.Layout{Kind: ir.Tile8x32}}, true
	}
	if product, is := strings.CutSuffix(constant, "Bias"); is {
		of, known := b.weightOf(product + "Weight")
		if !known {
			return ir.Buffer{}, false
		}
		return vector(strings.TrimSuffix(of.Name, "weight")+"bias", of.Count, of.Shape[0])
	}
	for i, t := range m.rotations {
		if constant == numbered(invFreq, i) {
			return ir.Buffer{Name: t.Frequencies, Kind: ir.Const, DType: ir.F32, Shape: []int{t.Pairs}}, true
		}
	}
	switch constant {
	case "kPositionsWeight":
		return matrix("positions.weight", 0, m.positions, m.Hidden)
	case "kEmbedWeight":
		return matrix("embed.weight", 0, m.Vocab, m.Hidden)
	case "kInputNormWeight":
		return vector("L{i}.input_norm.weight", m.layers, m.Hidden)
	case "kQkvWeight":
		return matrix("L{i}.qkv.weight", m.layers, m.qkvRows(), m.Hidden)
	case "kQNormWeight":
		return vector("L{i}.q_norm.weight", m.layers, m.normedRows(m.attnRows()))
	case "kKNormWeight":
		return vector("L{i}.k_norm.weight", m.layers, m.normedRows(m.kvRows()))
	case "kOWeight":
		return matrix("L{i}.o.weight", m.layers, m.Hidden, m.attnRows())
	case "kPostNormWeight":
		return vector("L{i}.post_norm.weight", m.layers, m.Hidden)
	case "kPostAttnNormWeight":
		return vector("L{i}.post_attn_norm.weight", m.layers, m.Hidden)
	case "kPostMlpNormWeight":
		return vector("L{i}.post_mlp_norm.weight", m.layers, m.Hidden)
	case "kGateUpWeight":
		return matrix("L{i}.gate_up.weight", m.layers, 2*m.intermediate, m.Hidden)
	case "kUpWeight":
		return matrix("L{i}.up.weight", m.layers, m.intermediate, m.Hidden)
	case "kXieluWeight":
		return vector("L{i}.xielu.weight", m.layers, 4)
	case "kDownWeight":
		return matrix("L{i}.down.weight", m.layers, m.Hidden, m.intermediate)
	case "kFinalNormWeight":
		return vector("final_norm.weight", 0, m.Hidden)
	case "kLmHeadWeight":
		return matrix("lm_head.weight", 0, m.Vocab, m.Hidden)
	}
	return ir.Buffer{}, false
}

// checkWeights holds the offsets to the arena of weights.safetensors, whose data section the kernel is given, and to
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
	_, cache := ir.CacheArena(b.one) // of each sequence
	r.same(s, "kCacheBytes", size("kCacheBytes"), cache, "as large as its blocks")
}

// checkOffsets holds a list of offsets to where the members of families lie. A list is for those of several formats.
func (b *builder) checkOffsets(c *constant, w ir.Buffer, offsets map[string]int) {
	r := &b.config
	if c.typ != "size_t" || len(b.runs(w)) < 2 {
		r.fail(c.at, "%s is a list of %s; want one of size_t, and one offset where the layers have %s in one format",
			c.name, c.typ, w.Name)
		return
	}
	for layer, v := range c.value.list {
		name, _ := ir.Resolve(w.Name, layer)
		if want := offsets[name]; v.kind != integer || v.n != want {
			r.fail(v.at, "%s is not where layer %d has it; want %d, as the tensors lie in weights.safetensors", c.name,
				layer, want)
		}
	}
}
