package compiler

import (
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/runtime/host"
)

// invented are the matrices that packed weights leave out; nil: none.
func (l *Scheduled) invented() *host.Invented {
	if l.options.RandomSeed == nil || !l.options.LeaveOut {
		return nil
	}
	return inventedOf(l.Program, *l.options.RandomSeed)
}

// checkLeftOut refuses a build that would leave nothing out.
func (l *Scheduled) checkLeftOut() error {
	if made := l.invented(); made == nil || len(made.Matrices) > 0 {
		return nil
	}
	d := diag.Errorf(codeLeaveOut, l.options.Model, "no matrix can be left out: all are K-quants of GGUF files")
	return d.Suggest("leave --leave-out out")
}

// inventedOf are all matrices of a program whose formats have a pattern. What has one dimension is packed: weights of
// norms are near 1, and the frequencies of rotations follow from the model.
func inventedOf(p *ir.Program, seed uint64) *host.Invented {
	v := &host.Invented{Seed: seed}
	places, size := ir.PackedWeights(p)
	for i, pl := range places {
		b := &p.Buffers[pl.Buffer]
		if b.Kind != ir.Weight || len(b.Shape) < 2 {
			continue
		}
		var pattern host.Pattern
		if pattern.Keep, pattern.Set = format.Invented(b.Format()); pattern.Keep == nil {
			continue
		}
		n := slices.IndexFunc(v.Patterns, func(p host.Pattern) bool {
			return slices.Equal(p.Keep, pattern.Keep) && slices.Equal(p.Set, pattern.Set)
		})
		if n < 0 {
			n, v.Patterns = len(v.Patterns), append(v.Patterns, pattern)
		}
		next := size
		if i+1 < len(places) {
			next = places[i+1].Offset
		}
		v.Matrices = append(v.Matrices,
			host.InventedMatrix{At: int64(pl.Offset), Bytes: int64(next - pl.Offset), Pattern: n})
	}
	return v
}
