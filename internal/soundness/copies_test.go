package soundness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/population"
	"amkc/ir"
	"amkc/simulate"
	"amkc/validate"
)

// explicit returns a program in which every copy of an exchange word that some SM polls is a buffer of its own: what a
// task stored to all copies it stores to each, and what it polls is the copy of its SM.
func explicit(f *ir.Flat) *ir.Flat {
	out := *f
	out.Buffers, out.Pages, out.Tasks = slices.Clone(f.Buffers), slices.Clone(f.Pages), slices.Clone(f.Tasks)
	polled := map[string][]int{} // by place
	place := func(b *ir.Buffer) string {
		if len(b.Pages) > 0 {
			return "page " + b.Pages[0]
		}
		return "buffer " + b.Name
	}
	for i := range f.Tasks {
		for k := range f.Tasks[i].Ops {
			for _, b := range f.Tasks[i].Ops[k].InBuf {
				if b >= 0 && f.Buffers[b].Layout.Copies > 1 {
					at := place(&f.Buffers[b])
					polled[at] = append(polled[at], f.Tasks[i].SM%f.Buffers[b].Layout.Copies)
				}
			}
		}
	}
	for at := range polled {
		slices.Sort(polled[at])
		polled[at] = slices.Compact(polled[at])
	}
	copyOf := map[[2]int]int{} // buffer and copy
	for i := range f.Buffers {
		b := f.Buffers[i]
		if b.Layout.Copies <= 1 {
			continue
		}
		b.Layout.Copies = 0
		out.Buffers[i] = b // whose page remains, for a copy that nobody polls: nobody touches it
		out.Buffers[i].Pages = nil
		kept := polled[place(&f.Buffers[i])]
		if kept == nil {
			kept = []int{0}
		}
		for _, k := range kept {
			own := b
			own.Name = fmt.Sprintf("%s copy %d", b.Name, k)
			if len(b.Pages) > 0 {
				own.Pages = []string{fmt.Sprintf("%s copy %d", b.Pages[0], k)}
				p := slices.IndexFunc(f.Pages, func(p ir.Page) bool { return p.Name == b.Pages[0] })
				page := f.Pages[p]
				page.Name, page.Layout.Copies = own.Pages[0], 0
				if !slices.ContainsFunc(out.Pages, func(p ir.Page) bool { return p.Name == page.Name }) {
					out.Pages = append(out.Pages, page)
				}
			}
			copyOf[[2]int{i, k}] = len(out.Buffers)
			out.Buffers = append(out.Buffers, own)
		}
	}
	for p := range out.Pages {
		out.Pages[p].Layout.Copies = 0
	}
	for i := range out.Tasks {
		t := &out.Tasks[i]
		t.Ops = nil
		for k, op := range f.Tasks[i].Ops {
			op.In, op.Out = slices.Clone(op.In), slices.Clone(op.Out)
			op.InBuf, op.OutBuf = slices.Clone(op.InBuf), slices.Clone(op.OutBuf)
			for j, b := range op.InBuf {
				if b >= 0 && f.Buffers[b].Layout.Copies > 1 {
					op.InBuf[j] = copyOf[[2]int{b, t.SM % f.Buffers[b].Layout.Copies}]
					op.In[j].Buf = out.Buffers[op.InBuf[j]].Name
				}
			}
			var stores []ir.FlatOp
			for j, b := range op.OutBuf {
				if b < 0 || f.Buffers[b].Layout.Copies <= 1 {
					continue
				}
				from := ir.Operand{Buf: fmt.Sprintf("%%copied%d.%d", k, j)}
				for c := range f.Buffers[b].Layout.Copies {
					if n, ok := copyOf[[2]int{b, c}]; ok {
						stores = append(stores, ir.FlatOp{Op: ir.Op{Code: ir.COPY, In: []ir.Operand{from},
							Out: []ir.Operand{{Buf: out.Buffers[n].Name, Dims: op.Out[j].Dims}}},
							InBuf: []int{-1}, OutBuf: []int{n}})
					}
				}
				op.Out[j], op.OutBuf[j] = from, -1
			}
			t.Ops = append(append(t.Ops, op), stores...)
		}
	}
	return &out
}

// A program that keeps exchange words in copies is judged as its explicit form is, which has no copies, by the rules
// and by the oracle. AMKC_LONG compares more of them.
func TestCopiesAreJudgedAsTheirExplicitForm(t *testing.T) {
	seeds := 3000
	if os.Getenv("AMKC_LONG") != "" {
		seeds = 30_000
	}
	fp, effort := simulate.NewFootprints(), spent(Whole)
	accepted, unseen, unsafe := 0, 0, 0
	for seed := range uint64(seeds) {
		c := population.Exchange(seed)
		if c.Flat.Buffers[0].Layout.Copies <= 1 {
			continue
		}
		e := explicit(c.Flat)
		rep, same := validate.Flat(c.Flat), validate.Flat(e)
		require.Equal(t, same.OK, rep.OK, "%s: %v, and explicitly %v", c.Name, rep.Diags, same.Diags)
		if rep.OK {
			accepted++
		} else if rep.Diags.Errors()[0].Code == validate.CodeUnread.ID {
			unseen++
		}
		v, w := simulate.Flat(c.Flat, nil, fp, effort), simulate.Flat(e, nil, fp, effort)
		if v.Explored && w.Explored || v.Unsafe() && w.Unsafe() {
			require.Equal(t, w.Unsafe(), v.Unsafe(), "%s: %v, and explicitly %v", c.Name, v.Hazard, w.Hazard)
		}
		if v.Unsafe() {
			unsafe++
			require.False(t, rep.OK, c.Name)
		}
	}
	t.Logf("%d accepted, %d unsafe, %d refused first for a word that nobody has read", accepted, unsafe, unseen)
	require.Greater(t, accepted, seeds/100)
	require.Greater(t, unseen, seeds/1000)
	require.Greater(t, unsafe, seeds/10)
}

// What the passes make is accepted in both forms, and refused in both where an exchange of which nobody polls some
// copies has them nevertheless.
func TestCopiesOfCompiledPrograms(t *testing.T) {
	files, err := filepath.Glob("../../passes/testdata/exchange/*.out.amk")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	refused := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, more := range []int{0, 2, 4} {
			p, err := ir.Parse(text, file)
			require.NoError(t, err)
			copied := map[ir.LayoutKind]bool{}
			for _, page := range p.Pages {
				copied[page.Layout.Kind] = copied[page.Layout.Kind] || page.Layout.Copies > 1
			}
			for i := range p.Pages {
				if l := &p.Pages[i].Layout; more > 0 && copied[l.Kind] {
					l.Copies = more
				}
			}
			for i := range p.Buffers {
				if l := &p.Buffers[i].Layout; more > 0 && l.Words() && copied[l.Kind] {
					l.Copies = more
				}
			}
			for i := range p.Variants {
				f, diags := ir.Unroll(p, &p.Variants[i])
				require.NoError(t, diags.Err())
				rep, same := validate.Flat(f), validate.Flat(explicit(f))
				require.Equal(t, same.OK, rep.OK, "%s: %v, and explicitly %v", file, rep.Diags, same.Diags)
				require.True(t, rep.OK || more > 0, rep.Diags)
				for _, d := range rep.Diags.Errors() {
					require.Equal(t, validate.CodeUnread.ID, d.Code, d)
				}
				if !rep.OK {
					refused++
				}
			}
		}
	}
	require.Positive(t, refused)
}
