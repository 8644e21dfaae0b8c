package cost

import (
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
)

// A Traffic is the bytes that a pass of a program moves.
type Traffic struct {
	Target   string `json:"target"`
	Position int    `json:"position"` // of the first row of each sequence
	Variant  string `json:"variant"`
	ir.Pass
	Weights int64 `json:"weights"` // bytes that are read, once for all tokens
	Cache   int64 `json:"cache"`   // bytes of the rows of earlier passes that are read
	Stored  int64 `json:"stored"`  // bytes of exchanged words that SMs store, all copies
	Polled  int64 `json:"polled"`  // bytes of exchanged words that SMs read from L2, each at least once
	Caches  int64 `json:"caches"`  // bytes of memory that the caches of all sequences take
	// Widest is the largest exchanged vector that a product takes in, of all tokens: what warps hold of it, or shared
	// memory does.
	Widest int64 `json:"widest"`
}

// TrafficAt counts what the pass of a position moves. The error is a diagnostic: the program has no target, or no
// variant for the position.
func TrafficAt(p *ir.Program, pos int) (*Traffic, error) {
	if p.Target == nil {
		return nil, diag.Errorf(codeTarget, "program", "names no target; want a program that was compiled for a GPU")
	}
	m := &Model{program: p, reader: newReader(p)}
	v, err := m.variant(pos)
	if err != nil {
		return nil, err
	}
	stages, err := m.reader.stages(v, pos)
	if err != nil {
		return nil, err
	}
	weights, rows := m.reader.traffic(v, pos)
	out := &Traffic{Target: p.Target.Name, Position: pos, Variant: v.Name, Pass: p.Pass.Written(),
		Weights: whole(weights), Cache: whole(rows)}
	var stored, polled, widest, caches float64
	for _, s := range stages {
		times := float64(len(s.indices()))
		for k := range s.tasks {
			polled += times * s.tasks[k].polled
		}
		stored += times * m.reader.stored(s, pos)
		widest = max(widest, m.reader.widest(s))
	}
	for i := range p.Buffers {
		if b := &p.Buffers[i]; b.Kind == ir.KVCache {
			caches += float64(b.Bytes()) * float64(max(1, b.Count))
		}
	}
	out.Stored, out.Polled, out.Widest, out.Caches = whole(stored), whole(polled), whole(widest), whole(caches)
	return out, nil
}

func whole(n float64) int64 { return int64(min(n, 1<<62)) }

// stored is the bytes of words that the tasks of a stage store, in one iteration.
func (r *reader) stored(s *stage, pos int) (bytes float64) {
	i := s.indices()[0]
	for _, span := range s.ir.Dist.Tasks(i) {
		for k := range s.ir.Ops {
			for _, o := range s.ir.Ops[k].Out {
				if b := r.buffer(o, i); b != nil && b.Space == ir.GlobalScratch {
					bytes += product(lengths(o.Dims, span, pos)) * wordBytes(b) * float64(max(1, b.Layout.Copies))
				}
			}
		}
	}
	return bytes
}

// widest is the bytes of the largest vector that a stage multiplies a matrix with, as it was exchanged.
func (r *reader) widest(s *stage) (bytes float64) {
	if s.body.Streams != kernel.Tiles {
		return 0
	}
	i := s.indices()[0]
	for _, o := range s.ir.Ops[0].In {
		if b := r.buffer(o, i); b != nil && b.Kind == ir.Activation {
			bytes = max(bytes, float64(b.Numel())*float64(b.DType.Bits())/8)
		}
	}
	return bytes
}
