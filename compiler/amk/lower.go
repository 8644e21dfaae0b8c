package amk

import (
	"fmt"
	"math/big"
)

// unknownNumSMs is what a request without target counts as, for the number of split-KV shards.
const unknownNumSMs = 82

// Lower returns the program that AutoMegaKernel writes for the request: one decode step, projections cut into tiles,
// everything else one task an operation, in its order and with its ids, names and cost annotations.
//
// The error is a *diag.Diagnostic: a size out of range, an unusable tiling knob, or quantised weights in a batch.
func Lower(q Request) (*Program, error) {
	if d := q.check(); d != nil {
		return nil, d
	}
	knobs, d := readKnobs(q.Config)
	if d != nil {
		return nil, d
	}
	if q.Scheme == SchemeToy {
		q.Tied = false
	}
	b := &builder{
		Request: q,
		knobs:   knobs,
		keys:    weightKeys(q.Scheme, q.Tied),
		kvLen:   q.Pos + 1,
		scale:   Float(reciprocalRoot(q.Shape.HeadDim)),
		weights: map[string]int{},
		prog:    &Program{IRVersion: IRVersion, ABIVersion: ABIVersion, Target: q.Target, Config: q.Config},
	}
	b.model()
	b.prog.Meta = b.meta()
	return b.prog, nil
}

// model emits the step: embedding, layers, final norm, head.
func (b *builder) model() {
	s := b.Shape
	tokenID := b.buffer(tokenName, IOInput, I32, b.Batch)
	b.pos = b.buffer(positionName, IOInput, I32, b.Batch)
	b.reshapeID = b.buffer("reshape_id0", IOInput, I32, b.Batch)

	h0 := b.activation("h0", b.Batch, s.Hidden)
	resid := b.single(Task{
		Op:       Embed,
		Inputs:   []int{tokenID, b.weight(b.keys.embed, s.Vocab, s.Hidden)},
		Outputs:  []int{h0},
		Params:   object(kv("hidden", Int(s.Hidden))),
		EstBytes: Int(b.Batch * b.DType.Bytes(s.Hidden)),
		Label:    "embed",
	})
	for layer := range s.NLayers {
		resid = b.layer(layer, resid)
	}
	final := b.rmsnorm("final_norm", "hf", b.keys.finalNorm, resid)
	b.project(projection{
		label: "lm_head", out: "logits", kind: IOOutput, key: b.keys.lmHead, n: s.Vocab, k: s.Hidden, plain: b.Tied,
	}, final)
}

func (b *builder) meta() Object {
	gpu, model := "?", "models.toy.ToyLlama"
	if b.Target != nil {
		gpu = b.Target.Name
	}
	if b.Scheme == SchemeHFLlama {
		model = "LlamaForCausalLM"
	}
	bytes := 0
	for _, buf := range b.prog.Buffers {
		if buf.Kind == Weight {
			count := 1
			for _, n := range buf.Shape {
				count *= n
			}
			bytes += buf.DType.Bytes(count)
		}
	}
	m := object(
		kv("model", String(model)),
		kv("gpu", String(gpu)),
		kv("regime", String("decode")),
		kv("pos", Int(b.Pos)),
		kv("kv_len", Int(b.kvLen)),
		kv("dtype", String(b.DType.String())),
		kv("n_layers", Int(b.Shape.NLayers)),
		kv("weight_bytes", Int(bytes)),
	)
	if z := b.Quant; z != nil {
		quant := object(
			kv("group", Int(z.Group)),
			kv("bits", Int(z.Bits)),
			kv("symmetric", Bool(z.Symmetric)),
			kv("n_keys", Int(b.quantized)),
		)
		m.Set("quantized", Bool(true))
		m.Set("quant", &quant)
	}
	return m
}

// reciprocalRoot returns n ** -0.5 as the nearest double. Root and quotient carry 256 bits, so that only the last step
// rounds: in doubles 1/sqrt(n) rounds twice, and misses the last digit for every fourth n.
func reciprocalRoot(n int) float64 {
	const precision = 256
	root := new(big.Float).SetPrec(precision).SetInt64(int64(n))
	root.Sqrt(root)
	inverse, _ := new(big.Float).SetPrec(precision).Quo(big.NewFloat(1), root).Float64()
	return inverse
}

// weightNames are the state-dict keys of a scheme. The functions take a layer and, for projections, the short name.
type weightNames struct {
	embed, finalNorm, lmHead      string
	inputNorm, postNorm           func(layer int) string
	attnProjection, mlpProjection func(layer int, name string) string
}

func weightKeys(s Scheme, tied bool) weightNames {
	norm := func(format string) func(int) string {
		return func(layer int) string { return fmt.Sprintf(format, layer) }
	}
	projection := func(format string) func(int, string) string {
		return func(layer int, name string) string { return fmt.Sprintf(format, layer, name) }
	}
	k := weightNames{
		embed: "embed.weight", finalNorm: "final_norm", lmHead: "lm_head.weight",
		inputNorm:      norm("layers.%d.input_norm"),
		postNorm:       norm("layers.%d.post_norm"),
		attnProjection: projection("layers.%d.attn.%s_proj.weight"),
		mlpProjection:  projection("layers.%d.mlp.%s_proj.weight"),
	}
	if s == SchemeHFLlama {
		k = weightNames{
			embed: "model.embed_tokens.weight", finalNorm: "model.norm.weight", lmHead: "lm_head.weight",
			inputNorm:      norm("model.layers.%d.input_layernorm.weight"),
			postNorm:       norm("model.layers.%d.post_attention_layernorm.weight"),
			attnProjection: projection("model.layers.%d.self_attn.%s_proj.weight"),
			mlpProjection:  projection("model.layers.%d.mlp.%s_proj.weight"),
		}
	}
	if tied {
		k.lmHead = k.embed
	}
	return k
}
