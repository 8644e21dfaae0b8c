package compiler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/knobs"
)

// A context of two kv heads is split in three ways where a build takes one row in a pass. Programs of a build with
// passes of several rows state the same, by themselves too, as amkc cost and amkc dump make them.
func TestSplitsOfABuild(t *testing.T) {
	bf16 := ir.BF16
	opts := Options{Model: "../testdata/configs/qwen2.5-1.5b", ConfigOnly: true, DType: &bf16, MaxSeq: 16384,
		Target: ir.FindTarget("h200")}
	programOf := func(change func(*Options)) *Scheduled {
		with := opts
		change(&with)
		l, err := RunPasses(with)
		require.NoError(t, err)
		require.NoError(t, l.Close())
		return l
	}
	one := programOf(func(*Options) {}).Program
	require.Len(t, one.Variants, 3)
	require.Equal(t, []int{0, 512, 4096}, []int{one.Variants[0].Lo, one.Variants[1].Lo, one.Variants[2].Lo})
	require.Equal(t, 32, knobs.MaxSplits.Of(&one.Config))

	rows := programOf(func(o *Options) { o.Rows = []int{8} })
	require.Len(t, rows.Program.Variants, 2)
	alone := programOf(func(o *Options) { o.Tokens, o.MostRows = ir.PassOf(1, 8), 8 }).Program
	beside := programOf(func(o *Options) { o.MostRows = 8 }).Program
	require.Equal(t, ir.Print(rows.Passes[0]), ir.Print(alone))
	require.Equal(t, ir.Print(rows.Program), ir.Print(beside))
}
