package validate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
	"amkc/ir"
	"amkc/validate"
	"amkc/validate/kernel"
)

// source hands out small numbers, from a seed or from a fuzzer.
type source func(n int) int

// randomFlat makes a small program of copies and appends over a few buffers, with counting counters. Waits are joins
// and views lie inside their buffers most of the time, so that order is what decides.
func randomFlat(next source) *ir.Flat {
	word := ir.Layout{Kind: ir.Word32}
	f := &ir.Flat{Lo: next(3), SMs: 3, Pages: []ir.Page{{Name: "p", Space: ir.GlobalScratch, Bytes: 32}},
		Buffers: []ir.Buffer{
			{Name: "in", Kind: ir.Input, DType: ir.F32, Shape: []int{8}},
			{Name: "a", Kind: ir.Activation, DType: ir.F32, Shape: []int{8}, Space: ir.GlobalScratch,
				Pages: []string{"p"}},
			{Name: "b", Kind: ir.Activation, DType: ir.F32, Shape: []int{6}, Space: ir.GlobalScratch,
				Pages: []string{"p"}},
			{Name: "c", Kind: ir.Activation, DType: ir.F32, Shape: []int{8}, Space: ir.HBM},
			{Name: "kv", Kind: ir.KVCache, DType: ir.F32, Shape: []int{8, 1, 1}, Space: ir.HBM},
			{Name: "w", Kind: ir.Activation, DType: ir.F16, Shape: []int{8}, Space: ir.GlobalScratch, Layout: word},
			{Name: "s", Kind: ir.Activation, DType: ir.F32, Shape: []int{8}, Space: ir.SMEM},
		}}
	f.Hi = f.Lo + next(3)
	counters := 1 + next(4)
	for c := range counters {
		f.Counters = append(f.Counters, ir.Counter{Name: fmt.Sprint("c", c), How: ir.ByCounter})
	}
	for t := range 2 + next(5) {
		task := ir.Task{Name: fmt.Sprint("t", t), SM: next(4) - 1, Signal: next(counters)}
		for range 1 + next(2) {
			task.Ops = append(task.Ops, randomOp(next))
		}
		f.Tasks = append(f.Tasks, task)
	}
	for t := range f.Tasks {
		for c := range counters {
			if n := producers(f, c); n > 0 && f.Tasks[t].Signal > c && next(2) == 0 {
				f.Tasks[t].Waits = append(f.Tasks[t].Waits, ir.FlatWait{Counter: c, Threshold: n})
			}
		}
	}
	return f
}

func producers(f *ir.Flat, c int) int {
	n := 0
	for t := range f.Tasks {
		if f.Tasks[t].Signal == c {
			n++
		}
	}
	return n
}

func randomOp(next source) ir.FlatOp {
	view := func(buf, n int) ([]int, []ir.Operand) {
		lo := next(9 - n)
		dims := []ir.Range{span(lo, lo+n)}
		if buf == 4 {
			dims = append(dims, span(0, 1), span(0, 1))
			if n == 1 && next(2) == 0 {
				dims[0] = ir.Index(ir.Symbol(ir.Pos).Add(ir.Int(next(2))))
			}
		}
		return []int{buf}, []ir.Operand{{Buf: "x", Dims: dims}}
	}
	op := ir.FlatOp{Op: ir.Op{Code: ir.COPY}}
	n := 1 + next(3)
	op.InBuf, op.In = view(max(0, next(8)-3), n)
	op.OutBuf, op.Out = view(1+next(4), n)
	return op
}

// defects finds races and reads of undefined memory by looking at every position, element and pair of tasks. It knows
// only the definition: reachability over queues and counters.
func defects(f *ir.Flat) bool {
	n := len(f.Tasks)
	before := make([][]bool, n)
	for i := range before {
		before[i] = make([]bool, n)
		for j := range before {
			before[i][j] = i < j && f.Tasks[i].SM >= 0 && f.Tasks[i].SM == f.Tasks[j].SM
			for _, w := range f.Tasks[j].Waits {
				before[i][j] = before[i][j] || f.Tasks[i].Signal == w.Counter
			}
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				before[i][j] = before[i][j] || before[i][k] && before[k][j]
			}
		}
	}
	type touch struct {
		task, buf int
		write     bool
	}
	for pos := f.Lo; pos <= f.Hi; pos++ {
		cells := map[string][]touch{} // in task order; a legal order is not needed to find conflicts
		for t := range f.Tasks {
			var own []ir.Access
			for _, a := range f.Tasks[t].Footprint(own) {
				place := f.Buffers[a.Buf].Name
				if len(f.Buffers[a.Buf].Pages) > 0 {
					place = f.Buffers[a.Buf].Pages[0]
				}
				for _, e := range a.Dims[0].Elements(nil, pos) {
					key := fmt.Sprint(place, e)
					cells[key] = append(cells[key], touch{t, a.Buf, a.Write})
				}
			}
		}
		for key, all := range cells {
			for i, x := range all {
				// A read finds the last write before it: through the same buffer, or initial state.
				last := -1
				for j, y := range all {
					if x.task != y.task && (x.write || y.write) && !before[x.task][y.task] && !before[y.task][x.task] {
						return true
					}
					if y.write && (y.task == x.task && j < i || before[y.task][x.task]) &&
						(last < 0 || before[all[last].task][y.task] || all[last].task == y.task) {
						last = j
					}
				}
				kind := f.Buffers[x.buf].Kind
				var row int
				_, _ = fmt.Sscanf(key, "kv%d", &row)
				initial := kind == ir.Input || kind == ir.KVCache && row < pos
				if !x.write && (last < 0 && !initial || last >= 0 && all[last].buf != x.buf) {
					return true
				}
			}
		}
	}
	return false
}

func TestAgreesWithDefinition(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	memory := map[string]bool{}
	for _, c := range []string{validate.CodeReadRace.ID, validate.CodeWriteRace.ID, validate.CodeOverwriteRace.ID,
		validate.CodeUndefined.ID, validate.CodeClobbered.ID} {
		memory[c] = true
	}
	accepted, rejected := 0, 0
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := randomFlat(r.IntN)
		rep := validate.Flat(f)
		if rep.OK {
			require.False(t, defects(f), "seed %d is accepted", seed)
			accepted++
		} else if memory[rep.Diags[0].Code] {
			require.True(t, defects(f), "seed %d is rejected: %v", seed, rep.Diags)
			rejected++
		}
	}
	require.Greater(t, accepted, 500)
	require.Greater(t, rejected, 2000)
}

// FuzzFlat: whatever the program, there is a verdict.
func FuzzFlat(f *testing.F) {
	f.Add([]byte("a"))
	f.Add([]byte{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6})
	f.Add([]byte{0, 0, 0, 0, 255, 255, 255, 128, 7, 77})
	f.Fuzz(func(t *testing.T, data []byte) {
		defer watch.Execution()()
		at := 0
		next := func(n int) int {
			if at++; at > len(data) {
				return 0
			}
			return int(data[at-1]) % n
		}
		flat := randomFlat(next)
		if flat.Lo >= 0 && validate.Flat(flat).OK {
			require.False(t, defects(flat))
		}
		for range 20 { // then break things, one by one
			breakFlat(flat, next)
			validate.Flat(flat)
			validate.FlatFor(kernel.Backend, flat)
		}
	})
}

// breakFlat sets one field of a program to a number that may be anything.
func breakFlat(f *ir.Flat, next source) {
	odd := []int{0, 1, 2, -1, 7, 1 << 20, -1 << 40, 1 << 60}[next(8)]
	task := &f.Tasks[next(len(f.Tasks))]
	op := &task.Ops[next(len(task.Ops))]
	buf := &f.Buffers[next(len(f.Buffers))]
	switch next(16) {
	case 0:
		task.SM = odd
	case 1:
		task.Signal = odd
	case 2:
		task.Waits = append(task.Waits, ir.FlatWait{Counter: odd, Threshold: next(4)})
	case 3:
		op.Code = ir.Opcode(odd)
	case 4:
		op.Code = ir.Opcode(next(20))
	case 5:
		op.InBuf = append(op.InBuf, odd)
	case 6:
		op.In = append(op.In, ir.Operand{Buf: "%t"})
		op.InBuf = append(op.InBuf, -1)
	case 7:
		buf.Shape = append(buf.Shape[:len(buf.Shape):len(buf.Shape)], odd)
	case 8:
		buf.Kind = ir.BufferKind(next(7))
	case 9:
		buf.Layout = ir.Layout{Kind: ir.LayoutKind(next(7)), Copies: next(3)}
	case 10:
		buf.Space = ir.Space(next(5))
	case 11:
		f.Hi = f.Lo + next(40)
	case 12:
		f.Counters[next(len(f.Counters))] = ir.Counter{Name: "c", Init: odd, How: ir.Realisation(next(4)),
			Scope: ir.Scope(next(4))}
	case 13:
		op.Params = append(op.Params, ir.IntParam([]string{"n_heads", "head_dim", "parts", "splits", "order"}[next(5)],
			ir.Int(odd)))
	case 14:
		if len(op.In) > 0 && len(op.In[0].Dims) > 0 {
			op.In[0].Dims[0] = ir.Share(ir.Int(0), ir.Symbol(ir.Pos).Mul(odd).Max(ir.Int(next(9))), next(3),
				ir.Symbol(ir.Pos).Mod(3), next(4))
		}
	default:
		buf.DType = ir.DType(odd)
	}
}
