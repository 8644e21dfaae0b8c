package population

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"amkc/ir"
)

// Exchange makes a random program of a few tasks that hand exchange words on, over four buffers of two words each,
// two of which share a page. Tasks read words of others, of their own, and the same ones again, publish several
// times, and overwrite what others have read; waits are for all producers of a counter. One in three keeps its words in
// two or three copies. About one in ten is accepted: what is dense here are the orders that only polls make.
func Exchange(seed uint64) Case {
	x := &exchange{Rand: rand.New(rand.NewPCG(seed, 0xe8c)), flat: &ir.Flat{Name: "exchange", SMs: 3}}
	x.declare()
	for range 3 + x.IntN(4) {
		x.task()
	}
	counters := len(x.flat.Counters)
	x.flat.Counters = append(x.flat.Counters, ir.Counter{Name: "step", Role: ir.RoleStep, How: ir.ByCounter})
	x.flat.Tasks = append(x.flat.Tasks, ir.Task{Name: "emit", Signal: counters,
		Ops: []ir.FlatOp{copyOp(piece{exchangeToken, 0, 1}, piece{exchangeNext, 0, 1}, x.flat)}})
	for t := range x.flat.Tasks { // every producer is known now
		for k := range x.flat.Tasks[t].Waits {
			w := &x.flat.Tasks[t].Waits[k]
			for i := range x.flat.Tasks {
				if x.flat.Tasks[i].Signal == w.Counter {
					w.Threshold++
				}
			}
		}
	}
	if chance(x.Rand, 3) {
		x.copy(2 + x.IntN(2))
	}
	return Case{Name: "exchange/" + strconv.FormatUint(seed, 10), Class: "exchange", Flat: x.flat}
}

// Buffers of an exchange: words come first.
const (
	exchangeWords = 4
	exchangeConst = exchangeWords
	exchangeToken = exchangeWords + 1
	exchangeNext  = exchangeWords + 2
)

// exchange is such a program while it is made.
type exchange struct {
	*rand.Rand
	flat    *ir.Flat
	written []piece   // so far
	of      [][]piece // and by producers of each counter
}

// piece is elements [lo, hi) of a buffer.
type piece struct{ buf, lo, hi int }

func (x *exchange) declare() {
	words := ir.Layout{Kind: ir.Word32}
	x.flat.Pages = []ir.Page{{Name: "shared", Space: ir.GlobalScratch, Layout: words, Bytes: 8}}
	for i := range exchangeWords {
		b := ir.Buffer{Name: "x" + strconv.Itoa(i), Kind: ir.Activation, DType: ir.F16, Shape: []int{2},
			Space: ir.GlobalScratch, Layout: words}
		if i < 2 {
			b.Pages = []string{"shared"}
		}
		x.flat.Buffers = append(x.flat.Buffers, b)
	}
	x.flat.Buffers = append(x.flat.Buffers,
		ir.Buffer{Name: "v", Kind: ir.Weight, DType: ir.F16, Shape: []int{2}},
		ir.Buffer{Name: "token", Role: ir.RoleToken, Kind: ir.Input, DType: ir.I32, Shape: []int{1}},
		ir.Buffer{Name: "next", Role: ir.RoleNext, Kind: ir.Output, DType: ir.I32, Shape: []int{1}})
	for c := range 3 + x.IntN(3) {
		how := ir.Flagged
		if chance(x.Rand, 4) {
			how = ir.ByCounter
		}
		x.flat.Counters = append(x.flat.Counters, ir.Counter{Name: "c" + strconv.Itoa(c), How: how})
	}
	x.of = make([][]piece, len(x.flat.Counters))
}

// copy keeps every exchange word in n copies.
func (x *exchange) copy(n int) {
	x.flat.Pages[0].Layout.Copies = n
	for i := range exchangeWords {
		x.flat.Buffers[i].Layout.Copies = n
	}
}

// task adds a task that signals the counter of the one before it or the next one, and waits for some of the earlier
// ones.
func (x *exchange) task() {
	n := len(x.flat.Tasks)
	t := ir.Task{Name: "t" + strconv.Itoa(n), SM: x.IntN(x.flat.SMs)}
	if n > 0 {
		t.Signal = x.flat.Tasks[n-1].Signal
		if !chance(x.Rand, 4) {
			t.Signal = min(t.Signal+1, len(x.of)-1)
		}
	}
	var arrived []piece
	for c := range t.Signal {
		if c+2 >= t.Signal && !chance(x.Rand, 3) || chance(x.Rand, 4) {
			t.Waits = append(t.Waits, ir.FlatWait{Counter: c})
			arrived = append(arrived, x.of[c]...)
		}
	}
	for range 1 + x.IntN(4) {
		t.Ops = append(t.Ops, x.op(t.Signal, arrived))
	}
	x.flat.Tasks = append(x.flat.Tasks, t)
}

// op reads what has arrived, or anything, and keeps it or writes it on.
func (x *exchange) op(signal int, arrived []piece) ir.FlatOp {
	from := piece{exchangeConst, 0, 2}
	switch {
	case len(x.written) == 0 || chance(x.Rand, 3):
		if lo := x.IntN(2); chance(x.Rand, 3) {
			from.lo, from.hi = lo, lo+1
		}
	case len(arrived) > 0 && !chance(x.Rand, 3):
		from = arrived[x.IntN(len(arrived))]
	default:
		from = x.written[x.IntN(len(x.written))]
	}
	to := piece{x.IntN(exchangeWords), from.lo, from.hi}
	twice := slices.ContainsFunc(x.of[signal],
		func(p piece) bool { return p.buf == to.buf && p.lo < to.hi && to.lo < p.hi })
	if (twice || overlay(from.buf) == overlay(to.buf)) && !chance(x.Rand, 40) || from.buf != exchangeConst &&
		chance(x.Rand, 2) {
		return copyOp(from, piece{buf: -1}, x.flat)
	}
	x.written, x.of[signal] = append(x.written, to), append(slices.Clip(x.of[signal]), to)
	return copyOp(from, to, x.flat)
}

// overlay numbers the memory of a buffer: the first two share a page.
func overlay(buf int) int { return max(1, buf) }

// copyOp copies a piece to another, or to a temporary.
func copyOp(from, to piece, f *ir.Flat) ir.FlatOp {
	view := func(p piece) ir.Operand {
		if p.buf < 0 {
			return ir.Operand{Buf: "%t"}
		}
		return ir.Operand{Buf: f.Buffers[p.buf].Name, Dims: []ir.Range{ir.Span(ir.Int(p.lo), ir.Int(p.hi))}}
	}
	return ir.FlatOp{Op: ir.Op{Code: ir.COPY, In: []ir.Operand{view(from)}, Out: []ir.Operand{view(to)}},
		InBuf: []int{from.buf}, OutBuf: []int{to.buf}}
}
