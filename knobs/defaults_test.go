package knobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

func TestWarpsOfShortRows(t *testing.T) {
	model := func(hidden, intermediate int) ir.Model {
		return ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: hidden, Intermediate: intermediate, Heads: 16,
			KVHeads: 8, HeadDim: 128,
			Vocab: 151936}
	}
	h200, t4 := ir.Targets[0], ir.Targets[0]
	for _, target := range ir.Targets {
		switch target.Name {
		case "h200":
			h200 = target
		case "t4":
			t4 = target
		}
	}
	fp32 := model(1024, 3072)
	fp32.DTypes = ir.Uniform(ir.F32)
	all4 := map[string]int{"qkv": 4, "gate_up": 4, "lm_head": 4}
	for name, c := range map[string]struct {
		model  ir.Model
		target ir.Target
		config ir.ScheduleConfig
		want   map[string]int
	}{
		"a quad a warp":          {model(1024, 3072), h200, ir.ScheduleConfig{}, all4},
		"half of the warps idle": {model(512, 3072), h200, ir.ScheduleConfig{}, all4},
		"two quads per warp":     {model(2048, 8192), h200, ir.ScheduleConfig{}, nil},
		"five quads":             {model(576, 1536), h200, ir.ScheduleConfig{}, nil},
		"few tiles of gate_up": {model(1024, 512), h200, ir.ScheduleConfig{},
			map[string]int{"qkv": 4, "lm_head": 4}},
		"no tensor cores":         {model(1024, 3072), t4, ir.ScheduleConfig{}, nil},
		"fp32":                    {fp32, h200, ir.ScheduleConfig{}, nil},
		"a ring that has no room": {model(1024, 3072), h200, ir.ScheduleConfig{PipeliningDepth: 12}, nil},
		"the user has decided": {model(1024, 3072), h200, tiling("warps", "gate_up", 8),
			map[string]int{"qkv": 4, "gate_up": 8, "lm_head": 4}},
	} {
		out, _ := Resolve(c.config, &c.model, &c.target, ir.Kept{}, ir.MatrixFormat(c.model.Weights), 1)
		for _, stage := range Warps.Row().Stages {
			want, short := c.want[stage]
			if !short {
				want = 8
			}
			require.Equal(t, want, Warps.Of(&out, stage), "%s: %s", name, stage)
		}
	}
}

// A residual that every SM has all of takes its room from the ring.
func TestChunksBesideAWholeResidual(t *testing.T) {
	glm := ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: 6144, Intermediate: 23040, Heads: 48, KVHeads: 2, HeadDim: 128,
		Vocab: 151552}
	for rows, want := range map[int]int{0: 16384, glm.Hidden: 12288} {
		out, _ := Resolve(ir.ScheduleConfig{}, &glm, ir.FindTarget("l4"), ir.Kept{Rows: rows},
			ir.MatrixFormat(glm.Weights), 1)
		require.Equal(t, want, ChunkBytes.Of(&out))
	}
}

func TestChunksThatFit(t *testing.T) {
	model := func(hidden, intermediate, headDim int) ir.Model {
		return ir.Model{DTypes: ir.Uniform(ir.F16), Hidden: hidden, Intermediate: intermediate, Heads: 16, KVHeads: 8,
			HeadDim: headDim, Vocab: 32000}
	}
	integers := func(headDim int) ir.Model {
		m := model(1024, 3072, headDim)
		m.Cache = ir.I8
		return m
	}
	t4, h200 := ir.FindTarget("t4"), ir.FindTarget("h200")
	for name, c := range map[string]struct {
		model  ir.Model
		target *ir.Target
		config ir.ScheduleConfig
		want   int
	}{
		"4 blocks of integers":      {integers(128), h200, ir.ScheduleConfig{}, 16640},
		"8 blocks of integers":      {integers(64), h200, ir.ScheduleConfig{}, 16896},
		"no room for even blocks":   {integers(128), t4, ir.ScheduleConfig{}, 8192},
		"room enough":               {model(1024, 3072, 128), h200, ir.ScheduleConfig{}, 16384},
		"a small block":             {model(1024, 3072, 128), t4, ir.ScheduleConfig{}, 8192},
		"a smaller one":             {model(1024, 7168, 64), t4, ir.ScheduleConfig{}, 4096},
		"rows of the cache forbid":  {model(1024, 7168, 128), t4, ir.ScheduleConfig{}, 8192},
		"room for a compact one":    {model(4096, 11008, 64), t4, ir.ScheduleConfig{}, 8192},
		"nothing fits":              {model(1024, 30000, 64), t4, ir.ScheduleConfig{}, 4096},
		"the user's block is small": {model(512, 1024, 64), h200, ir.ScheduleConfig{SMemBytesPerBlock: 49152}, 8192},
		"the user has decided":      {model(1024, 3072, 128), t4, tiling("ring", "chunk_bytes", 16384), 16384},
		"no target":                 {model(1024, 3072, 128), nil, ir.ScheduleConfig{}, 16384},
		"wide heads":                {model(1024, 3072, 1024), h200, ir.ScheduleConfig{}, 65536},
	} {
		out, _ := Resolve(c.config, &c.model, c.target, ir.Kept{}, ir.MatrixFormat(c.model.Weights), 1)
		require.Equal(t, c.want, ChunkBytes.Of(&out), name)
	}
}

func TestStreamThatGivesWay(t *testing.T) {
	model := func(hidden, intermediate int) ir.Model {
		return ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: hidden, Intermediate: intermediate, Heads: 16,
			KVHeads: 8, HeadDim: 128,
			Vocab: 151936}
	}
	given := func(settings map[string]int) ir.ScheduleConfig {
		return ir.ScheduleConfig{Tiling: map[string]map[string]int{"ring": settings}}
	}
	type knobs = map[string]int
	h200, rtx5090, t4 := ir.FindTarget("h200"), ir.FindTarget("rtx5090"), ir.FindTarget("t4")
	for name, c := range map[string]struct {
		model  ir.Model
		target *ir.Target
		config ir.ScheduleConfig
		want   knobs
	}{
		"a layer of 31 MB":  {model(1024, 3072), h200, ir.ScheduleConfig{}, knobs{"stock": 6, "pace": 700}},
		"a layer of 126 MB": {model(2048, 8192), h200, ir.ScheduleConfig{}, nil},
		"half of what is there": {model(1024, 3072), h200, given(knobs{"chunk_bytes": 8192}),
			knobs{"chunk_bytes": 8192, "stock": 12, "pace": 700}},
		"no run-ahead": {model(1024, 3072), h200, given(knobs{"run_ahead": 0}),
			knobs{"run_ahead": 0, "stock": 6}},
		"one in flight anyway":       {model(1024, 3072), h200, given(knobs{"in_flight": 1}), knobs{"in_flight": 1}},
		"a stream that takes longer": {model(1024, 3072), rtx5090, ir.ScheduleConfig{}, nil},
		"a ring of few slots":        {model(512, 1024), rtx5090, ir.ScheduleConfig{}, nil},
		"no bulk copies": {model(512, 1024), t4, given(knobs{"chunk_bytes": 4096}),
			knobs{"chunk_bytes": 4096}},
		"no bandwidth known":  {model(1024, 3072), ir.ArchTarget(90, 132), ir.ScheduleConfig{}, nil},
		"the user wants none": {model(1024, 3072), h200, given(knobs{"stock": 0}), knobs{"stock": 0}},
		"a stock by the user": {model(2048, 8192), h200, given(knobs{"stock": 4}), knobs{"stock": 4, "pace": 700}},
		"a pace by the user":  {model(1024, 3072), h200, given(knobs{"pace": 0}), knobs{"stock": 6, "pace": 0}},
	} {
		out, _ := Resolve(c.config, &c.model, c.target, ir.Kept{}, ir.MatrixFormat(c.model.Weights), 1)
		for _, k := range []Int{Stock, Pace} {
			want, stated := c.want[k.Row().Name]
			if !stated {
				want = k.Row().Default
			}
			require.Equal(t, want, k.Of(&out), "%s: %s", name, k.Row().Name)
		}
	}
}

func TestChunksInFlight(t *testing.T) {
	model := func(hidden, intermediate int) ir.Model {
		return ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: hidden, Intermediate: intermediate, Heads: 32,
			KVHeads: 8, HeadDim: 128, Vocab: 128256}
	}
	large := model(4096, 14336)
	for name, c := range map[string]struct {
		model  ir.Model
		target *ir.Target
		config ir.ScheduleConfig
		want   int
	}{
		"a layer of 436 MB":        {large, ir.FindTarget("h200"), ir.ScheduleConfig{}, 4},
		"a layer of 142 MB":        {model(2048, 8192), ir.FindTarget("h200"), ir.ScheduleConfig{}, 3},
		"less bandwidth":           {large, ir.FindTarget("h100"), ir.ScheduleConfig{}, 3},
		"more of it":               {large, ir.FindTarget("b200"), ir.ScheduleConfig{}, 5},
		"smaller chunks":           {large, ir.FindTarget("h200"), tiling("ring", "chunk_bytes", 8192), 7},
		"as many as are legal":     {large, ir.FindTarget("b200"), tiling("ring", "chunk_bytes", 4096), 16},
		"no bulk copies":           {large, ir.FindTarget("a100"), ir.ScheduleConfig{}, 3},
		"no bandwidth known":       {large, ir.ArchTarget(90, 132), ir.ScheduleConfig{}, 3},
		"no target":                {large, nil, ir.ScheduleConfig{}, 3},
		"the user has decided":     {large, ir.FindTarget("h200"), ir.ScheduleConfig{PipeliningDepth: 2}, 2},
		"a ring of few long slots": {large, ir.FindTarget("h200"), tiling("ring", "chunk_bytes", 32768), 3},
	} {
		out, diags := Resolve(c.config, &c.model, c.target, ir.Kept{}, ir.MatrixFormat(c.model.Weights), 1)
		require.NoError(t, diags.Err(), name)
		require.Equal(t, c.want, InFlight.Of(&out), name)
	}
}

// Resolve works on a copy.
func TestResolveLeavesItsArgumentAlone(t *testing.T) {
	c := tiling("warps", "o", 4)
	m := ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: 1024, Intermediate: 3072, Heads: 16, KVHeads: 8,
		HeadDim: 1024, Vocab: 151936}
	out, diags := Resolve(c, &m, nil, ir.Kept{}, ir.MatrixFormat(m.Weights), 1)
	require.NoError(t, diags.Err())
	require.Equal(t, 65536, ChunkBytes.Of(&out))
	require.Equal(t, tiling("warps", "o", 4), c)
}

// A build with passes of several sequences has one variant, in which each SM has at most one split of those that a pass
// takes, unless the configuration says otherwise.
func TestSplitsOfSequences(t *testing.T) {
	llama := ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: 4096, Intermediate: 14336, Heads: 32, KVHeads: 8,
		HeadDim: 128, Vocab: 128256, Layers: 32}
	for sequences, want := range map[int][2]int{0: {512, 16}, 1: {512, 16}, 2: {0, 8}, 8: {0, 2}, 64: {0, 1}} {
		out, diags := Resolve(ir.ScheduleConfig{}, &llama, ir.FindTarget("h200"), ir.Kept{},
			ir.MatrixFormat(llama.Weights), sequences)
		require.NoError(t, diags.Err())
		require.Equal(t, want, [2]int{SplitFrom.Of(&out), MaxSplits.Of(&out)}, sequences)
	}
	out, _ := Resolve(tiling("attention", "max_splits", 5), &llama, nil, ir.Kept{}, nil, 8)
	require.Equal(t, [2]int{0, 5}, [2]int{SplitFrom.Of(&out), MaxSplits.Of(&out)})
}
