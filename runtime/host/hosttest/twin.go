package hosttest

import (
	"encoding/binary"
	"math"

	"amkc/runtime/driver"
	"amkc/runtime/host"
)

// Mirror computes what the fake kernels do after tokens: the state that the logits come from, and the token chosen. It
// depends on every one of them.
func Mirror(tokens []int) (hash uint64, chosen int) {
	hash = 14695981039346656037
	for _, t := range tokens {
		hash = (hash ^ uint64(uint32(t+1))) * 1099511628211
	}
	return hash, int((hash >> 20) % uint64(Facts().Model.Vocab))
}

// TokenOf is what the fake kernels take an embedding for, in [Mirror].
func TokenOf(embedding []float32) int {
	h := uint32(2166136261)
	for _, x := range embedding {
		h = (h ^ math.Float32bits(x)) * 16777619
	}
	return Facts().Model.Vocab + 1 + int(h%1000000)
}

// Hidden is the last hidden state that the fake kernels leave in the state that Mirror returns.
func Hidden(hash uint64) []float32 {
	out := make([]float32, Facts().Model.Hidden)
	for e := range out {
		out[e] = float32(mix(hash^99<<32^uint64(e))%256) / 256
	}
	return out
}

// A Twin is a reference that agrees with the fake kernels to the bit. Like a real one it works on the session's cache.
type Twin struct {
	Resident host.Resident
	Broken   bool  // be wrong about token 77
	Closed   *bool // set by Close, if not nil
}

// Close implements [host.Reference].
func (w *Twin) Close() error {
	if w.Closed != nil {
		*w.Closed = true
	}
	return nil
}

// Step implements [host.Reference].
func (w *Twin) Step(token, position int, given []host.StageVector) ([]float32, []host.StageVector, error) {
	_, logits, err := w.step(token, position)
	return logits, given, err
}

// Follow implements [host.Reference].
func (w *Twin) Follow(token int, t *host.Trace) ([]host.StagePair, error) {
	hash, logits, err := w.step(token, t.Position)
	if err != nil {
		return nil, err
	}
	var pairs []host.StagePair
	for ordinal, v := range t.Vectors {
		want := logits
		if ordinal < len(t.Vectors)-1 {
			want = make([]float32, len(v.Values))
			for e := range want {
				want[e] = float32(mix(hash^uint64(ordinal)<<32^uint64(e))%256) / 256
			}
		}
		pairs = append(pairs, host.StagePair{Stage: v.Stage, Got: v.Values, Want: want})
	}
	return pairs, nil
}

// step decodes a token and returns the state and the logits after it.
func (w *Twin) step(token, position int) (uint64, []float32, error) {
	r := w.Resident
	cache := make([]byte, r.Info.CacheBytes)
	if err := r.Device.CopyDtoH(cache, r.Cache, nil); err != nil {
		return 0, nil, err
	}
	row := len(cache) / r.Info.MaxSeq
	var tokens []int
	for p := range position {
		tokens = append(tokens, int(binary.LittleEndian.Uint32(cache[p*row:]))-1)
	}
	hash, chosen := Mirror(append(tokens, token))
	own := binary.LittleEndian.AppendUint32(nil, uint32(token+1))
	if err := r.Device.CopyHtoD(r.Cache+driver.Ptr(position*row), own, nil); err != nil {
		return 0, nil, err
	}
	logits := make([]float32, r.Info.Vocab)
	for v := range logits {
		logits[v] = float32(mix(hash+uint64(v))%1000) / 1000
	}
	logits[chosen] = 2
	if w.Broken {
		logits[77] += 3
	}
	return hash, logits, nil
}

func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
