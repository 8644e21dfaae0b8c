package cost

import (
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/ir/op"
	"amkc/kernel"
	"amkc/knobs"
)

// task is what one SM does in one stage, at one position.
type task struct {
	streamed  float64 // bytes that come through the ring, padding included
	chunks    float64 // ring slots that they take
	worked    float64 // bytes that warps work on at once, which stay in their slots meanwhile
	tiles     int     // of 8 rows
	quads     int     // of 128 columns, that a warp multiplies in a tile
	batches   int     // of quads of integers, that a warp multiplies in a tile; 0: of other elements
	offset    bool    // integers are multiplied with an offset, which comes off their sums
	rounds    int     // without tensor cores, in which every warp takes 8 rows by 32 columns
	ragged    bool    // the quads do not divide among the warps, or the last has fewer columns
	blocks    float64 // of 16 cache rows
	fragments int     // of 16 elements, in a head
	heads     int     // of a group
	passes    int     // of all threads over the results of a unit: the heads of a group
	polled    float64 // bytes of exchanged words that it reads
	pushed    float64 // those of them that GPUs push to each other
	share     float64 // of the vectors that they belong to
	apart     bool    // those are on a page that nothing else of a step uses
	gemm      gemm    // of several tokens at once
	turns     int     // of tokens that go by one after another; 0: all go by at once
}

// stage is a stage of a variant at one position. In the iterations of its loop the k-th task does the same on another
// SM.
type stage struct {
	ir    *ir.Stage
	loop  *ir.Loop // nil: in none
	body  *kernel.Body
	warps int // that share a tile
	tasks []task

	format  format.Format // of its matrix; nil: it has none
	columns int           // of that, or of all that a row is summed over
	cut     *kernel.Cut   // how they are cut
	experts int           // whose matrices its rows may be of; 0: it has one matrix
	chosen  int           // of them, for a token
	queries int           // elements of all query heads of its layer
}

// indices are the values of {i}: one for each iteration, and one that stands for none.
func (s *stage) indices() []int {
	if s.loop == nil {
		return []int{0}
	}
	out := make([]int, s.loop.Count)
	for k := range out {
		out[k] = s.loop.Index(k)
	}
	return out
}

const (
	cacheRows = 16 // of a block
	computing = 32 * kernel.Warps

	plainRows, plainColumns = 8, 32 // of a block without tensor cores
)

// A reader finds out what the stages of a program do at a position.
type reader struct {
	program *ir.Program
	buffers *ir.Directory
	chunk   int            // bytes of a ring slot
	onPage  map[string]int // vectors of a step that are on a page
}

func newReader(p *ir.Program) *reader {
	r := &reader{program: p, buffers: ir.BufferDirectory(p), chunk: max(1, knobs.ChunkBytes.Of(&p.Config)),
		onPage: map[string]int{}}
	for i := range p.Buffers {
		if b := &p.Buffers[i]; len(b.Pages) > 0 {
			for n := range max(1, b.Count) {
				r.onPage[b.Pages[n%len(b.Pages)]]++
			}
		}
	}
	return r
}

// stages returns the stages of a variant in order, with what their tasks do at a position.
func (r *reader) stages(v *ir.Variant, pos int) ([]*stage, error) {
	var out []*stage
	step := ""
	for i := range v.Counters {
		if v.Counters[i].Role == ir.RoleStep {
			step = v.Counters[i].Name
		}
	}
	add := func(s *ir.Stage, l *ir.Loop) error {
		body := bodyOf(s, step)
		switch {
		case body == nil:
			return diag.Errorf(codeJudge, "stage "+s.Name, "has the ops %s, which no stage body of the kernel runs; "+
				"want the program as passes leave it", kernel.CodesOf(s.Ops))
		case body.Asked: // the launches that are predicted do not ask for it
			return nil
		}
		st := &stage{ir: s, loop: l, body: body, warps: r.warps(s.Role), queries: r.program.FactsOf(s, l).QueryRows()}
		i := 0
		if l != nil {
			i = l.Index(l.Iterations(s)[0]) // validated: there is one
		}
		for _, span := range s.Dist.Tasks(i) {
			if span.SM < 0 || span.SM >= r.program.Target.SMs {
				return diag.Errorf(codeJudge, "stage "+s.Name,
					"a task runs on no SM of the target, which has %d; want the program as passes leave it "+
						"after assign",
					r.program.Target.SMs)
			}
			st.tasks = append(st.tasks, r.task(st, span, i, pos))
		}
		out = append(out, st)
		return nil
	}
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Stage:
			if err := add(n, nil); err != nil {
				return nil, err
			}
		case *ir.Loop:
			for _, s := range n.Body {
				if err := add(s, n); err != nil {
					return nil, err
				}
			}
		}
	}
	return out, nil
}

// bodyOf finds the body of a stage, whose product may be of several tokens. step is the counter that ends the step.
func bodyOf(s *ir.Stage, step string) *kernel.Body {
	if slices.ContainsFunc(s.Ops, func(o ir.Op) bool {
		return ir.Ops[o.Code].HasRole(op.Matrix) || o.Code == ir.SELECTED
	}) {
		return kernel.Product
	}
	body := kernel.Of(s)
	if body == kernel.Arrive && s.Signal == step {
		return kernel.JoinStep
	}
	return body
}

// splits are how many a stage joins that polls partial results.
func (s *stage) splits() int {
	var k kernel.Stage
	s.body.Read(&k, s.ir.Ops)
	return k.Splits
}

// warps is the knob of a stage of that role.
func (r *reader) warps(role string) int {
	return min(kernel.Warps, max(1, knobs.Warps.Of(&r.program.Config, role)))
}

// multiplies is how a stage multiplies a matrix of n columns, or several that it adds up.
func (r *reader) multiplies(s *stage, f format.Format, columns, sums int) *kernel.Cut {
	return &kernel.Cut{Matrix: f, Columns: columns, Chunk: r.chunk, Warps: s.warps,
		Chains: knobs.Chains.Of(&r.program.Config, s.ir.Role), Sums: sums}
}

// task adds up what the ops of a stage read on a span.
func (r *reader) task(s *stage, span ir.TaskSpan, i, pos int) task {
	var t task
	whole := 0.0
	for k := range s.ir.Ops {
		o := &s.ir.Ops[k]
		for n := range o.In {
			b := r.buffer(o.In[n], i)
			if b == nil {
				continue
			}
			dims, role := lengths(o.In[n].Dims, span, pos), ir.Ops[o.Code].Role(n)
			switch {
			case b.Space == ir.GlobalScratch || b.Space == ir.PeerScratch:
				if b.Space == ir.PeerScratch {
					t.pushed += product(dims) * wordBytes(b)
				}
				switch bytes := s.body.Polls; {
				case bytes == 0:
					t.polled += product(dims) * wordBytes(b)
				case n == 0:
					t.polled += product(dims) * bytes
				}
				t.share += product(dims)
				t.apart = t.apart || len(b.Pages) > 0 && r.onPage[b.Pages[0]] == 1
				whole = max(whole, float64(b.Numel()))
			case role == op.Kept: // loaded as it is, and stored
				t.polled += product(dims) * float64(b.DType.Bytes(1))
			case s.body.Streams == kernel.CacheRows && role == op.Cache:
				r.cache(&t, o, b, dims, blocksOf(o.In[n].Dims, span, pos))
			case b.Kind == ir.Weight && role == op.Matrix:
				r.parts(s, &t, o, b, dims)
			case b.Kind == ir.Weight && o.Code == ir.SELECTED && n == 1:
				r.experts(s, &t, o, b, dims, span)
			}
		}
	}
	if whole > 0 {
		t.share = min(1, t.share/whole)
	}
	return t
}

func (r *reader) buffer(o ir.Operand, i int) *ir.Buffer {
	if o.IsTemp() {
		return nil
	}
	m, err := r.buffers.At(o.Buf, i)
	if err != nil {
		return nil
	}
	return &r.program.Buffers[m.Declared]
}

// parts adds the tiles of a matrix, or of as many as its columns are parts of a sum: each is streamed on its own.
func (r *reader) parts(s *stage, t *task, o *ir.Op, b *ir.Buffer, dims []int) {
	parts := max(1, o.IntAt("parts", 0, 1))
	if len(dims) == 2 {
		dims = []int{dims[0], dims[1] / parts}
	}
	r.weights(s, t, b, dims, parts, r.program.Pass.NumTokens())
}

// weights adds tiles, of which every one begins a slot: as often as rows are summed over such. They are multiplied by
// the vectors of n tokens at once.
func (r *reader) weights(s *stage, t *task, b *ir.Buffer, dims []int, sums, n int) {
	if len(dims) != 2 {
		return
	}
	f := b.Format()
	if f == nil {
		return
	}
	s.format, s.columns, s.cut = f, sums*dims[1], r.multiplies(s, f, dims[1], sums)
	g := f.Geometry()
	tiles, bytes := g.Tiles(dims[0]), g.TileBytes(dims[1])
	t.tiles += tiles
	t.streamed += float64(sums*tiles) * float64(bytes)
	t.chunks += float64(sums*tiles) * float64(ceil(bytes, kernel.ChunkQuads(g, r.chunk, s.warps)*g.QuadBytes()))
	quads, inChunk := ceil(dims[1], format.QuadColumns), kernel.ChunkQuads(g, r.chunk, s.warps)
	full := quads / inChunk
	t.quads = sums * kernel.QuadsPerWarp(g, dims[1], r.chunk, s.warps)
	switch {
	case n > 1:
		t.gemm = r.gemm(s, f, dims[1])
	case !tensor(r.program):
		t.rounds += sums * tiles * roundsOfTile(g, dims[1], r.chunk)
	case format.InFixedPoint(f):
		t.batches = s.cut.Batches()
		t.offset = format.HasOffset(f)
	}
	t.ragged = dims[1]%format.QuadColumns != 0 || (quads-full*inChunk)%s.warps != 0 ||
		full > 0 && inChunk%s.warps != 0
}

// experts adds the tiles of the matrices that are selected. Rows are those of the matrices, one after another, or each
// is summed over as many as are selected, whose columns follow one another. Each token of a pass has its own.
func (r *reader) experts(s *stage, t *task, o *ir.Op, b *ir.Buffer, dims []int, span ir.TaskSpan) {
	if len(dims) != 3 {
		return
	}
	rows, summed := span.B-span.A, 1
	s.experts, s.chosen = b.Shape[0], max(1, lengths(o.In[2].Dims, span, 0)[len(o.In[2].Dims)-1])
	if !o.Has("first_row") {
		summed = s.chosen
	}
	r.weights(s, t, b, []int{rows, dims[2]}, summed, 1)
	if summed > 1 && r.program.Target.BulkCopy && tensor(r.program) {
		t.chunks /= float64(s.cut.ChunkMatrices())
	}
	t.turns = r.program.Pass.NumTokens()
	t.streamed, t.chunks = t.streamed*float64(t.turns), t.chunks*float64(t.turns)
	t.tiles, t.rounds = t.tiles*t.turns, t.rounds*t.turns
}

// roundsOfTile is how many rounds all warps take for a tile without tensor cores, each with 8 rows by 32 columns at a
// time. They share the blocks of each chunk separately; one of a quantised matrix is 128 columns.
func roundsOfTile(g format.Geometry, columns, chunk int) int {
	blocks, ofChunk := g.Blocks(columns), max(1, chunk/g.BlockBytes)
	turns := blocks/ofChunk*ceil(ofChunk, kernel.Warps) + ceil(blocks%ofChunk, kernel.Warps)
	return turns * ceil(g.Columns, plainColumns)
}

// cache adds the keys, or the values, of some blocks of rows of each head: half of every block.
func (r *reader) cache(t *task, o *ir.Op, b *ir.Buffer, dims []int, each int) {
	if len(dims) == 5 { // of one sequence
		dims = dims[1:]
	}
	if len(dims) != 4 {
		return
	}
	rows, heads := r.unitRows(o), max(1, o.IntAt("n_heads", 0, 1)/max(1, o.IntAt("n_kv_heads", 0, 1)))
	blocks := float64(dims[0]*each) * float64(r.takes(rows, heads))
	bytes := blocks * float64(b.DType.Bytes(cacheRows*ceil(dims[3], 16)*16))
	t.blocks += blocks / 2
	t.fragments, t.heads = ceil(dims[3], 16), heads
	t.passes = max(1, ceil(rows*heads*dims[3], computing))
	t.streamed += bytes
	t.chunks += bytes / float64(r.chunk)
	t.worked += bytes * min(1, kernel.Warps/blocks)
}

// blocksOf counts the blocks that hold a row of a view of a cache. A window may begin in the middle of one.
func blocksOf(dims []ir.Range, span ir.TaskSpan, pos int) int {
	if len(dims) < 4 {
		return 0
	}
	rows := dims[len(dims)-3].Bind(span)
	if rows.Len(pos) == 0 {
		return 0
	}
	rows.Lo = ir.Int(rows.Lo.At(pos) / cacheRows * cacheRows)
	return ceil(min(rows.Len(pos), 1<<30), cacheRows)
}

// wordBytes is the size of an exchanged element.
func wordBytes(b *ir.Buffer) float64 {
	switch b.Layout.Kind {
	case ir.Word32:
		return 4
	case ir.Word64:
		return 8
	}
	return float64(b.DType.Bits()) / 8
}

// lengths are the extents of a view; those of a hostile one are cut off where their product could overflow.
func lengths(dims []ir.Range, span ir.TaskSpan, pos int) []int {
	out := make([]int, len(dims))
	for d, r := range dims {
		out[d] = min(r.Bind(span).Len(pos), 1<<30)
	}
	return out
}

func product(dims []int) float64 {
	n := 1.0
	for _, d := range dims {
		n *= float64(d)
	}
	return n
}

func ceil(n, d int) int { return (n + d - 1) / d }
