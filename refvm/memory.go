package refvm

import (
	"errors"
	"math"
	"slices"
	"sync/atomic"

	"amkc/ir"
	"amkc/ir/diag"
)

// Weights supplies the contents of WEIGHT and CONST buffers.
type Weights interface {
	// Floats returns the logical elements of a buffer in row-major order, widened to float32, quantised integers as
	// their values. b is a buffer as its program declares it: of a family, i is the member, and the keys of its Pieces
	// hold {i}; else i is 0. The VM keeps the slice and does not change it.
	Floats(b *ir.Buffer, i int) ([]float32, error)
}

// store is the contents of one buffer. Layouts are left to the device: here element e of the row-major order is
// data[e].
type store struct {
	index int // in Flat.Buffers
	buf   *ir.Buffer
	data  []float32
	ints  bool            // elements are int32, kept as their bits
	round rounder         // of values written
	rows  *scaledRows     // of a cache of integers; nil: elements are values
	owner []int32         // SMEM: 1 + the SM that touched the element first in this step, 0 while none has
	step  [ir.MaxRank]int // row-major strides, in elements
	tracked
}

// memory is all buffers of a program. The variants of one program share it.
type memory struct {
	stores []*store
	byName map[string]*store
	byRole map[string][]*store // those through which a step talks to its host
	stops  []*store            // in which steps leave whether the run ends
}

// supply loads the contents of the k-th flat buffer.
type supply func(k int) ([]float32, error)

// newMemory makes the buffers. Those on one page share its slots, element by element: buffers whose lifetimes overlap
// on a page destroy each other here as they would on the device. Weights and caches are those of another memory, if it
// is given and has them.
func newMemory(flat *ir.Flat, load supply, round Rounding, shared *memory) (*memory, error) {
	m := &memory{byName: map[string]*store{}, byRole: map[string][]*store{}}
	pages := map[string]*page{}
	for i := range flat.Pages {
		pages[flat.Pages[i].Name] = &page{words: flat.Pages[i].Layout.Words()}
	}
	for i := range flat.Buffers {
		b := &flat.Buffers[i]
		if n := b.Numel(); len(b.Shape) < 1 || len(b.Shape) > ir.MaxRank || slices.Min(b.Shape) < 1 || n > maxElements {
			return nil, diag.Errorf(CodeBuffer, "buffer "+b.Name,
				"has the shape %v, want 1 to %d positive dimensions and at most %d elements", b.Shape, ir.MaxRank,
				maxElements)
		}
		s := &store{index: i, buf: b, ints: b.DType == ir.I32, round: rounderFor(round, b.DType),
			rows: newScaledRows(b, round)}
		for d, n := len(b.Shape)-1, 1; d >= 0; d-- {
			s.step[d] = n
			n *= b.Shape[d]
		}
		m.stores = append(m.stores, s)
		m.byName[b.Name] = s
		if b.Role != "" {
			m.byRole[b.Role] = append(m.byRole[b.Role], s)
		}
		if len(b.Pages) > 0 {
			p := pages[b.Pages[0]]
			if p == nil {
				return nil, diag.Errorf(CodeBuffer, "buffer "+b.Name, "page %s does not exist", b.Pages[0])
			}
			if err := p.add(s); err != nil {
				return nil, err
			}
			continue
		}
		if shared != nil && s.take(shared.byName[b.Name]) {
			continue
		}
		if err := s.fill(load); err != nil {
			return nil, err
		}
	}
	for i := range flat.Pages {
		pages[flat.Pages[i].Name].share()
	}
	for t := range flat.Tasks {
		for k := range flat.Tasks[t].Ops {
			if o := &flat.Tasks[t].Ops[k]; o.Code == ir.STOP && len(o.OutBuf) > 0 && o.OutBuf[0] >= 0 {
				if s := m.stores[o.OutBuf[0]]; !slices.Contains(m.stops, s) {
					m.stops = append(m.stops, s)
				}
			}
		}
	}
	return m, nil
}

// take makes the elements of a weight or a cache those of another store, if that is of the same buffer.
func (s *store) take(of *store) bool {
	b := s.buf
	kept := b.Kind == ir.Weight || b.Kind == ir.Const || b.Kind.OfSequences()
	if of == nil || !kept || of.buf.Kind != b.Kind || of.buf.DType != b.DType ||
		!slices.Equal(of.buf.Shape, b.Shape) {
		return false
	}
	s.data, s.rows = of.data, of.rows
	return true
}

// fill gives a buffer that has no page its elements.
func (s *store) fill(load supply) error {
	b, n := s.buf, s.buf.Numel()
	if b.Kind == ir.Weight || b.Kind == ir.Const {
		values, err := load(s.index)
		var known *diag.Diagnostic
		switch {
		case errors.As(err, &known):
			return known
		case err != nil:
			return diag.Errorf(CodeWeights, "buffer "+b.Name, "%v", err)
		}
		if len(values) != n {
			return diag.Errorf(CodeWeights, "buffer "+b.Name, "%d elements were loaded, want %d, shape %v", len(values),
				n, b.Shape)
		}
		if s.ints {
			s.data = make([]float32, n)
			s.set(values)
			return nil
		}
		s.data = s.round.all(values)
		return nil
	}
	s.data = make([]float32, n)
	if s.ints && b.Kind == ir.Input {
		for i := range s.data {
			// what the reshape ids of the AMK profile are; token and pos are set by every step
			s.data[i] = fromInt(int32(i))
		}
	}
	s.shard()
	return nil
}

// maxElements keeps a program with an absurd shape from taking the machine's memory.
const maxElements = 1 << 31

// shard prepares the ownership table of an SMEM buffer.
func (s *store) shard() {
	if s.buf.Space == ir.SMEM {
		s.owner = make([]int32, len(s.data))
	}
}

// own notes that an SM touches elements [lo, lo+n), and returns the SM that did so before, or -1.
func (s *store) own(sm, lo, n int) int {
	for i := lo; i < lo+n; i++ {
		was := atomic.LoadInt32(&s.owner[i])
		if was == 0 && atomic.CompareAndSwapInt32(&s.owner[i], 0, int32(sm)+1) {
			continue
		}
		if was = atomic.LoadInt32(&s.owner[i]); was != int32(sm)+1 {
			return int(was) - 1
		}
	}
	return -1
}

// set and get convert between the elements and float32 values.
func (s *store) set(values []float32) {
	for i, f := range values {
		if s.ints {
			f = fromInt(int32(f))
		}
		s.data[i] = f
	}
}

func (s *store) get() []float32 {
	out := make([]float32, len(s.data))
	for i, f := range s.data {
		if s.ints {
			f = float32(toInt(f))
		}
		out[i] = f
	}
	return out
}

// fromInt and toInt keep an int32 in a float32 slot, as its bits: a page may hold either.
func fromInt(i int32) float32 { return math.Float32frombits(uint32(i)) }
func toInt(f float32) int32   { return int32(math.Float32bits(f)) }

// page collects the buffers on one page.
type page struct {
	words  bool // one slot per element, whatever its type
	bits   int
	stores []*store
}

func (p *page) add(s *store) error {
	b := s.buf
	if b.Kind != ir.Activation {
		return diag.Errorf(CodeBuffer, "buffer "+b.Name, "is %s and on page %s, only activations may", b.Kind,
			b.Pages[0])
	}
	if !p.words && p.bits != 0 && p.bits != b.DType.Bits() {
		return diag.Errorf(CodeBuffer, "buffer "+b.Name,
			"has elements of %d bits, but page %s holds elements of %d bits", b.DType.Bits(), b.Pages[0], p.bits)
	}
	p.bits = b.DType.Bits()
	p.stores = append(p.stores, s)
	return nil
}

// share lays the buffers over each other.
func (p *page) share() {
	size := 0
	for _, s := range p.stores {
		size = max(size, s.buf.Numel())
	}
	slots := make([]float32, size)
	for _, s := range p.stores {
		n := s.buf.Numel()
		s.data = slots[:n:n]
		s.shard()
	}
}

// begin prepares the memory for a step: ownership is reset, and under poison no activation holds a value yet.
func (m *memory) begin(poison bool) {
	nan := float32(math.NaN())
	for _, s := range m.stores {
		clear(s.owner)
		if poison && s.buf.Kind == ir.Activation {
			for i := range s.data {
				s.data[i] = nan
			}
		}
	}
}
