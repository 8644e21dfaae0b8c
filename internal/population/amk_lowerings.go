package population

import (
	"fmt"
	"iter"
	"sync"

	"amkc/compiler/amk"
)

// The grid of the published population: shapes x tile widths x positions. Widths of 12 and 48 divide few of the
// dimensions, so that last tiles are ragged; one of 128 leaves a projection in one tile. Positions are the first, the
// last, one that leaves shards of unequal length, and those around the 16 rows from which attention is split.
var (
	tileWidths = [...]int{8, 12, 16, 32, 48, 128}
	positions  = [...]int{0, 1, 15, 16, 37, cacheRows - 1}
)

const (
	cacheRows    = 64
	numLowerings = len(decoders) * len(tileWidths) * len(positions)
)

// A decoder is a model shape of the grid, with what else a request takes.
type decoder struct {
	name                                                string
	layers, hidden, heads, kvHeads, headDim, mlp, vocab int
	scheme                                              amk.Scheme
	target                                              string // "": none
	dtype                                               amk.DType
	batch, partitions                                   int
	tied                                                bool
	quant                                               *amk.Quant
}

var decoders = [...]decoder{
	{name: "mha", layers: 1, hidden: 32, heads: 2, kvHeads: 2, headDim: 16, mlp: 64, vocab: 64, scheme: amk.SchemeToy,
		target: "rtx5090"},
	{name: "gqa", layers: 2, hidden: 64, heads: 4, kvHeads: 2, headDim: 16, mlp: 128, vocab: 128, scheme: amk.SchemeToy,
		target: "h100"},
	{name: "mqa", layers: 3, hidden: 64, heads: 4, kvHeads: 1, headDim: 16, mlp: 96, vocab: 160,
		scheme: amk.SchemeHFLlama, dtype: amk.BF16},
	{name: "ragged", layers: 2, hidden: 44, heads: 3, kvHeads: 3, headDim: 20, mlp: 70, vocab: 101,
		scheme: amk.SchemeToy, target: "l4"},
	{name: "split4", layers: 2, hidden: 64, heads: 4, kvHeads: 2, headDim: 16, mlp: 64, vocab: 96,
		scheme: amk.SchemeToy, target: "a100", partitions: 4},
	{name: "batch3", layers: 2, hidden: 48, heads: 3, kvHeads: 1, headDim: 16, mlp: 80, vocab: 72,
		scheme: amk.SchemeToy, dtype: amk.BF16, batch: 3},
	{name: "int8", layers: 2, hidden: 64, heads: 4, kvHeads: 4, headDim: 16, mlp: 96, vocab: 128, scheme: amk.SchemeToy,
		target: "l40s", dtype: amk.F16, quant: &amk.Quant{Bits: 8, Group: 32, Symmetric: true}},
	{name: "tied", layers: 4, hidden: 48, heads: 6, kvHeads: 2, headDim: 8, mlp: 64, vocab: 200,
		scheme: amk.SchemeHFLlama, target: "b200", tied: true},
	{name: "wide", layers: 1, hidden: 256, heads: 8, kvHeads: 2, headDim: 32, mlp: 384, vocab: 512,
		scheme: amk.SchemeHFLlama, target: "h100", dtype: amk.F16},
	{name: "deep", layers: 12, hidden: 32, heads: 4, kvHeads: 2, headDim: 8, mlp: 48, vocab: 64,
		scheme: amk.SchemeHFLlama, target: "h100", partitions: 2},
}

// request asks for one point of the grid.
func (d *decoder) request(width, pos int) amk.Request {
	q := amk.Request{
		Shape: amk.Shape{
			Vocab: d.vocab, Hidden: d.hidden, NLayers: d.layers, NHeads: d.heads, NKVHeads: d.kvHeads,
			HeadDim:      d.headDim,
			Intermediate: d.mlp, RMSEps: 1e-5, RopeTheta: 10000, MaxSeq: cacheRows,
		},
		Scheme: d.scheme, Tied: d.tied, Config: amk.DefaultConfig(), Pos: pos, DType: d.dtype, Batch: max(1, d.batch),
		Quant: d.quant,
	}
	if t, ok := amk.LookupTarget(d.target); ok {
		q.Target = &t
	}
	q.Config.Tiling.Set("gemv", knob("N_tile", width))
	if d.partitions > 0 {
		q.Config.Tiling.Set("attention", knob("n_partitions", d.partitions))
	}
	return q
}

func knob(key string, n int) *amk.Object {
	o := &amk.Object{}
	o.Set(key, amk.Int(n))
	return o
}

// A lowering is a point of the grid as mutations start from it. Ids of its buffers, counters and tasks are their
// places.
type lowering struct {
	name      string // shape, tile width and position
	prog      *amk.Program
	producers [][]int // of each counter: the tasks that signal it
}

var lowerings = sync.OnceValue(func() []lowering {
	all := make([]lowering, 0, numLowerings)
	for i := range decoders {
		for _, width := range tileWidths {
			for _, pos := range positions {
				l := lowering{name: gridName(&decoders[i], width, pos)}
				var err error
				if l.prog, err = amk.Lower(decoders[i].request(width, pos)); err != nil {
					panic(fmt.Sprintf("population: %s: %v", l.name, err)) // the grid is constant
				}
				l.producers = make([][]int, len(l.prog.Counters))
				for t := range l.prog.Tasks {
					c := l.prog.Tasks[t].OutCounter
					l.producers[c] = append(l.producers[c], t)
				}
				all = append(all, l)
			}
		}
	}
	return all
})

func gridName(d *decoder, width, pos int) string {
	return fmt.Sprintf("%s/tile%d/pos%d", d.name, width, pos)
}

// Lowerings yields the 360 real lowerings of the published population, rebuilt: 10 decoder shapes, each in 6 tile
// widths at 6 positions. The first call lowers them all.
func Lowerings() iter.Seq[Case] {
	return func(yield func(Case) bool) {
		for _, l := range lowerings() {
			if !yield(Case{Name: "lowering/" + l.name, Class: "lowering", Profile: l.prog}) {
				return
			}
		}
	}
}
