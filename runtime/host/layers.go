package host

import (
	"fmt"
	"path/filepath"
)

// A Layer is what layers of a model may differ in that a host needs to know: their heads, and what they keep from step
// to step. A layer with Inputs keeps what a convolution convolves, in float32: KVHeads are groups of channels, and
// HeadDim is how many one has.
type Layer struct {
	Heads   int  `json:"heads"`
	KVHeads int  `json:"kv_heads"`
	HeadDim int  `json:"head_dim"`
	Inputs  bool `json:"inputs,omitempty"`

	CacheAt    int `json:"cache_at"`    // where its cache begins in that of a sequence, in bytes
	CacheBlock int `json:"cache_block"` // as of Model
}

// ModelOf is the model as if all layers were like one of them.
func (f *Facts) ModelOf(layer int) Model {
	m := f.Model
	if layer >= 0 && layer < len(f.Layers) {
		l := &f.Layers[layer]
		m.Heads, m.KVHeads, m.HeadDim, m.CacheBlock = l.Heads, l.KVHeads, l.HeadDim, l.CacheBlock
		if l.Inputs {
			m.DType, m.Cache = "F32", ""
		}
	}
	return m
}

// RowsOf is how many rows the cache of a layer has for each position: K and V, or what a convolution convolves.
func (f *Facts) RowsOf(layer int) int {
	if layer >= 0 && layer < len(f.Layers) && f.Layers[layer].Inputs {
		return 1
	}
	return 2
}

// CacheAt is where the cache of a layer begins in that of a sequence, in bytes.
func (f *Facts) CacheAt(layer int) int {
	if layer < len(f.Layers) {
		return f.Layers[layer].CacheAt
	}
	return layer * alignedCache(f.Model.layerCache())
}

// layerCache is the bytes of the cache of a layer: blocks of each kv head.
func (m *Model) layerCache() int { return m.KVHeads * cacheBlocks(m.MaxSeq) * m.CacheBlock }

// cacheBlocks is how many blocks of a head have the rows of n positions.
func cacheBlocks(n int) int { return (n + blockRows - 1) / blockRows }

func alignedCache(bytes int) int { return (bytes + cacheAlign - 1) / cacheAlign * cacheAlign }

// wrongLayers says what is wrong with facts of layers that differ, or nothing.
func (f *Facts) wrongLayers() string {
	if n := len(f.Layers); n != 0 && n != f.Model.Layers {
		return fmt.Sprintf("facts.layers has %d layers, and the model has %d", n, f.Model.Layers)
	}
	for i, l := range f.Layers {
		m := f.ModelOf(i)
		if min(l.Heads, l.KVHeads, l.HeadDim, l.CacheBlock) <= 0 || l.CacheAt < 0 || m.layerCache() <= 0 {
			return fmt.Sprintf("facts.layers has %+v as layer %d; its numbers must be positive", l, i)
		}
		if l.CacheAt%cacheAlign != 0 {
			return fmt.Sprintf("facts.layers has cache_at %d of layer %d; it must be a multiple of %d", l.CacheAt, i,
				cacheAlign)
		}
	}
	return ""
}

// cacheOf is where the cache of a layer is, and a model of such layers. It ends where the next one begins, but for
// what aligns that.
func (s *Session) cacheOf(layer int) (m Model, at int, err error) {
	m, at = s.facts.ModelOf(layer), s.facts.CacheAt(layer)
	end := int(s.info.CacheBytes)
	if len(s.facts.Layers) == 0 {
		each := end / m.Layers
		at, end = layer*each, (layer+1)*each
	}
	for i, l := range s.facts.Layers {
		if i != layer && l.CacheAt >= at {
			end = min(end, l.CacheAt)
		}
	}
	free := end - at - m.layerCache()
	if m.CacheBlock <= 0 || free < 0 || free >= cacheAlign {
		return m, 0, &BuildError{Path: filepath.Join(s.dir, ManifestFile), Remedy: recompile,
			What: fmt.Sprintf("facts.model.cache_block is %d, and a layer's cache has %d bytes", m.CacheBlock, end-at)}
	}
	return m, at, nil
}
