package library

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"unique"

	"amkc/runtime/host"
)

// A Prompt is the beginning of a text: tokens, and embeddings instead of tokens.
type Prompt struct {
	IDs []int // Embedding where the next row of Embeddings stands
	// Embeddings are [rows][hidden]. A row enters the model as [host.Input] says.
	Embeddings []float32
}

// Embedding is the id of a position whose embedding is given.
const Embedding = host.Embedding

// A place is what stands at a position: a token, or an embedding, which is known by the digest of its numbers. Two are
// the same if they are equal.
type place struct {
	id        int
	embedding unique.Handle[[sha256.Size]byte] // of a token, the zero value
}

// A sequence is places, and the embeddings among them in their order.
type sequence struct {
	places []place
	rows   []float32
}

// sequence checks that a prompt can be decoded from position 0 on.
func (m *Model) sequence(p Prompt) (sequence, error) {
	switch {
	case m.closed:
		return sequence{}, errClosed
	case len(p.IDs) == 0:
		return sequence{}, inputf("there are no ids; want at least one")
	case len(p.IDs) > m.parts.MaxSeq:
		return sequence{}, inputf("there are %d ids, and this model's context has %d positions", len(p.IDs),
			m.parts.MaxSeq)
	}
	t := sequence{places: make([]place, len(p.IDs)), rows: slices.Clone(p.Embeddings)}
	size, at := m.parts.Hidden, 0
	for i, id := range p.IDs {
		t.places[i].id = id
		if id != Embedding {
			if err := m.valid([]int{id}); err != nil {
				return sequence{}, err
			}
			continue
		}
		if at += size; at > len(t.rows) {
			continue
		}
		digest, err := digestOf(t.rows[at-size : at])
		if err != nil {
			return sequence{}, err
		}
		t.places[i].embedding = unique.Make(digest)
	}
	if at != len(t.rows) {
		return sequence{}, inputf("%d numbers were given for embeddings at %d positions; want %d, %d for each",
			len(t.rows), at/size, at, size)
	}
	return t, nil
}

// digestOf is that of the bits of an embedding, whose numbers are finite.
func digestOf(row []float32) ([sha256.Size]byte, error) {
	data := make([]byte, 0, 4*len(row))
	for i, x := range row {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			return [sha256.Size]byte{}, inputf("element %d of an embedding is %v; want finite numbers", i, x)
		}
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return sha256.Sum256(data), nil
}

// from returns what stands at the positions from one on, up to another, as a decoder takes it.
func (t *sequence) from(lo, hi, size int) host.Input {
	first, in := 0, host.Input{IDs: make([]int, hi-lo)}
	for _, p := range t.places[:lo] {
		if p.id == Embedding {
			first += size
		}
	}
	last := first
	for i, p := range t.places[lo:hi] {
		if in.IDs[i] = p.id; p.id == Embedding {
			last += size
		}
	}
	in.Embeddings = t.rows[first:last]
	return in
}

// knows reports whether the cache has the rows of places from position 0 on.
func (m *Model) knows(places []place) bool {
	return len(m.cached) >= len(places) && slices.Equal(m.cached[:len(places)], places)
}

// reach decodes what the cache lacks of a sequence, and returns the token with the largest logit after it. The last
// rows of it are decoded in any case, and what is wanted of each goes to want, counted from 0. The lock is held.
func (m *Model) reach(t sequence, rows int, want host.Outputs) (next int, err error) {
	known, most := 0, len(t.places)-max(rows, 1)
	for known < min(len(m.cached), most) && m.cached[known] == t.places[known] {
		known++
	}
	if err := m.parts.Decoder.Rewind(known); err != nil {
		return 0, err
	}
	held := m.cached[:known]
	m.cached = nil // until it has gone well nobody knows which rows the cache has
	ctx, stopped := m.watched()
	first, end := len(t.places)-rows, len(t.places)
	if known < first {
		next, err = m.parts.Decoder.Decode(ctx, t.from(known, first, m.parts.Hidden), host.Outputs{})
	}
	if err == nil && rows > 0 {
		counted := host.Outputs{Logits: fromRow(first, want.Logits), Hidden: fromRow(first, want.Hidden)}
		next, err = m.parts.Decoder.Decode(ctx, t.from(first, end, m.parts.Hidden), counted)
	}
	switch stop := stopped(); {
	case stop != nil && (err == nil || errors.Is(err, context.Canceled)): // which leaves what was decoded before
		m.cached = t.places[:m.parts.Decoder.Position():m.parts.Decoder.Position()]
		return 0, stop
	case err != nil:
		m.restart()
		return 0, err
	}
	m.cached = append(held, t.places[known:]...) // a text that grows by a token is not copied again for each
	return next, nil
}

// fromRow counts positions from one on.
func fromRow(first int, f func(row int, values []float32) error) func(position int, values []float32) error {
	if f == nil {
		return nil
	}
	return func(position int, values []float32) error { return f(position-first, values) }
}
