package compiler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/knobs"
)

// A context of two kv heads is split in three ways where a build takes one row in a pass. Programs of a build with
// passes of several rows state the same, on their own too, as amkc cost and amkc dump make them.
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

	rows := programOf(func(o *Options) { o.Passes = []ir.Pass{{Rows: 8}} })
	require.Len(t, rows.Program.Variants, 2)
	alone := programOf(func(o *Options) { o.Pass = ir.PassOf(1, 8) }).Program
	require.Equal(t, ir.Print(rows.Passes[0]), ir.Print(alone))
}

// Each variant of a step has one in a pass of eight rows, and they end at the same positions, as a launcher demands. By
// default nothing is split where such a pass would not fit from there on; what is stated otherwise is refused.
func TestAPassHasTheVariantsOfAStep(t *testing.T) {
	const rows = 8
	bf16 := ir.BF16
	opts := Options{Model: "../testdata/models/pycoder-5m", ConfigOnly: true, DType: &bf16,
		Target: ir.FindTarget("h200"), Passes: []ir.Pass{{Rows: rows}}}
	for maxSeq, variants := range map[int]int{512: 1, 513: 1, 519: 1, 520: 2, 521: 2} {
		with := opts
		with.MaxSeq = maxSeq
		l, err := RunPasses(with)
		require.NoError(t, err)
		require.NoError(t, l.Close())
		step, pass := l.Program.Variants, l.Passes[0].Variants
		require.Len(t, step, variants, "%d positions", maxSeq)
		require.Len(t, pass, variants, "%d positions", maxSeq)
		for i := range step {
			require.Equal(t, step[i].Hi, pass[i].Hi+rows-1)
		}
	}
	opts.MaxSeq = 1024
	for from, accepted := range map[int]bool{0: true, 1: false, 7: false, 8: true, 1016: true, 1017: false, 1023: false,
		1024: true} {
		with := opts
		knobs.SplitFrom.Set(&with.Config, from)
		l, err := RunPasses(with)
		if accepted {
			require.NoError(t, err, "split_from %d", from)
			require.NoError(t, l.Close())
			continue
		}
		require.ErrorContains(t, err, "a pass of 8 rows does not fit before it or from there on")
	}
}

// Where layers are of three kinds, and variants differ in one of them alone, a branch on the kind before or after that
// stage is for two of the kinds, and says so.
func TestSplitsOfOneKindOfThree(t *testing.T) {
	l := lowerModel(t, "zoo/lfm2-moe", "h200", ir.BF16, 128,
		ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"split_from": 16, "max_splits": 4}}})
	require.Len(t, l.Graph.Kinds, 3)
	require.Len(t, l.Program.Variants, 2)
	readBackOf(t, l.Program)
}

// Where layers are emitted one by one, those without experts keep nothing that a router chooses.
func TestUnrolledLayersWithoutExperts(t *testing.T) {
	l := lowerModel(t, "zoo/qwen3-moe-dense-layer", "h200", ir.BF16, 64,
		ir.ScheduleConfig{Tiling: map[string]map[string]int{"loop": {"roll": 0}}})
	readBackOf(t, l.Program)
}
