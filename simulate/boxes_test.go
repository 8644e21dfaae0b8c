package simulate

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/ir"
	"amkc/refvm"
)

// realFlats unrolls the programs of small models, in every form.
func realFlats(t *testing.T) []*ir.Flat {
	var out []*ir.Flat
	for _, pattern := range []string{"../testdata/ir/tiny.amk", "../testdata/golden/*/schedule.amk",
		"../passes/testdata/tokens/pagecolor.amk"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, names)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			p, err := ir.Load(text, name)
			require.NoError(t, err)
			for v := range p.Variants {
				f, diags := ir.Unroll(p, &p.Variants[v])
				require.NoError(t, diags.Err())
				out = append(out, f)
			}
		}
	}
	names, err := filepath.Glob("../testdata/amk_ir/*/program.json")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		p, diags := interchange.Parse(text, name)
		require.Empty(t, diags.Errors())
		f, diags := p.Flatten()
		require.Empty(t, diags.Errors())
		out = append(out, f)
	}
	return out
}

// A task touches on its part of a buffer what it touches of the whole one.
func TestBoxesChangeNothing(t *testing.T) {
	fp, tasks, smaller := NewFootprints(), 0, 0
	for _, f := range realFlats(t) {
		for i := 0; i < len(f.Tasks); i += 1 + len(f.Tasks)/20 {
			task := &f.Tasks[i]
			for _, pos := range []int{f.Lo, (f.Lo + f.Hi) / 2, f.Hi} {
				at := Run{Flat: f, Pos: pos}.at()
				fp.describe(f, task, at, pos, pos)
				boxes, err := fp.boxesOf(f, task, at, pos)
				require.NoError(t, err)
				whole := make([]box, len(boxes))
				for k := range boxes {
					shape := boxes[k].whole
					whole[k] = box{lo: make([]int, len(shape)), hi: slices.Clone(shape), whole: shape}
					if !slices.Equal(boxes[k].shape(), shape) {
						smaller++
					}
				}
				want, err := fp.runOn(whole, f, task, at, pos, pos)
				require.NoError(t, err)
				got, err := fp.runOn(boxes, f, task, at, pos, pos)
				require.NoError(t, err)
				require.Equal(t, want, got, "%s of %s at %d", task.Name, f.Name, pos)
				tasks++
			}
		}
	}
	t.Log(tasks, "tasks,", smaller, "buffers in part")
	require.Greater(t, smaller, tasks)
}

// Elements of a box are those of its buffer, in stretches that are side by side there too.
func TestTouchesOfBoxes(t *testing.T) {
	b := box{lo: []int{1, 2, 0}, hi: []int{3, 4, 5}, whole: []int{4, 6, 5}}
	require.Equal(t, []int{2, 2, 5}, b.shape())
	var got [][2]int
	for _, touch := range b.back(nil, refvm.Touch{Lo: 3, N: 14}) {
		got = append(got, [2]int{touch.Lo, touch.N})
	}
	require.Equal(t, [][2]int{{43, 7}, {70, 7}}, got)
}

// Rows of a cache below the position are there before the first step, and so are their scales, which are after all
// elements; of several sequences each has a position of its own.
func TestInitialRows(t *testing.T) {
	for _, c := range []struct {
		dtype     ir.DType
		shape     []int
		positions []int
	}{
		{ir.F16, []int{3, 8, 2, 4}, []int{5}},
		{ir.I8, []int{3, 8, 2, 4}, []int{5}},
		{ir.I8, []int{2, 3, 8, 2, 4}, []int{5, 1}},
		{ir.I8, []int{2, 3, 8, 2, 4}, []int{0, 8}},
	} {
		b := &ir.Buffer{Kind: ir.KVCache, DType: c.dtype, Shape: c.shape, Layout: ir.Layout{Kind: ir.KVBlock16}}
		rows, row := b.Numel()/8, 0
		for s, pos := range c.positions {
			for r := range rows / len(c.positions) {
				there := r%8 < pos
				require.Equal(t, there, initial(b, row*8*c.dtype.Bits()/8, c.positions), "row %d of sequence %d", r, s)
				if c.dtype == ir.I8 {
					require.True(t, b.ScaledRows())
					scale := b.Numel() + 2*row + 1
					require.Equal(t, there, initial(b, scale, c.positions), "scale of row %d of sequence %d", r, s)
				}
				row++
			}
		}
	}
}
