package simulate

import (
	"fmt"
	"math/rand/v2"

	"amkc/ir"
)

// randomFlat makes a small program of a few exchanges. Each publishes a vector of exchange words, which share pages;
// its tasks read words of an earlier exchange, or plain memory, and write theirs. Much of it may be missing or
// misplaced.
func randomFlat(seed uint64, most int) *ir.Flat {
	r := rand.New(rand.NewPCG(seed, 77))
	odds := func(n int) bool { return r.IntN(n) == 0 }
	word := ir.Layout{Kind: ir.Word32}
	const n = 2 // words of a vector
	f := &ir.Flat{SMs: 3, Buffers: []ir.Buffer{{Name: "in", Kind: ir.Input, DType: ir.F16, Shape: []int{n}},
		{Name: "plain", Kind: ir.Activation, DType: ir.F16, Shape: []int{n}}}}
	for p := range 3 {
		f.Pages = append(f.Pages, ir.Page{Name: fmt.Sprint("page", p), Space: ir.GlobalScratch, Layout: word,
			Bytes: 4 * n})
	}
	view := func(b, lo, hi int) ([]int, []ir.Operand) {
		return []int{b}, []ir.Operand{{Buf: f.Buffers[b].Name, Dims: []ir.Range{ir.Span(ir.Int(lo), ir.Int(hi))}}}
	}
	total := map[int]int{}
	for c := 0; len(f.Tasks) < most; c++ {
		how := ir.Flagged
		if odds(4) {
			how = ir.ByCounter
		}
		f.Counters = append(f.Counters, ir.Counter{Name: fmt.Sprint("c", c), How: how})
		page := c % 2
		if odds(3) {
			page = r.IntN(3)
		}
		f.Buffers = append(f.Buffers, ir.Buffer{Name: fmt.Sprint("x", c), Kind: ir.Activation, DType: ir.F16,
			Shape: []int{n}, Space: ir.GlobalScratch,
			Layout: word, Pages: []string{f.Pages[page].Name}})
		parts := 1 + r.IntN(2)
		for part := range parts {
			t := ir.Task{Name: fmt.Sprintf("t%d.%d", c, part), SM: part, Signal: c}
			if odds(3) {
				t.SM = r.IntN(4) - 1
			}
			lo, hi := part*n/parts, (part+1)*n/parts
			source := 0
			if c > 0 {
				source = 1 + c
			}
			if c > 1 && odds(4) {
				source = 1 + 1 + r.IntN(c)
			}
			if c > 0 && odds(6) { // a second read, of plain memory or of another exchange
				op := ir.FlatOp{Op: ir.Op{Code: ir.COPY}}
				op.InBuf, op.In = view(1+r.IntN(1+c), lo, hi)
				op.OutBuf, op.Out = []int{-1}, []ir.Operand{{Buf: "%t"}}
				t.Ops = append(t.Ops, op)
			}
			op := ir.FlatOp{Op: ir.Op{Code: ir.COPY}}
			op.InBuf, op.In = view(source, lo, hi)
			op.OutBuf, op.Out = view(2+c, lo, hi)
			t.Ops = append(t.Ops, op)
			if parts > 1 && c > 0 && !odds(3) { // reads all of it
				op := ir.FlatOp{Op: ir.Op{Code: ir.COPY}}
				op.InBuf, op.In = view(source, 0, n)
				op.OutBuf, op.Out = []int{-1}, []ir.Operand{{Buf: "%all"}}
				t.Ops = append([]ir.FlatOp{op}, t.Ops...)
			}
			if odds(6) {
				op := ir.FlatOp{Op: ir.Op{Code: ir.COPY}}
				op.InBuf, op.In = view(0, lo, hi)
				op.OutBuf, op.Out = view(1, lo, hi)
				t.Ops = append(t.Ops, op)
			}
			if odds(12) && len(t.Ops) > 1 {
				t.Ops[0], t.Ops[1] = t.Ops[1], t.Ops[0]
			}
			total[c]++
			for w := range c {
				if (w == source-2 || odds(5)) && !odds(12) {
					n := total[w]
					if n > 1 && odds(12) {
						n--
					}
					t.Waits = append(t.Waits, ir.FlatWait{Counter: w, Threshold: n})
				}
			}
			f.Tasks = append(f.Tasks, t)
		}
	}
	return f
}

// manyProducers makes a program as randomFlat does, in which several tasks may store the same words of one exchange:
// those that store a part of it may store all, some are of an earlier exchange than they were, and at last an exchange
// may be made again from the one after it, which waits for the exchange.
func manyProducers(seed uint64, most int) *ir.Flat {
	f, r := randomFlat(seed, most), rand.New(rand.NewPCG(seed, 99))
	all := []ir.Range{ir.Span(ir.Int(0), ir.Int(2))}
	for t := range f.Tasks {
		task := &f.Tasks[t]
		own, other := 2+task.Signal, 2+task.Signal
		if r.IntN(5) == 0 {
			other = 2 + r.IntN(task.Signal+1)
		}
		for k := range task.Ops {
			op := &task.Ops[k]
			if op.OutBuf[0] != own {
				continue
			}
			if r.IntN(2) == 0 {
				op.In[0].Dims, op.Out[0].Dims = all, all
			}
			op.OutBuf[0], op.Out[0].Buf = other, f.Buffers[other].Name
		}
		task.Signal = other - 2
	}
	if last := len(f.Counters) - 1; last > 0 && r.IntN(2) == 0 {
		c := r.IntN(last)
		op := ir.FlatOp{Op: ir.Op{Code: ir.COPY, In: []ir.Operand{{Buf: f.Buffers[3+c].Name, Dims: all}},
			Out: []ir.Operand{{Buf: f.Buffers[2+c].Name, Dims: all}}}, InBuf: []int{3 + c}, OutBuf: []int{2 + c}}
		f.Tasks = append(f.Tasks, ir.Task{Name: "again", SM: r.IntN(4) - 1, Signal: c, Ops: []ir.FlatOp{op},
			Waits: []ir.FlatWait{{Counter: c + 1, Threshold: 1}}})
	}
	return f
}

// copiedFlat is randomFlat with two copies of each word, whose tasks run on other SMs.
func copiedFlat(seed uint64, most int) *ir.Flat {
	f := randomFlat(seed, most)
	r := rand.New(rand.NewPCG(seed, 78))
	for p := range f.Pages {
		f.Pages[p].Layout.Copies = 2
	}
	for b := range f.Buffers {
		if f.Buffers[b].Layout.Words() {
			f.Buffers[b].Layout.Copies = 2
		}
	}
	for t := range f.Tasks {
		f.Tasks[t].SM = r.IntN(f.SMs)
	}
	return f
}
