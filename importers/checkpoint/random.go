package checkpoint

import (
	"strings"

	"amkc/ir/diag"
)

// Random weights are a pure function of (seed, tensor name, element index), so that any element can be had without
// those before it, in any order and on any device. bench/random_weights.py computes the same values; change both or
// neither. The bits of element i of a tensor are
//
//	mix(key + (i+1)·golden), key = mix(seed) xor fnv1a(name)
//
// modulo 2^64, with the finaliser of SplitMix64 as mix and the 64-bit FNV-1a hash of the name's UTF-8 bytes. The top 24
// bits give u in [-1, 1), a multiple of 2^-23 and so exact in float32. The value is u × matrixScale, or 1 + u ×
// normScale for a vector whose name ends in "weight" (the scale of a normalisation; without the 1 where the norm adds
// one), each operation rounded to float32, and is then rounded to the tensor's dtype: readers of any precision see the
// same weight.
const (
	golden              = 0x9e3779b97f4a7c15
	matrixScale float32 = 0.034641016 // 0.02·√3: uniform values of that half-width have a standard deviation of 0.02
	normScale   float32 = 0.1
)

// NewRandom returns a checkpoint with random weights for the given tensors, for a model of which only config.json
// exists. It uses no memory for them. The vectors named in unitOffset are weights of norms that multiply by 1 + w.
// Errors: AMK1026 for a bad declaration, AMK1015 for an invalid shape, AMK1024 for a dtype other than F32, F16 and
// BF16.
func NewRandom(config *Config, seed uint64, specs []Spec, unitOffset map[string]bool) (*Checkpoint, error) {
	c := &Checkpoint{Config: config}
	if err := checkNames(specs); err != nil {
		return nil, err
	}
	for _, s := range specs {
		pos := "tensor " + s.Name
		if _, ok := decoders[s.DType]; !ok {
			return nil, diag.Errorf(codeDecode, pos, "dtype %s; random weights are F32, F16 or BF16", s.DType)
		}
		size, err := s.bytes(pos)
		if err != nil {
			return nil, err
		}
		c.tensors = append(c.tensors, Tensor{Name: s.Name, DType: s.DType, Shape: s.Shape, size: size,
			data: newRandomSource(seed, s, unitOffset[s.Name])})
	}
	c.sort()
	return c, nil
}

// A randomSource computes the data of a tensor.
type randomSource struct {
	dtype       DType
	key         uint64
	base, scale float32
}

func newRandomSource(seed uint64, s Spec, unitOffset bool) randomSource {
	r := randomSource{dtype: s.DType, key: mix(seed) ^ fnv1a(s.Name), scale: matrixScale}
	if len(s.Shape) == 1 && strings.HasSuffix(s.Name, "weight") {
		r.base, r.scale = 1, normScale
		if unitOffset {
			r.base = 0
		}
	}
	return r
}

func (r randomSource) floats(dst []float32, first int64) *diag.Diagnostic {
	round := decoders[r.dtype].round
	state := r.key + uint64(first)*golden
	for i := range dst {
		state += golden
		u := float32(int32(mix(state)>>40)-1<<23) * (1.0 / (1 << 23))
		// The conversion keeps the compiler from fusing the product with the sum, which would round once only.
		dst[i] = round(r.base + float32(u*r.scale))
	}
	return nil
}

func (r randomSource) bytes(dst []byte, off int64) *diag.Diagnostic {
	d := decoders[r.dtype]
	var values [512]float32
	var encoded [4 * len(values)]byte
	for len(dst) > 0 {
		first, skip := off/d.size, off%d.size
		n := min(int64(len(values)), (skip+int64(len(dst))+d.size-1)/d.size)
		r.floats(values[:n], first)
		d.encode(encoded[:], values[:n])
		copied := copy(dst, encoded[skip:n*d.size])
		dst, off = dst[copied:], off+int64(copied)
	}
	return nil
}

func (r randomSource) pieces(dst []byte, off, size, stride int64) *diag.Diagnostic {
	for ; len(dst) > 0; dst, off = dst[size:], off+stride {
		if err := r.bytes(dst[:size], off); err != nil {
			return err
		}
	}
	return nil
}

func (r randomSource) view(int64) []byte { return nil }

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fnv1a is the 64-bit FNV-1a hash. It is spelled out because the twin has to be.
func fnv1a(s string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, b := range []byte(s) {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	return h
}

// checkNames refuses declarations with names that no file could hold.
func checkNames(specs []Spec) *diag.Diagnostic {
	seen := make(map[string]bool, len(specs))
	for _, s := range specs {
		pos := "tensor " + s.Name
		switch {
		case !validName(s.Name):
			return diag.Errorf(codeSpec, pos, "the name %q cannot be used; UTF-8 text other than __metadata__ "+
				"is needed", s.Name)
		case seen[s.Name]:
			return diag.Errorf(codeSpec, pos, "declared twice")
		}
		seen[s.Name] = true
	}
	return nil
}
