package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// uneven are facts of three layers, of which the second has larger heads, and whose caches are not in their order.
func uneven() *Facts {
	return &Facts{Model: Model{DType: "BF16", Cache: integerCache, Layers: 3, Heads: 4, KVHeads: 3, HeadDim: 40,
		MaxSeq: 50, CacheBlock: 16 * (2*48 + 4)},
		Layers: []Layer{
			{Heads: 4, KVHeads: 2, HeadDim: 20, CacheAt: 0, CacheBlock: 16 * (2*32 + 4)},
			{Heads: 3, KVHeads: 3, HeadDim: 40, CacheAt: 17408, CacheBlock: 16 * (2*48 + 4)},
			{Heads: 4, KVHeads: 2, HeadDim: 20, CacheAt: 8704, CacheBlock: 16 * (2*32 + 4)},
		}}
}

func TestModelsOfLayers(t *testing.T) {
	f := uneven()
	require.Empty(t, f.wrongLayers())
	second := f.ModelOf(1)
	require.Equal(t, []int{3, 3, 40, 1600}, []int{second.Heads, second.KVHeads, second.HeadDim, second.CacheBlock})
	require.Equal(t, 20, (&Facts{Model: f.Model, Layers: f.Layers}).ModelOf(2).HeadDim)
	require.Equal(t, f.Model, f.ModelOf(-1), "of no layer")
	require.Equal(t, 17408, f.CacheAt(1))
	alike := &Facts{Model: Model{Layers: 2, KVHeads: 3, MaxSeq: 17, CacheBlock: 100}}
	require.Equal(t, 768, alike.CacheAt(1), "two blocks of each of three heads, aligned")
	require.Equal(t, "row 130 (k of head 0, dim 5)", f.place("L01.qkv", 130))
	require.Equal(t, "row 130 (v of head 0, dim 10)", f.place("L02.qkv", 130))

	for want, edit := range map[string]func(l *Layer){
		"its numbers must be positive": func(l *Layer) { l.KVHeads = 0 },
		"as layer 1":                   func(l *Layer) { l.CacheAt = -1 },
		"has {Heads:3":                 func(l *Layer) { l.CacheBlock = -5 },
		"must be a multiple of 256":    func(l *Layer) { l.CacheAt += 16 },
	} {
		f := uneven()
		edit(&f.Layers[1])
		require.Contains(t, f.wrongLayers(), want)
	}
	f.Layers = f.Layers[:2]
	require.Equal(t, "facts.layers has 2 layers, and the model has 3", f.wrongLayers())
}

// A prefix has the first blocks of each head of each layer, wherever its cache begins and however large its heads are.
func TestPiecesOfUnevenCaches(t *testing.T) {
	s := &Session{facts: uneven(), info: Info{CacheBytes: 17408 + 3*4*1600}}
	pieces, total, err := s.cachePieces(17)
	require.NoError(t, err)
	require.Equal(t, []cachePiece{{0, 2176, 0}, {4352, 2176, 0}, {17408, 3200, 0}, {23808, 3200, 0}, {30208, 3200, 0},
		{8704, 2176, 0}, {13056, 2176, 0}}, pieces)
	require.Equal(t, 4*2176+3*3200, total)
	s.info.CacheBytes--
	_, _, err = s.cachePieces(17)
	require.ErrorContains(t, err, "a layer's cache has 19199 bytes")
	for at, want := range map[int]string{0: "has 0 bytes", 8448: "has 8448 bytes", 8960: "has 8960 bytes",
		17408: "has 17408 bytes", 1 << 40: "has 17408 bytes"} {
		s := &Session{facts: uneven(), info: Info{CacheBytes: 17408 + 3*4*1600}}
		s.facts.Layers[2].CacheAt = at // of layers of which each is inside the cache, or after its end
		_, _, err := s.cachePieces(17)
		require.ErrorContains(t, err, want)
	}
}

// What is made up for a cache of integers has the scales of each layer where its blocks have them.
func TestMadeUpUnevenIntegers(t *testing.T) {
	s := &Session{facts: uneven(), info: Info{CacheBytes: 17408 + 3*4*1600}}
	cache := make([]byte, s.info.CacheBytes)
	for _, p := range s.cacheParts(len(cache)) {
		pattern := s.patternOf(p.bytes, &p.model)
		require.NoError(t, makeUp(p.bytes, p.region, pattern, &p.model, func(at, from, to int) error {
			copy(cache[p.at+at:], pattern[from:to])
			return nil
		}))
	}
	for l := range s.facts.Layers {
		m, at := s.facts.ModelOf(l), s.facts.CacheAt(l)
		for block := range m.layerCache() / m.CacheBlock {
			scales := cache[at+(block+1)*m.CacheBlock-blockRows*rowScaleBytes:][:blockRows*rowScaleBytes]
			for _, scale := range DecodeElements(scales, "BF16") {
				require.True(t, scale >= 1.0/1024 && scale < 1.0/128, "layer %d, block %d: %v", l, block, scale)
			}
		}
	}
	require.NotEqual(t, cache[:8704], cache[8704:17408], "layers of one size differ")
}
