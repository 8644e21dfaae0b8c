package validate_test

import (
	"fmt"

	"amkc/ir"
)

// randomExchange makes a small program in which stages of tasks write vectors in pieces and read them whole or in part,
// by flagged and by counting waits, on pages that several vectors use one after another. Most stages wait for the last
// writers of what they read, as compiled programs do; some edges are left out, and some views are shifted.
func randomExchange(next source) *ir.Flat {
	const size = 12
	sms := 1 + next(5)
	f := &ir.Flat{SMs: sms, Pages: []ir.Page{{Name: "p", Space: ir.GlobalScratch, Bytes: 4 * size,
		Layout: ir.Layout{Kind: ir.Word32}}, {Name: "q", Space: ir.HBM, Bytes: 2 * size}}}
	add := func(b ir.Buffer) int {
		b.Name, b.Shape = fmt.Sprint("b", len(f.Buffers)), []int{size}
		f.Buffers = append(f.Buffers, b)
		return len(f.Buffers) - 1
	}
	in := add(ir.Buffer{Kind: ir.Input, DType: ir.F16})
	var vectors []int
	for range 2 + next(4) {
		b := ir.Buffer{Kind: ir.Activation, DType: ir.F16, Space: ir.GlobalScratch, Layout: ir.Layout{Kind: ir.Word32}}
		if next(4) == 0 {
			b.Space, b.Layout = ir.HBM, ir.Layout{}
		}
		if next(3) > 0 {
			b.Pages = []string{"p"}
			if b.Space == ir.HBM {
				b.Pages[0] = "q"
			}
		}
		vectors = append(vectors, add(b))
	}
	writers := map[int]int{} // of each vector: the counter of the stage that wrote it last
	from := in
	for stage := range 2 + next(6) {
		to := vectors[next(len(vectors))]
		how := ir.ByCounter
		if f.Buffers[to].Layout.Words() && next(4) > 0 {
			how = ir.Flagged
		}
		counter := len(f.Counters)
		f.Counters = append(f.Counters, ir.Counter{Name: fmt.Sprint("c", counter), How: how})
		also := -1 // a second result of the stage
		if next(5) == 0 {
			also = vectors[next(len(vectors))]
		}
		pieces := 1 + next(min(size, sms+1))
		for k := range pieces {
			task := ir.Task{Name: fmt.Sprint("t", stage, ".", k), SM: (k + stage) % sms, Signal: counter}
			if next(40) == 0 {
				task.SM = -1
			}
			if c, ok := writers[from]; ok && next(12) > 0 {
				task.Waits = append(task.Waits, ir.FlatWait{Counter: c, Threshold: producers(f, c)})
			}
			if next(3) == 0 && counter > 0 {
				if c := next(counter); producers(f, c) > 0 {
					task.Waits = append(task.Waits, ir.FlatWait{Counter: c, Threshold: producers(f, c)})
				}
			}
			lo, hi := k*size/pieces, (k+1)*size/pieces
			if next(40) == 0 && hi < size {
				lo, hi = lo+1, hi+1
			}
			read := span(0, size)
			if next(6) == 0 {
				read = span(next(4), size-next(4))
			}
			task.Ops = append(task.Ops, whole(from, read), piece(in, to, lo, hi))
			if also >= 0 {
				task.Ops = append(task.Ops, piece(in, also, lo, hi))
			}
			if next(10) == 0 { // a second read
				task.Ops = append(task.Ops, whole([]int{in, from, to}[next(3)], read))
			}
			f.Tasks = append(f.Tasks, task)
		}
		writers[to] = counter
		if also >= 0 {
			writers[also] = counter
			to = also
		}
		if next(8) > 0 {
			from = to
		} else {
			from = vectors[next(len(vectors))]
		}
	}
	if copies := next(6); copies < 4 {
		f.Pages[0].Layout.Copies = copies
		for i := range f.Buffers {
			if b := &f.Buffers[i]; b.Layout.Words() {
				b.Layout.Copies = copies
			}
		}
	}
	return f
}

// whole reads part of a vector into a temporary.
func whole(buf int, r ir.Range) ir.FlatOp {
	return ir.FlatOp{Op: ir.Op{Code: ir.COPY, In: []ir.Operand{{Buf: "x", Dims: []ir.Range{r}}},
		Out: []ir.Operand{{Buf: "%t"}}}, InBuf: []int{buf}, OutBuf: []int{-1}}
}

// piece copies elements [lo, hi) of one vector to another.
func piece(from, to, lo, hi int) ir.FlatOp {
	view := func() []ir.Operand { return []ir.Operand{{Buf: "x", Dims: []ir.Range{span(lo, hi)}}} }
	return ir.FlatOp{Op: ir.Op{Code: ir.COPY, In: view(), Out: view()}, InBuf: []int{from}, OutBuf: []int{to}}
}
