package host

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
)

// A Layer is what layers of a model may differ in that a host needs to know: their heads, and what they keep from step
// to step. A layer with Inputs keeps what a convolution convolves, in float32: KVHeads are groups of channels, and
// HeadDim is how many one has. One with recurrent states keeps these in float32, and no rows of positions.
type Layer struct {
	Heads   int  `json:"heads"`
	KVHeads int  `json:"kv_heads"`
	HeadDim int  `json:"head_dim"`
	Inputs  bool `json:"inputs,omitempty"`
	State   int  `json:"state,omitempty"` // bytes of its states; 0: it has none

	CacheAt    int `json:"cache_at"`    // where its cache begins in that of a sequence, in bytes
	CacheBlock int `json:"cache_block"` // as of Model
}

// ModelOf is the model as if all layers were like one of them.
func (f *Facts) ModelOf(layer int) Model {
	m := f.Model
	if layer >= 0 && layer < len(f.Layers) {
		l := &f.Layers[layer]
		m.Heads, m.KVHeads, m.HeadDim, m.CacheBlock = l.Heads, l.KVHeads, l.HeadDim, l.CacheBlock
		if l.single() {
			m.DType, m.Cache = "F32", ""
		}
	}
	return m
}

// single reports whether what a layer keeps is in float32, whatever the cache is in.
func (l Layer) single() bool { return l.Inputs || l.State > 0 }

// layerBytes is what a layer keeps of a sequence, in bytes.
func (f *Facts) layerBytes(layer int) int {
	m := f.ModelOf(layer)
	return max(f.stateBytes(layer), m.layerCache())
}

// stateBytes is that of recurrent states; 0 in a layer without.
func (f *Facts) stateBytes(layer int) int {
	if layer < len(f.Layers) {
		return f.Layers[layer].State
	}
	return 0
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
		rows := min(l.KVHeads, l.HeadDim, l.CacheBlock) > 0 && m.layerCache() > 0
		if l.Heads <= 0 || l.CacheAt < 0 || l.State < 0 || (l.State > 0) == rows {
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
	free := end - at - s.facts.layerBytes(layer)
	if m.CacheBlock < 0 || free < 0 || free >= cacheAlign {
		return m, 0, &BuildError{Path: filepath.Join(s.dir, ManifestFile), Remedy: recompile,
			What: fmt.Sprintf("facts.model.cache_block is %d, and a layer's cache has %d bytes", m.CacheBlock, end-at)}
	}
	return m, at, nil
}

// Recurrent states are of the last step alone: the kernel has them as they were before it, and what it adds. So a
// session may go on after its last token, decode that again, or begin at position 0. To go on from elsewhere, or after
// a launch that was aborted, it decodes the tokens before once more.

// recalled is what a session knows of its states.
type recalled struct {
	ids   []int // that were decoded at the positions from 0 on; none where states are made up
	after int   // the position after the last step; -1: a launch has left nobody knows what
}

// Recurrent reports whether layers have recurrent states.
func (f *Facts) Recurrent() bool {
	return slices.ContainsFunc(f.Layers, func(l Layer) bool { return l.State > 0 })
}

// recall makes the states those of the session's position.
func (s *Session) recall(ctx context.Context) error {
	r, position := &s.states, s.position
	if !s.facts.Recurrent() || position == 0 || len(r.ids) < position && r.after >= 0 ||
		r.after == position || r.after == position+1 {
		return nil
	}
	ids := slices.Clone(r.ids[:min(position, len(r.ids))])
	if len(ids) < position || slices.Contains(ids, Embedding) {
		return fmt.Errorf("position %d cannot be gone on from: the model keeps states of the last position alone, and "+
			"not all that is before is known to be tokens; decode it again from position 0", position)
	}
	all := r.ids
	s.position = 0
	if err := s.read(ctx, ids); err != nil {
		s.position, s.states = position, recalled{all, -1} // some of them have been decoded
		return err
	}
	return nil
}

// decoded notes the tokens of a launch from a position on.
func (s *Session) decoded(first int, ids []int) {
	if r := &s.states; s.facts.Recurrent() {
		if r.after = first + len(ids); first > len(r.ids) {
			r.ids = nil // from a position that was made up
			return
		}
		r.ids = append(r.ids[:first:first], ids...)
	}
}

// taken are the tokens that a launch has decoded before those that it chose.
func (b *burst) taken(chosen []int) []int {
	if b.forced != nil {
		return b.forced[:len(chosen)]
	}
	return append([]int{b.token}, chosen[:max(0, len(chosen)-1)]...)[:len(chosen)]
}
