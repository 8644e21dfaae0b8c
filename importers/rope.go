package importers

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/diag"
)

// This file reads rotary embeddings out of a config, for every family. What the types compute is in rope_types.go.
//
// transformers 5 writes one object, rope_parameters, with the base rope_theta and the type rope_type in it; what it
// wrote before has the base next to an object rope_scaling, and calls the type type. Both forms mean the same.

// ropeBounds are the numbers that frequencies are computed from. Published models lie well inside: bases from 1e4 to
// 1e8, factors up to 64. A base or a factor below 1 would raise frequencies instead of lowering them; all else keeps
// every step of the computation a normal number of float32.
var ropeBounds = map[string]interval{
	"rope_theta": {1, 1e30}, "factor": {1, 1e6}, "low_freq_factor": {1e-6, 1e6}, "high_freq_factor": {1e-6, 1e6},
	"original_max_position_embeddings": {1, 1e9}, "attention_factor": {1e-6, 1e6},
	"llama_4_scaling_beta": {0, 1e6}, "alpha": {1, 1e6},
	"beta_fast": {1e-6, 1e6}, "beta_slow": {1e-6, 1e6}, "mscale": {0, 1e6}, "mscale_all_dim": {0, 1e6},
	"partial_rotary_factor": {1e-6, 1}, "short_factor": {0.5, 1e6}, "long_factor": {0.5, 1e6},
}

// A ropeReader reads the rotary embedding that one object of a config describes.
type ropeReader struct {
	*importer
	where   string // the field of the object
	params  *checkpoint.Object
	kind    string
	theta   float64
	headDim int // elements of a head
	turned  int // of which are rotated, from the first on
	trained int // positions that the model was made for
	maxSeq  int // positions that it is compiled for

	// What the family says:
	partial  bool              // partial_rotary_factor is read
	sliced   bool              // and the rest of a head left out of the rotation, whatever the type
	extra    []string          // keys that its objects may have besides those of their types
	types    map[string]string // the types that it has, by what configs of it call them; nil: all, by their names
	original float64           // an absent original_max_position_embeddings; 0: what stands in the object, or trained
}

// rope reads the rotary embedding of a model that was made for n positions. It has one frequency for each pair
// of elements of a head, or of the part of it that is rotated.
func (m *importer) rope(d *decoder, model *ir.Model, trained int) ir.Rope {
	where, params := m.ropeObject()
	if params == nil && d.scaling != nil {
		where, params = "rope_parameters", checkpoint.NewObject(d.scaling)
	}
	theta := m.ropeTheta(d.field("rope_theta"), cmp.Or(d.theta, 10000), where, params)
	r := m.ropeReader(where, params, theta, model, trained)
	if d.turned > 0 {
		r.partial, r.sliced, r.turned = true, d.sliced, r.part(d.field(partialFactor), model.HeadDim, d.turned)
	}
	if d.ropeOfParts {
		r.extra = partsOfPositions
		if params != nil {
			r.checkParts()
		}
	}
	rope := r.read()
	rope.Interleaved = d.interleaved
	return rope
}

// ropeOf reads what an object describes, or nothing but a base where there is none.
func (m *importer) ropeOf(where string, params *checkpoint.Object, theta float64, model *ir.Model,
	trained int) ir.Rope {
	return m.ropeReader(where, params, theta, model, trained).read()
}

func (m *importer) ropeReader(where string, params *checkpoint.Object, theta float64, model *ir.Model,
	trained int) *ropeReader {
	return &ropeReader{importer: m, where: where, params: params, theta: theta, headDim: model.HeadDim,
		turned: model.HeadDim, trained: trained, maxSeq: model.MaxSeq}
}

func (r *ropeReader) read() ir.Rope {
	r.unscaled = append(r.unscaled, invFreq(r.theta, r.turned))
	if r.params == nil {
		return r.plain()
	}
	r.kind = r.ropeType()
	if name, ok := r.types[r.kind]; ok {
		r.kind = name
	} else if r.types != nil {
		r.kind = ""
	}
	t, ok := ropeTypes[r.kind]
	if !ok {
		r.fail(codeRope, r.where, "rope type %s is not modelled; accepted: %s", spell(r.ropeType()), r.accepted())
		return ir.Rope{}
	}
	r.checkKeys(&t)
	rope := t.rotation(r)
	for j, f := range rope.InvFreq {
		if f == 0 && t.rests {
			continue
		}
		if r.diags.Err() == nil && (!(f > 0) || !ir.IsSingle(float64(f))) {
			r.fail(codeRope, r.where, "gives pair %d of a head the frequency %g; want numbers for which all are "+
				"from %s", j, f, ir.Singles)
		}
	}
	return rope
}

// accepted names the types that are modelled.
func (r *ropeReader) accepted() string {
	if r.types != nil {
		return strings.Join(slices.Sorted(maps.Keys(r.types)), ", ")
	}
	return strings.Join(slices.Sorted(maps.Keys(ropeTypes)), ", ")
}

const partialFactor = "partial_rotary_factor"

// part reads how much of a head is rotated, which stands in the object or in a field next to it: elements from the
// first on.
func (r *ropeReader) part(field string, headDim int, absent float64) int {
	const key = partialFactor
	beside, factor := field, absent
	outer, there := r.doc.Get(field)
	stated := outer != nil
	if stated {
		factor = r.between(field, outer, ropeBounds[key])
	} else if there {
		factor = 1 // null is not a part, whatever an absent one is
	}
	if r.params != nil && r.has(key) {
		field = r.at(key)
		inner := r.number(key, absent)
		if stated && inner != factor {
			r.fail(codeRope, field, "is %g, but %s is %g; want one of them", inner, beside, factor)
		}
		factor = inner
	}
	turned := int(float64(headDim) * factor)
	if r.diags.Err() == nil && (turned < 2 || turned%2 != 0) {
		r.fail(codeRope, field, "is %g, so that %d of the %d elements of a head are rotated; want an even number from "+
			"2 on", factor, turned, headDim)
		return headDim
	}
	return turned
}

// ropeKeys are what types of rotary embeddings read. transformers takes an object that has some of another type's. The
// alpha of Hunyuan is not among them: its class alone reads it.
var ropeKeys = slices.DeleteFunc(slices.Concat(slices.Collect(maps.Keys(ropeBounds)), []string{"truncate"}),
	func(key string) bool { return key == "alpha" })

// checkKeys refuses what no type reads, and misses what this one needs.
func (r *ropeReader) checkKeys(t *ropeType) {
	for _, key := range r.params.Keys() {
		switch v := get(r.params, key); {
		case slices.Contains(t.needs, key) || slices.Contains(t.may, key) || slices.Contains(r.extra, key) ||
			slices.Contains([]string{"rope_theta", "rope_type", "type"}, key):
		case key == "partial_rotary_factor" && (r.partial || isNumber(1).accept(v)):
		case key == "partial_rotary_factor":
			r.fail(codeNotModelled, r.at(key), "is %s, and partial rotation is not modelled; accepted: 1", spell(v))
		case slices.Contains(ropeKeys, key): // as in transformers
			if v != nil {
				r.diags.Add(diag.Warningf(codeRope, r.pos(r.at(key)), "is not part of rope type %s, and has no effect",
					r.kind))
			}
		default:
			r.fail(codeRope, r.at(key), "is not part of rope type %s, so it may change the model; accepted: %s", r.kind,
				strings.Join(slices.Concat([]string{"rope_type", "rope_theta"}, t.needs, t.may), ", "))
		}
	}
	for _, key := range t.needs {
		if _, there := r.params.Get(key); !there {
			r.fail(codeRope, r.at(key), "is missing; rope type %s needs %s", r.kind, strings.Join(t.needs, ", "))
		}
	}
}

// at is where a key of the object stands.
func (r *ropeReader) at(key string) string { return r.where + "." + key }

// has reports whether the object has a key with a value that is not null.
func (r *ropeReader) has(key string) bool { return get(r.params, key) != nil }

// number reads a number of the object, which is absent where the key is missing.
func (r *ropeReader) number(key string, absent float64) float64 {
	v, there := r.params.Get(key)
	if !there {
		return absent
	}
	return r.between(r.at(key), v, ropeBounds[key])
}

// optional reads a number of the object that may be null, which means the same as no key.
func (r *ropeReader) optional(key string, absent float64) float64 {
	if !r.has(key) {
		return absent
	}
	return r.number(key, absent)
}

// originally is how many positions the model was trained on before its frequencies were scaled: it stands in the object
// or next to it, and otherwise nothing was changed.
func (r *ropeReader) originally() float64 {
	const key = "original_max_position_embeddings"
	outer, there := r.value(key)
	n := r.original
	switch {
	case there:
		n = r.between(key, outer, ropeBounds[key])
	case n == 0:
		return r.number(key, float64(r.trained))
	}
	if inner := r.number(key, n); inner != n {
		r.fail(codeRope, r.at(key), "is %g, but %s is %g; want one of them", inner, key, n)
	}
	return n
}

// ropeObject returns the object that describes the rotary embedding, and the field it is in. If both fields are there
// they must say the same.
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

const defaultRope = "default"

// ropeType reads rope_type, which older configs call type.
func (r *ropeReader) ropeType() string {
	kind := ""
	for _, key := range []string{"type", "rope_type"} {
		v, there := r.params.Get(key)
		if !there || v == nil && key == "type" { // which is the former name, and null if the present one is there
			continue
		}
		s, ok := v.(string)
		if !ok || kind != "" && kind != s {
			r.fail(codeRope, r.at(key), "is %s; want one rope type of %s", spell(v), r.accepted())
			return defaultRope
		}
		kind = s
	}
	if kind == "" {
		return defaultRope
	}
	return kind
}

// ropeTheta reads the base of the frequencies, which stands in the object or in a field next to it.
func (m *importer) ropeTheta(beside string, absent float64, where string, params *checkpoint.Object) float64 {
	theta, field := absent, beside
	outer, there := m.value(field)
	if there {
		theta = m.between(field, outer, ropeBounds["rope_theta"])
	}
	if params != nil {
		if v, ok := params.Get("rope_theta"); ok {
			field = where + ".rope_theta"
			inner := m.between(field, v, ropeBounds["rope_theta"])
			if there && inner != theta {
				m.fail(codeRope, field, "is %g, but %s is %g; want one of them", inner, beside, theta)
			}
			theta = inner
		}
	}
	return theta
}
