package knobs

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/kernel"
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
		out, _ := Resolve(c.config, &c.model, &c.target, Build{Format: ir.MatrixFormat(c.model.Weights)})
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
		out, _ := Resolve(ir.ScheduleConfig{}, &glm, ir.FindTarget("l4"), Build{Kept: kernel.Kept{Rows: rows},
			Format: ir.MatrixFormat(glm.Weights)})
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
		out, _ := Resolve(c.config, &c.model, c.target, Build{Format: ir.MatrixFormat(c.model.Weights)})
		require.Equal(t, c.want, ChunkBytes.Of(&out), name)
	}
}

// A chunk holds a tile of int4 whole where it has room for more quads then, and else as few chunks as before have it.
func TestChunksOfWholeTiles(t *testing.T) {
	int4, int8 := &ir.Storage{DType: ir.I4, Scales: ir.Scales{Group: 128, DType: ir.BF16, Zeros: true}},
		&ir.Storage{DType: ir.I8, Scales: ir.Scales{Group: 128, DType: ir.BF16}}
	for name, c := range map[string]struct {
		hidden, headDim int
		storage         *ir.Storage
		want            int
	}{
		"of the usual size":     {2048, 64, int4, 8704},
		"a quarter more":        {4096, 128, int4, 17408},
		"more":                  {5120, 128, int4, 26112},
		"more, with wide heads": {5120, 256, int4, 26112},
		"the most there are":    {6144, 128, int4, 26112},
		"too many":              {6272, 128, int4, 17408},
		"int8":                  {5120, 128, int8, 16640},
	} {
		m := ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: c.hidden, Intermediate: 3 * c.hidden, Heads: 32, KVHeads: 8,
			HeadDim: c.headDim, Vocab: 32000}
		out, _ := Resolve(ir.ScheduleConfig{}, &m, ir.FindTarget("h200"), Build{Format: c.storage.Format()})
		require.Equal(t, c.want, ChunkBytes.Of(&out), name)
	}
}

func TestStreamThatGivesWay(t *testing.T) {
	model := func(hidden, intermediate int) ir.Model {
		return ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: hidden, Intermediate: intermediate, Heads: 16,
			KVHeads: 8, HeadDim: 128,
			Vocab: 151936}
	}
	oneOf := func(m ir.Model, layers, width int) ir.Model { // a layer that is wider than the others
		m.Layers = layers
		all := slices.Repeat(m.Facts(), layers)
		all[layers-1].Intermediate = width
		m.SetFacts(all)
		return m
	}
	experts := func(m ir.Model) ir.Model {
		m.Experts, m.PerToken = 8, 2
		return m
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
		"31 MB, and 63 MB in one of 8": {oneOf(model(1024, 3072), 8, 8192), h200, ir.ScheduleConfig{},
			knobs{"stock": 6, "pace": 700}},
		"31 MB, and 126 MB in one of 2": {oneOf(model(1024, 3072), 2, 18432), h200, ir.ScheduleConfig{}, nil},
		"a router chooses":              {experts(model(512, 512)), h200, ir.ScheduleConfig{}, nil},
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
		out, _ := Resolve(c.config, &c.model, c.target, Build{Format: ir.MatrixFormat(c.model.Weights)})
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
		out, diags := Resolve(c.config, &c.model, c.target, Build{Format: ir.MatrixFormat(c.model.Weights)})
		require.NoError(t, diags.Err(), name)
		require.Equal(t, c.want, InFlight.Of(&out), name)
	}
}

// Resolve works on a copy.
func TestResolveLeavesItsArgumentAlone(t *testing.T) {
	c := tiling("warps", "o", 4)
	m := ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: 1024, Intermediate: 3072, Heads: 16, KVHeads: 8,
		HeadDim: 1024, Vocab: 151936}
	out, diags := Resolve(c, &m, nil, Build{Format: ir.MatrixFormat(m.Weights)})
	require.NoError(t, diags.Err())
	require.Equal(t, 65536, ChunkBytes.Of(&out))
	require.Equal(t, tiling("warps", "o", 4), c)
}

// Contexts are split in more the longer they are: from the position on at which one of few splits reads 128 KiB, or
// more where there is more to join. What a configuration says of one knob leaves the others as they are.
func TestSplitsOfContext(t *testing.T) {
	type splits struct{ most, middle, until int }
	model := func(heads, kv, hd, seq int) ir.Model {
		return ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: heads * hd, Intermediate: 4096, Heads: heads, KVHeads: kv,
			HeadDim: hd, Vocab: 128256, Layers: 16, MaxSeq: seq}
	}
	attention := func(knobs ...any) ir.ScheduleConfig {
		group := map[string]int{}
		for i := 0; i < len(knobs); i += 2 {
			group[knobs[i].(string)] = knobs[i+1].(int)
		}
		return ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": group}}
	}
	int8Cache := model(16, 8, 128, 8448)
	int8Cache.Cache = ir.I8
	long := model(12, 2, 128, 32768)
	for name, c := range map[string]struct {
		model  ir.Model
		config ir.ScheduleConfig
		build  Build
		want   splits
	}{
		"Qwen3-0.6B, short":     {model(16, 8, 128, 2048), ir.ScheduleConfig{}, Build{}, splits{8, 0, 0}},
		"a few positions more":  {model(16, 8, 128, 2303), ir.ScheduleConfig{}, Build{}, splits{8, 0, 0}},
		"enough for a pass":     {model(16, 8, 128, 2304), ir.ScheduleConfig{}, Build{}, splits{16, 8, 2048}},
		"Qwen3-0.6B":            {model(16, 8, 128, 8448), ir.ScheduleConfig{}, Build{}, splits{16, 8, 2048}},
		"an int8 cache":         {int8Cache, ir.ScheduleConfig{}, Build{}, splits{16, 8, 2048}},
		"Llama-3.2-1B":          {model(32, 8, 64, 8448), ir.ScheduleConfig{}, Build{}, splits{16, 8, 4096}},
		"Llama-3.2-3B":          {model(24, 8, 128, 8448), ir.ScheduleConfig{}, Build{}, splits{16, 8, 3072}},
		"Llama-3.1-70B":         {model(64, 8, 128, 8448), ir.ScheduleConfig{}, Build{}, splits{16, 8, 4096}},
		"Qwen2.5-1.5B":          {long, ir.ScheduleConfig{}, Build{}, splits{32, 16, 4096}},
		"Qwen2.5-1.5B, short":   {model(12, 2, 128, 4096), ir.ScheduleConfig{}, Build{}, splits{16, 0, 0}},
		"Qwen2.5-7B":            {model(28, 4, 128, 32768), ir.ScheduleConfig{}, Build{}, splits{32, 16, 7168}},
		"few elements in heads": {model(16, 8, 16, 65536), ir.ScheduleConfig{}, Build{}, splits{16, 8, 4096}},
		"the same, few heads":   {model(4, 2, 16, 65536), ir.ScheduleConfig{}, Build{}, splits{32, 16, 8192}},
		"fewer with rows": {long, attention("middle_splits", 8), Build{Most: ir.Pass{Rows: 8}},
			splits{16, 8, 4096}},
		"fewer with windows": {long, attention("middle_splits", 8), Build{Windows: true}, splits{16, 8, 4096}},
		"fewer of ten kv heads": {model(40, 10, 64, 8448), attention("middle_splits", 4), Build{},
			splits{16, 4, 4096}},
		"SmolLM2-135M":             {model(9, 3, 64, 8192), ir.ScheduleConfig{}, Build{}, splits{16, 0, 0}},
		"ten kv heads":             {model(40, 10, 128, 8448), ir.ScheduleConfig{}, Build{}, splits{16, 0, 0}},
		"windows":                  {long, ir.ScheduleConfig{}, Build{Windows: true}, splits{16, 0, 0}},
		"rows":                     {long, ir.ScheduleConfig{}, Build{Most: ir.Pass{Rows: 2}}, splits{16, 0, 0}},
		"sequences":                {long, ir.ScheduleConfig{}, Build{Most: ir.Pass{Sequences: 4}}, splits{16, 0, 0}},
		"more splits":              {long, attention("max_splits", 64), Build{}, splits{64, 16, 4096}},
		"as many as in the middle": {long, attention("max_splits", 16), Build{}, splits{16, 0, 0}},
		"none in the middle":       {long, attention("middle_splits", 0), Build{}, splits{32, 0, 0}},
		"others in the middle":     {long, attention("middle_splits", 24), Build{}, splits{32, 24, 4096}},
		"an end of the middle":     {long, attention("middle_until", 9216), Build{}, splits{32, 16, 9216}},
		"no end of the middle":     {long, attention("middle_until", 0), Build{}, splits{32, 0, 0}},
		"a cold start": {long, attention("max_splits", 1, "middle_splits", 0, "middle_until", 0), Build{},
			splits{1, 0, 0}},
		"no room for the middle":   {long, attention("split_from", 4000), Build{}, splits{32, 0, 0}},
		"split from the beginning": {long, attention("split_from", 0), Build{}, splits{32, 0, 0}},
	} {
		c.build.Format = ir.MatrixFormat(c.model.Weights)
		out, diags := Resolve(c.config, &c.model, ir.FindTarget("h200"), c.build)
		require.NoError(t, diags.Err(), name)
		require.Equal(t, c.want, splits{MaxSplits.Of(&out), MiddleSplits.Of(&out), MiddleUntil.Of(&out)}, name)
		again, diags := Resolve(out, &c.model, ir.FindTarget("h200"), c.build)
		require.NoError(t, diags.Err(), name)
		require.Equal(t, out, again, name)
	}
	for sms, want := range map[int]int{60: 0, 127: 0, 128: 16} { // for 15, 31 and 32 splits of four heads
		out, diags := Resolve(ir.ScheduleConfig{}, new(model(28, 4, 128, 32768)), ir.ArchTarget(90, sms), Build{})
		require.NoError(t, diags.Err())
		require.Equal(t, want, MiddleSplits.Of(&out), sms)
		require.Equal(t, max(16, 2*want), MaxSplits.Of(&out), sms)
	}
}

// A build with passes of several sequences has one variant, in which each SM has at most one split of those that a pass
// takes, unless the configuration says otherwise.
func TestSplitsOfSequences(t *testing.T) {
	llama := ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: 4096, Intermediate: 14336, Heads: 32, KVHeads: 8,
		HeadDim: 128, Vocab: 128256, Layers: 32}
	for sequences, want := range map[int][2]int{0: {512, 8}, 1: {512, 8}, 2: {0, 8}, 8: {0, 2}, 64: {0, 1}} {
		out, diags := Resolve(ir.ScheduleConfig{}, &llama, ir.FindTarget("h200"),
			Build{Format: ir.MatrixFormat(llama.Weights), Most: ir.PassOf(sequences, 1)})
		require.NoError(t, diags.Err())
		require.Equal(t, want, [2]int{SplitFrom.Of(&out), MaxSplits.Of(&out)}, sequences)
	}
	out, _ := Resolve(tiling("attention", "max_splits", 5), &llama, nil, Build{Most: ir.Pass{Sequences: 8}})
	require.Equal(t, [2]int{0, 5}, [2]int{SplitFrom.Of(&out), MaxSplits.Of(&out)})
}
