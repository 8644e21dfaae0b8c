package amktest

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"amkc/ir"
	"amkc/ir/half"
)

// A request is what AutoMegaKernel has lowered a program from: a model's shape, and one decode step of it.
type request struct {
	Shape struct {
		Vocab        int
		Hidden       int
		NLayers      int `json:"n_layers"`
		NHeads       int `json:"n_heads"`
		NKVHeads     int `json:"n_kv_heads"`
		HeadDim      int `json:"head_dim"`
		Intermediate int
		RMSEps       float64 `json:"rms_eps"`
		RopeTheta    float64 `json:"rope_theta"`
		MaxSeq       int     `json:"max_seq"`
	}
	Scheme string // "toy" or "hf-llama": how weights are called
	Tied   bool   // lm_head reads the embedding table
	Pos    int
	DType  ir.DType
	Batch  int
	Quant  *struct {
		Bits, Group int
		Symmetric   bool
	}
}

// A dense model is one decode step of a request written out as loops over plain slices: no tiles, no counters, no
// views.
type dense struct {
	request
	tensors map[string][]float32
	tokens  []int       // one a sequence of the batch
	caches  [][]float32 // by layer, k then v: rows of earlier steps, [batch, rows, kv heads, head size]
}

// newDense has random weights and random rows of earlier steps.
func newDense(q request) *dense {
	d := &dense{request: q, tensors: map[string][]float32{}}
	s := q.Shape
	r := rand.New(rand.NewPCG(1, 2))
	for range q.Batch {
		d.tokens = append(d.tokens, r.IntN(s.Vocab))
	}
	for range 2 * s.NLayers {
		cache := make([]float32, q.Batch*s.MaxSeq*s.NKVHeads*s.HeadDim)
		for i := range cache {
			cache[i] = float32(r.NormFloat64())
		}
		d.caches = append(d.caches, cache)
	}
	return d
}

// tensor returns n random elements that depend on the key alone.
func (d *dense) tensor(key string, n int, value func(*rand.Rand) float64) []float32 {
	if t, ok := d.tensors[key]; ok {
		return t
	}
	h := fnv.New64a()
	h.Write([]byte(key))
	r := rand.New(rand.NewPCG(h.Sum64(), 3))
	t := make([]float32, n)
	for i := range t {
		t[i] = float32(value(r))
	}
	d.tensors[key] = t
	return t
}

// key names a tensor as the request's scheme does.
func (d *dense) key(layer int, name string) string {
	if d.Scheme == "toy" {
		return map[string]string{
			"embed": "embed.weight", "final": "final_norm", "head": "lm_head.weight",
			"input": fmt.Sprintf("layers.%d.input_norm", layer), "post": fmt.Sprintf("layers.%d.post_norm", layer),
			"q":    fmt.Sprintf("layers.%d.attn.q_proj.weight", layer),
			"k":    fmt.Sprintf("layers.%d.attn.k_proj.weight", layer),
			"v":    fmt.Sprintf("layers.%d.attn.v_proj.weight", layer),
			"o":    fmt.Sprintf("layers.%d.attn.o_proj.weight", layer),
			"gate": fmt.Sprintf("layers.%d.mlp.gate_proj.weight", layer),
			"up":   fmt.Sprintf("layers.%d.mlp.up_proj.weight", layer),
			"down": fmt.Sprintf("layers.%d.mlp.down_proj.weight", layer),
		}[name]
	}
	switch name {
	case "embed":
		return "model.embed_tokens.weight"
	case "final":
		return "model.norm.weight"
	case "head":
		if d.Tied {
			return "model.embed_tokens.weight"
		}
		return "lm_head.weight"
	case "input":
		return fmt.Sprintf("model.layers.%d.input_layernorm.weight", layer)
	case "post":
		return fmt.Sprintf("model.layers.%d.post_attention_layernorm.weight", layer)
	case "q", "k", "v", "o":
		return fmt.Sprintf("model.layers.%d.self_attn.%s_proj.weight", layer, name)
	}
	return fmt.Sprintf("model.layers.%d.mlp.%s_proj.weight", layer, name)
}

func (d *dense) norm(x []float64, key string) []float64 {
	w := d.tensor(key, len(x), func(r *rand.Rand) float64 { return 1 + 0.1*r.NormFloat64() })
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	scale := 1 / math.Sqrt(sum/float64(len(x))+d.Shape.RMSEps)
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * scale * float64(w[i])
	}
	return out
}

// linear is x times the transpose of a weight [n, len(x)], which may be int8 with a scale for every group of columns.
func (d *dense) linear(x []float64, key string, n int) []float64 {
	k := len(x)
	w := d.matrix(key, n, k)
	out := make([]float64, n)
	for i := range out {
		for j, v := range x {
			out[i] += v * w(i, j)
		}
	}
	return out
}

// matrix returns the elements of a weight, decoded. A tied head is the embedding, which is never quantised.
func (d *dense) matrix(key string, n, k int) func(i, j int) float64 {
	if d.Quant == nil || key == d.key(0, "embed") {
		w := d.tensor(key, n*k, func(r *rand.Rand) float64 { return r.NormFloat64() / math.Sqrt(float64(k)) })
		return func(i, j int) float64 { return float64(w[i*k+j]) }
	}
	levels, group := 1<<d.Quant.Bits, d.Quant.Group
	groups := (k + group - 1) / group
	w := d.tensor(key, n*k, func(r *rand.Rand) float64 { return float64(r.IntN(levels) - levels/2) })
	scales := d.tensor(key+".scales", n*groups, func(r *rand.Rand) float64 {
		// as they are stored
		return float64(half.RoundF16(float32((0.5 + r.Float64()) * 4 / (float64(levels) * math.Sqrt(float64(k))))))
	})
	zeros := make([]float32, n*groups)
	if !d.Quant.Symmetric {
		zeros = d.tensor(key+".zeros", n*groups,
			func(r *rand.Rand) float64 { return float64(r.IntN(levels/2) - levels/4) })
	}
	return func(i, j int) float64 {
		g := i*groups + j/group
		return (float64(w[i*k+j]) - float64(zeros[g])) * float64(scales[g])
	}
}

// rotate turns element j of a head against element j + half of it.
func (d *dense) rotate(x []float64) {
	hd := d.Shape.HeadDim
	for h := 0; h < len(x); h += hd {
		for j := range hd / 2 {
			angle := float64(d.Pos) * math.Pow(d.Shape.RopeTheta, -float64(2*j)/float64(hd))
			sin, cos := math.Sincos(angle)
			a, b := x[h+j], x[h+j+hd/2]
			x[h+j], x[h+j+hd/2] = a*cos-b*sin, b*cos+a*sin
		}
	}
}

// logits runs the step of one sequence of the batch.
func (d *dense) logits(sequence int) []float64 {
	s := d.Shape
	table := d.tensor(d.key(0, "embed"), s.Vocab*s.Hidden, func(r *rand.Rand) float64 { return r.NormFloat64() })
	x := make([]float64, s.Hidden)
	for i := range x {
		x[i] = float64(table[d.tokens[sequence]*s.Hidden+i])
	}
	add := func(y []float64) {
		for i := range x {
			x[i] += y[i]
		}
	}
	for layer := range s.NLayers {
		n := d.norm(x, d.key(layer, "input"))
		q := d.linear(n, d.key(layer, "q"), s.NHeads*s.HeadDim)
		k := d.linear(n, d.key(layer, "k"), s.NKVHeads*s.HeadDim)
		v := d.linear(n, d.key(layer, "v"), s.NKVHeads*s.HeadDim)
		d.rotate(q)
		d.rotate(k)
		add(d.linear(d.attention(layer, sequence, q, k, v), d.key(layer, "o"), s.Hidden))
		n = d.norm(x, d.key(layer, "post"))
		gate, up := d.linear(n, d.key(layer, "gate"), s.Intermediate), d.linear(n, d.key(layer, "up"), s.Intermediate)
		for i, g := range gate {
			gate[i] = g / (1 + math.Exp(-g)) * up[i]
		}
		add(d.linear(gate, d.key(layer, "down"), s.Hidden))
	}
	return d.linear(d.norm(x, d.key(0, "final")), d.key(0, "head"), s.Vocab)
}

func (d *dense) attention(layer, sequence int, q, k, v []float64) []float64 {
	s := d.Shape
	hd := s.HeadDim
	row := func(which, pos, head int, now []float64) func(i int) float64 {
		if pos == d.Pos {
			return func(i int) float64 { return now[head*hd+i] }
		}
		at := ((sequence*s.MaxSeq+pos)*s.NKVHeads + head) * hd
		cache := d.caches[2*layer+which]
		return func(i int) float64 { return float64(cache[at+i]) }
	}
	out := make([]float64, len(q))
	for h := range s.NHeads {
		kvHead := h / (s.NHeads / s.NKVHeads)
		scores := make([]float64, d.Pos+1)
		largest := math.Inf(-1)
		for pos := range scores {
			key := row(0, pos, kvHead, k)
			for i := range hd {
				scores[pos] += q[h*hd+i] * key(i)
			}
			scores[pos] /= math.Sqrt(float64(hd))
			largest = max(largest, scores[pos])
		}
		sum := 0.0
		for pos := range scores {
			scores[pos] = math.Exp(scores[pos] - largest)
			sum += scores[pos]
		}
		for pos, p := range scores {
			value := row(1, pos, kvHead, v)
			for i := range hd {
				out[h*hd+i] += p / sum * value(i)
			}
		}
	}
	return out
}
