package passes

import (
	"math"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/passes/checkpoint"
)

// ropeFields are what rope_parameters and rope_scaling may hold, by type; rope_theta is allowed in both.
var ropeFields = map[string][]string{
	"default": {},
	"llama3":  {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"},
}

// ropeBounds are the numbers that frequencies are computed from. Published models lie well inside: bases from 1e4 to
// 1e8, factors up to 32. A base or a factor below 1 would raise frequencies instead of lowering them; all else keeps
// every step of the computation a normal number of float32.
var ropeBounds = map[string]interval{
	"rope_theta": {1, 1e30}, "factor": {1, 1e6}, "low_freq_factor": {1e-6, 1e6}, "high_freq_factor": {1e-6, 1e6},
	"original_max_position_embeddings": {1, 1e9},
}

// rope reads the rotary embedding in either spelling and returns its inverse frequencies, one for each pair of
// elements.
func (m *importer) rope(headDim int) []float32 {
	spelling, params := m.ropeObject()
	theta := m.ropeTheta(spelling, params)
	if params == nil {
		return invFreq(theta, headDim)
	}
	kind := m.ropeType(spelling, params)
	want, ok := ropeFields[kind]
	if !ok {
		m.fail(codeRope, spelling, "rope type %s is not modelled; accepted: default, llama3", spell(kind))
		return nil
	}
	for _, key := range params.Keys() {
		switch v := get(params, key); {
		case slices.Contains(want, key) || slices.Contains([]string{"rope_theta", "rope_type", "type"}, key):
		case key == "partial_rotary_factor" && isNumber(1).accept(v):
		case key == "partial_rotary_factor":
			m.fail(codeNotModelled, spelling+"."+key, "is %s, and partial rotation is not modelled; accepted: 1",
				spell(v))
		default:
			m.fail(codeRope, spelling+"."+key, "is not part of rope type %s, so it may change the model; accepted: %s",
				kind, strings.Join(append([]string{"rope_type", "rope_theta"}, want...), ", "))
		}
	}
	values := map[string]float64{}
	for _, key := range want {
		v, there := params.Get(key)
		if !there {
			m.fail(codeRope, spelling+"."+key, "is missing; rope type %s needs %s", kind, strings.Join(want, ", "))
			continue
		}
		values[key] = m.between(spelling+"."+key, v, ropeBounds[key])
	}
	freq := invFreq(theta, headDim)
	if kind == "llama3" && m.diags.Err() == nil {
		if !(values["high_freq_factor"] > values["low_freq_factor"]) {
			m.fail(codeRope, spelling+".high_freq_factor", "is %g; want more than low_freq_factor, %g",
				values["high_freq_factor"], values["low_freq_factor"])
			return nil
		}
		smoothLlama3(freq, values["factor"], values["low_freq_factor"], values["high_freq_factor"],
			values["original_max_position_embeddings"])
		for j, f := range freq {
			if !(f > 0) || !ir.IsSingle(float64(f)) { // the factors are so close that float32 cannot blend between them
				m.fail(codeRope, spelling+".high_freq_factor",
					"gives pair %d of a head the frequency %g; want factors for which all are from %s", j, f,
					ir.Singles)
				return nil
			}
		}
	}
	return freq
}

// ropeObject returns the object that describes the scaling, and the field it is in. If both fields are there they must
// say the same.
func (m *importer) ropeObject() (string, *checkpoint.Object) {
	var found *checkpoint.Object
	name := "rope_scaling"
	for _, field := range []string{"rope_scaling", "rope_parameters"} {
		v, ok := m.value(field)
		if !ok {
			continue
		}
		object, ok := v.(*checkpoint.Object)
		switch {
		case !ok:
			m.fail(codeRope, field, "is %s; want an object or null", spell(v))
		case found != nil && !same(found, object):
			m.fail(codeRope, field, "is not what rope_scaling says; want one of them, or both the same")
		default:
			found, name = object, field
		}
	}
	return name, found
}

func get(o *checkpoint.Object, key string) any {
	v, _ := o.Get(key)
	return v
}

// ropeType reads rope_type, which older configs call type.
func (m *importer) ropeType(spelling string, params *checkpoint.Object) string {
	kind := ""
	for _, key := range []string{"type", "rope_type"} {
		v, there := params.Get(key)
		if !there {
			continue
		}
		s, ok := v.(string)
		if !ok || kind != "" && kind != s {
			m.fail(codeRope, spelling+"."+key, "is %s; want one rope type, default or llama3", spell(v))
			return "default"
		}
		kind = s
	}
	if kind == "" {
		return "default"
	}
	return kind
}

// ropeTheta reads the base of the frequencies: 10000 unless the config says otherwise.
func (m *importer) ropeTheta(spelling string, params *checkpoint.Object) float64 {
	theta, field := 10000.0, "rope_theta"
	outer, there := m.value(field)
	if there {
		theta = m.between(field, outer, ropeBounds["rope_theta"])
	}
	if params != nil {
		if v, ok := params.Get("rope_theta"); ok {
			field = spelling + ".rope_theta"
			inner := m.between(field, v, ropeBounds["rope_theta"])
			if there && inner != theta {
				m.fail(codeRope, field, "is %g, but rope_theta is %g; want one of them", inner, theta)
			}
			theta = inner
		}
	}
	return theta
}

// invFreq is 1 / theta^(2j/headDim), rounded to float32 after every operation, as PyTorch computes it in float32. The
// power is rounded once, from float64; PyTorch's vector power is not always, so that one element in two hundred differs
// in its last bit, none of them at the bases and head sizes of Llama 2 and 3.x, TinyLlama and SmolLM2.
func invFreq(theta float64, headDim int) []float32 {
	out := make([]float32, headDim/2)
	for j := range out {
		e := float32(2*j) / float32(headDim)
		power := float32(math.Pow(float64(float32(theta)), float64(e)))
		out[j] = 1 / power
	}
	return out
}

// smoothLlama3 rescales frequencies as Llama 3.1 does: long wavelengths are divided by factor, short ones stay, and
// those between are blended. Every operation is rounded to float32, in transformers' order; the explicit conversions
// keep the compiler from fusing a product with a sum. PyTorch divides a number by a tensor as reciprocal times
// number.
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
