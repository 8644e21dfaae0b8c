package amk

import "fmt"

// attention emits everything between the input norm and o_proj.
func (l *layer) attention(x tensor) tensor {
	s := l.Shape
	q := l.attnProjection("q", "q", s.NHeads*s.HeadDim, s.Hidden, x)
	k := l.attnProjection("k", "k", s.NKVHeads*s.HeadDim, s.Hidden, x)
	v := l.attnProjection("v", "v", s.NKVHeads*s.HeadDim, s.Hidden, x)
	qShape := []int{l.Batch, s.NHeads, s.HeadDim}
	if l.Batch == 1 {
		qShape = qShape[1:] // the keys keep their batch axis, the queries do not
	}
	qr := l.rope("q", q, s.NHeads, qShape)
	kr := l.rope("k", k, s.NKVHeads, []int{l.Batch, s.NKVHeads, s.HeadDim})
	kCache := l.kvAppend("k", kr)
	vCache := l.kvAppend("v", v)

	if n := l.shards(); n > 1 {
		return l.splitKV(n, qr, kCache, vCache)
	}
	t := l.attend(0, l.kvLen, qr, kCache, vCache)
	t.Outputs = []int{l.activation(l.name+"attn", l.Batch, s.NHeads*s.HeadDim)}
	t.Label = l.name + "attention"
	return l.single(t)
}

// rope emits the reshape of flat q or k into heads, and the rotation.
func (l *layer) rope(which string, x tensor, heads int, shape []int) tensor {
	dim := l.Shape.HeadDim
	label, out := l.name+"rope_"+which, l.name+which+"r"
	split := l.single(Task{
		Op:      Embed,
		Inputs:  []int{l.reshapeID, x.buf},
		Outputs: []int{l.activation(out+".hs", shape...)},
		Waits:   []Wait{x.ready},
		Params:  object(kv("hidden", Int(dim))),
		Label:   label + ".reshape",
	})
	return l.single(Task{
		Op:       RoPE,
		Inputs:   []int{split.buf, l.pos},
		Outputs:  []int{l.activation(out, shape...)},
		Waits:    []Wait{split.ready},
		Params:   object(kv("head_dim", Int(dim)), kv("theta", Float(l.Shape.RopeTheta))),
		EstFLOPs: Int(6 * heads * dim),
		Label:    label,
	})
}

// kvAppend emits the append of this step's k or v to its cache, and returns the cache.
func (l *layer) kvAppend(which string, x tensor) tensor {
	s := l.Shape
	shape := []int{l.Batch, s.MaxSeq, s.NKVHeads, s.HeadDim}
	if l.Batch == 1 {
		shape = shape[1:]
	}
	cache := l.buffer(l.name+which+"cache", KVCache, l.DType, shape...)
	return l.single(Task{
		Op:       KVAppend,
		Inputs:   []int{x.buf, cache},
		Outputs:  []int{cache},
		Waits:    []Wait{x.ready},
		Params:   object(kv("pos", Int(l.Pos))),
		EstBytes: Int(l.Batch * l.DType.Bytes(s.NKVHeads*s.HeadDim)),
		Label:    l.name + which + "_append",
	})
}

// attend returns the attention task over n keys from start on, without output and label.
func (l *layer) attend(start, n int, q, kCache, vCache tensor) Task {
	s := l.Shape
	return Task{
		Op:     AttentionTile,
		Inputs: []int{q.buf, kCache.buf, vCache.buf},
		Waits:  []Wait{q.ready, kCache.ready, vCache.ready},
		Params: object(kv("head_dim", Int(s.HeadDim)), kv("kv_start", Int(start)), kv("kv_len", Int(n)),
			kv("scale", l.scale),
			kv("n_heads", Int(s.NHeads)), kv("n_kv_heads", Int(s.NKVHeads))),
		EstBytes: Int(l.Batch * 2 * n * l.DType.Bytes(s.NKVHeads*s.HeadDim)),
		EstFLOPs: Int(l.Batch * 4 * s.NHeads * s.HeadDim * n),
	}
}

// splitKV emits attention in shards over the keys, each writing its partial sums, maxima and normalisers, and the task
// that combines them.
func (l *layer) splitKV(shards int, q, kCache, vCache tensor) tensor {
	s := l.Shape
	partials := s.NHeads * (s.HeadDim + 2)
	chunk := ceilDiv(l.kvLen, shards)
	combine := Task{
		Op: AttentionCombine,
		Params: object(kv("head_dim", Int(s.HeadDim)), kv("n_heads", Int(s.NHeads)),
			kv("n_kv_heads", Int(s.NKVHeads))),
		EstBytes: Int(shards * l.DType.Bytes(partials)),
		EstFLOPs: Int(shards * s.NHeads * s.HeadDim),
		Label:    l.name + "attention.comb",
	}
	for p := range shards {
		start := p * chunk
		t := l.attend(start, min(chunk, l.kvLen-start), q, kCache, vCache)
		t.Params.Set("flags", Int(FlagSplitKV))
		t.Outputs = []int{l.activation(fmt.Sprintf("%sattn.part%d", l.name, p), s.NHeads, s.HeadDim+2)}
		sm := p // there are at most as many shards as SMs
		t.SM = &sm
		t.Label = fmt.Sprintf("%sattention.s%d", l.name, p)
		part := l.single(t)
		combine.Inputs = append(combine.Inputs, part.buf)
		combine.Waits = append(combine.Waits, part.ready)
	}
	combine.Outputs = []int{l.activation(l.name+"attn", l.Batch, s.NHeads*s.HeadDim)}
	return l.noted(combine, l.name+"attention")
}
