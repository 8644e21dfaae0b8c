package importers

import (
	"fmt"
	"math"

	"amkc/ir"
	"amkc/ir/diag"
)

// This file is what transformers' modeling_rope_utils.py computes: each operation rounded to float32 where PyTorch
// rounds it, in its order, and float64 where Python computes with its own numbers. Explicit conversions keep the
// compiler from fusing a product with a sum.

// A ropeType computes the rotation of one type of rotary embedding from an object of the config, which must have the
// keys that it needs, may have others, and has none besides.
type ropeType struct {
	needs, may []string
	rests      bool // frequencies may be 0
	rotation   func(*ropeReader) ir.Rope
}

var ropeTypes = map[string]ropeType{
	defaultRope: {rotation: (*ropeReader).plain},
	"dynamic":   {needs: []string{"factor"}, rotation: (*ropeReader).dynamic},
	"linear":    {needs: []string{"factor"}, rotation: (*ropeReader).linear},
	"llama3": {needs: []string{"factor", "low_freq_factor", "high_freq_factor"},
		may: []string{"original_max_position_embeddings"}, rotation: (*ropeReader).llama3},
	"longrope": {needs: []string{"short_factor", "long_factor"}, may: []string{"factor", "attention_factor",
		"original_max_position_embeddings"}, rotation: (*ropeReader).longrope},
	"proportional": {may: []string{"factor", partialFactor}, rests: true, rotation: (*ropeReader).proportional},
	"yarn": {needs: []string{"factor"}, may: []string{"original_max_position_embeddings", "attention_factor",
		"beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"}, rotation: (*ropeReader).yarn},
}

// unscaled is a rotation as it is: cos and sin of position times frequency.
func unscaled(freq []float32) ir.Rope { return ir.Rope{InvFreq: freq, Scale: 1} }

func (r *ropeReader) plain() ir.Rope { return unscaled(invFreq(r.theta, r.turned)) }

// powers are theta^(2j/turned) for each pair. The power is rounded once, from float64; PyTorch's vector power is not
// always, so that one frequency in two hundred differs in its last bit, none of them at the bases and head sizes of
// Llama 2 and 3.x, TinyLlama and SmolLM2.
func powers(theta float64, turned int) []float32 {
	out := make([]float32, turned/2)
	for j := range out {
		e := float32(2*j) / float32(turned)
		out[j] = float32(math.Pow(float64(float32(theta)), float64(e)))
	}
	return out
}

// invFreq are the reciprocals of the powers.
func invFreq(theta float64, turned int) []float32 {
	out := powers(theta, turned)
	for j, power := range out {
		out[j] = 1 / power
	}
	return out
}

// linear divides all frequencies, as if positions lay closer together.
func (r *ropeReader) linear() ir.Rope {
	freq, factor := invFreq(r.theta, r.turned), float32(r.number("factor", 1))
	for j := range freq {
		freq[j] /= factor
	}
	return unscaled(freq)
}

// proportional divides all frequencies, and leaves the pairs beyond a part of the head as they are. Frequencies and
// pairs are those of the whole head, where those of a partial rotation are of the part.
func (r *ropeReader) proportional() ir.Rope {
	turned := r.turned
	if !r.partial {
		turned = r.proportion()
	}
	if r.diags.Err() == nil && r.sliced && turned != r.headDim {
		r.fail(codeRope, r.where, "rope type proportional is of whole heads, and the model rotates the first %d of %d "+
			"elements on their own; want a %s of 1", turned, r.headDim, partialFactor)
	}
	freq, factor := invFreq(r.theta, r.headDim), float32(r.number("factor", 1))
	for j := range freq {
		if freq[j] /= factor; 2*j >= turned {
			freq[j] = 0
		}
	}
	return unscaled(freq)
}

// proportion is how many elements of a head an object turns.
func (r *ropeReader) proportion() int {
	return 2 * int(r.number(partialFactor, 1)*float64(r.headDim)/2)
}

// dynamic is a plain one up to the positions that the model was made for. Beyond them its frequencies depend on the
// length of the text: transformers recomputes them with each token, and leaves the cache as it is.
func (r *ropeReader) dynamic() ir.Rope {
	r.number("factor", 1)
	if r.diags.Err() == nil && r.maxSeq > r.trained {
		r.fail(codeRope, r.where, "rope type dynamic changes the frequencies with the length of the text beyond "+
			"max_position_embeddings, which is not modelled, and --max-seq is %d; accepted: --max-seq up to %d",
			r.maxSeq, r.trained)
	}
	return r.plain()
}

// llama3 rescales frequencies as Llama 3.1 does.
func (r *ropeReader) llama3() ir.Rope {
	freq := invFreq(r.theta, r.turned)
	factor, original := r.number("factor", 1), r.originally()
	low, high := r.number("low_freq_factor", 1), r.number("high_freq_factor", 4)
	switch {
	case r.diags.Err() != nil:
	case !(high > low):
		r.fail(codeRope, r.at("high_freq_factor"), "is %g; want more than low_freq_factor, %g", high, low)
	default:
		smoothLlama3(freq, factor, low, high, original)
	}
	return unscaled(freq)
}

// smoothLlama3 divides frequencies of long wavelengths by factor, leaves those of short ones, and blends those between.
// PyTorch divides a number by a tensor as reciprocal times number.
func smoothLlama3(freq []float32, factor, low, high, context float64) {
	lowWave, highWave := float32(context/low), float32(context/high)
	for j, f := range freq {
		wave := float32(1/f) * float32(2*math.Pi)
		switch {
		case wave > lowWave:
			freq[j] = f / float32(factor)
		case wave >= highWave:
			ratio := float32(1/wave) * float32(context)
			smooth := float32(ratio-float32(low)) / float32(high-low)
			freq[j] = float32(float32(float32(1-smooth)*f)/float32(factor)) + float32(smooth*f)
		}
	}
}

// yarn divides the frequencies of pairs that turn seldom by factor, leaves those of pairs that turn often, and
// blends those between along a ramp over the numbers of the pairs; cos and sin are multiplied by the attention factor.
func (r *ropeReader) yarn() ir.Rope {
	original := r.originally()
	factor := r.yarnFactor(original)
	scale := r.attentionFactor(factor)
	fast, slow, truncate := r.optional("beta_fast", 32), r.optional("beta_slow", 1), true
	if v, there := r.params.Get("truncate"); there {
		if truncate, there = v.(bool); !there {
			r.fail(codeRope, r.at("truncate"), "is %s; want true or false", spell(v))
		}
	}
	if r.diags.Err() == nil && !(r.theta > 1) {
		r.fail(codeRope, r.where, "rope type yarn divides by the logarithm of rope_theta, which is %g; want more "+
			"than 1", r.theta)
	}
	freq := powers(r.theta, r.turned)
	if r.diags.Err() == nil {
		low, high := r.yarnRamp(original, fast, slow, truncate)
		blendYarn(freq, factor, low, high)
	}
	return ir.Rope{InvFreq: freq, Scale: scale}
}

// yarnFactor reads the factor; null is what the positions have grown by.
func (r *ropeReader) yarnFactor(original float64) float64 {
	if _, there := r.params.Get("factor"); !there || r.has("factor") {
		return r.number("factor", 1)
	}
	grown, in := r.grown(original), ropeBounds["factor"]
	if r.diags.Err() == nil && !(grown >= in.lo && grown <= in.hi) {
		r.fail(codeRope, r.at("factor"), "is null, which stands for max_position_embeddings over "+
			"original_max_position_embeddings, %g; want a number from %g to %g", grown, in.lo, in.hi)
	}
	return grown
}

// grown is what the positions have grown by.
func (r *ropeReader) grown(original float64) float64 { return float64(r.trained) / original }

// attentionFactor is what cos and sin are multiplied by: what the config says, or what follows from the factor and, if
// both are there and not 0, mscale and mscale_all_dim.
func (r *ropeReader) attentionFactor(factor float64) float64 {
	grown := func(mscale float64) float64 {
		if factor <= 1 {
			return 1
		}
		return float64(0.1*mscale*math.Log(factor)) + 1
	}
	mscale, all := r.optional("mscale", 0), r.optional("mscale_all_dim", 0)
	absent := grown(1)
	if mscale != 0 && all != 0 {
		absent = grown(mscale) / grown(all)
	}
	return r.optional("attention_factor", absent)
}

// yarnRamp returns the numbers of the pairs between which frequencies are blended: those that turn fast and slow times
// over the original positions.
func (r *ropeReader) yarnRamp(original, fast, slow float64, truncate bool) (low, high float64) {
	dim := float64(r.turned)
	pair := func(turns float64) float64 {
		return dim * math.Log(original/(turns*2*math.Pi)) / (2 * math.Log(r.theta))
	}
	low, high = pair(fast), pair(slow)
	if truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, dim-1)
	if low == high {
		high += 0.001
	}
	return low, high
}

// blendYarn turns powers of the base into frequencies.
func blendYarn(powers []float32, factor, low, high float64) {
	for j, power := range powers {
		kept, divided := 1/power, 1/float32(float32(factor)*power)
		ramp := float32(float32(j)-float32(low)) / float32(high-low)
		keep := 1 - min(1, max(0, ramp))
		powers[j] = float32(divided*float32(1-keep)) + float32(kept*keep)
	}
}

// longrope divides each frequency by a factor of its own, which is one of two: for texts of up to as many positions as
// the model was first trained on, or for longer ones. transformers takes the long factors at all positions of a text
// that is longer, and recomputes its cache when it becomes so. A kernel keeps what it has cached: it is built for
// one side, that of the longest text that it can hold.
func (r *ropeReader) longrope() ir.Rope {
	original := r.originally()
	long := float64(r.maxSeq) > original
	short, scale := r.factors("short_factor"), r.longScale(original)
	factors := r.factors("long_factor")
	if r.diags.Err() != nil {
		return unscaled(nil)
	}
	freq, differ := powers(r.theta, r.turned), false
	for j, power := range freq {
		differ = differ || short[j] != factors[j]
		by := factors[j]
		if !long {
			by = short[j]
		}
		freq[j] = 1 / float32(by*power)
	}
	if differ {
		r.sayWhich(long, original)
	}
	return ir.Rope{InvFreq: freq, Scale: scale}
}

// sayWhich says which of the factors a build has, where that is not as transformers would have it for every text, or
// where nobody has chosen.
func (r *ropeReader) sayWhich(long bool, original float64) {
	if long {
		r.diags.Add(diag.Warningf(codeLongRope, r.pos(r.where), "long_factor is used for texts of every length, "+
			"because --max-seq %d is more than original_max_position_embeddings, %.0f; for texts of up to that many "+
			"positions, which transformers rotates by short_factor, compile with --max-seq %.0f", r.maxSeq, original,
			original))
	} else if r.importer.src.MaxSeq == 0 && float64(r.trained) > original {
		r.diags.Add(diag.Warningf(codeLongRope, r.pos(r.where), "short_factor is used, for texts of up to %d "+
			"positions; with --max-seq beyond original_max_position_embeddings, %.0f, long_factor is used for texts "+
			"of every length", r.maxSeq, original))
	}
}

// factors reads a list with a factor for each pair.
func (r *ropeReader) factors(key string) []float32 {
	v := get(r.params, key)
	list, isList := v.([]any)
	if len(list) != r.turned/2 {
		have := spell(v)
		if isList {
			have = fmt.Sprintf("an array of %d", len(list))
		}
		if r.diags.Err() == nil {
			r.fail(codeRope, r.at(key), "is %s; want an array of %d numbers, one for each pair of elements of a head "+
				"that is rotated", have, r.turned/2)
		}
		return nil
	}
	out := make([]float32, len(list))
	for j, v := range list {
		out[j] = float32(r.between(r.at(key), v, ropeBounds[key]))
	}
	return out
}

// longScale is what cos and sin are multiplied by: what the config says, or what follows from how much the positions
// have grown.
func (r *ropeReader) longScale(original float64) float64 {
	factor := r.optional("factor", r.grown(original))
	absent := 1.0
	if factor > 1 {
		if absent = math.Sqrt(1 + math.Log(factor)/math.Log(original)); r.diags.Err() == nil && !(original > 1) {
			r.fail(codeRope, r.where, "rope type longrope divides by the logarithm of "+
				"original_max_position_embeddings, which is %g; want more than 1", original)
		}
	}
	return r.optional("attention_factor", absent)
}
