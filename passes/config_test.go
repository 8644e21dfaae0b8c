package passes

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

func tiling(group, name string, n int) ir.ScheduleConfig {
	return ir.ScheduleConfig{Tiling: map[string]map[string]int{group: {name: n}}}
}

// A normalised configuration states everything, and normalising it again changes nothing.
func TestNormaliseStatesEveryKnob(t *testing.T) {
	got, err := normalise(ir.ScheduleConfig{}, toyTarget(6))
	require.NoError(t, err)
	for _, k := range knobs {
		require.Equal(t, k.def, got.Tiling[k.group][k.name], "%s.%s", k.group, k.name)
	}
	require.Equal(t, 3, got.PipeliningDepth)
	require.Equal(t, 288, got.ThreadsPerBlock)
	require.Equal(t, 232448, got.SMemBytesPerBlock)
	require.Equal(t, "graph_color", got.PageAllocation)
	require.Equal(t, "load_balance", got.SMAssignment.Policy)
	require.Equal(t, fusionGroups, got.FusionGrouping)
	again, err := normalise(got, toyTarget(6))
	require.NoError(t, err)
	require.Equal(t, got, again)
}

// Every knob shows in the program: in its stages, buffers and pages, or (for what only the emitted code sees) in the
// configuration that it carries.
func TestEveryKnobHasAnEffect(t *testing.T) {
	base := func() *State { return goldenCases(t)["tiny"] }
	print := func(s *State, config bool) string {
		lowered(t, s, "exchange")
		if !config {
			s.Program.Config = ir.ScheduleConfig{}
		}
		return string(ir.Print(s.Program))
	}
	cases := map[string]struct {
		change   func(*State)
		inConfig bool // emitted code reads it from Program.Config
	}{
		"gemv.rows":            {change: func(s *State) { s.Config.Tiling["gemv"] = map[string]int{"rows": 16} }},
		"exchange.flagged":     {change: func(s *State) { s.Config.Tiling["exchange"] = map[string]int{"flagged": 0} }},
		"exchange.copies":      {change: func(s *State) { s.Config.Tiling["exchange"] = map[string]int{"copies": 4} }},
		"attention.split_from": {change: func(s *State) { s.Config.Tiling["attention"]["split_from"] = 16 }},
		"attention.max_splits": {change: func(s *State) { s.Config.Tiling["attention"]["max_splits"] = 2 }},
		"loop.barrier":         {change: func(s *State) { s.Config.Tiling["loop"] = map[string]int{"barrier": 1} }},
		"loop.roll":            {change: func(s *State) { s.Config.Tiling["loop"] = map[string]int{"roll": 0} }},
		"ring.chunk_bytes":     {change: func(s *State) { s.Config.Tiling["ring"] = map[string]int{"chunk_bytes": 4096} }},
		"ring.run_ahead": {change: func(s *State) { s.Config.Tiling["ring"] = map[string]int{"run_ahead": 4} },
			inConfig: true},
		"ring.pace":  {change: func(s *State) { s.Config.Tiling["ring"] = map[string]int{"pace": 0} }, inConfig: true},
		"ring.stock": {change: func(s *State) { s.Config.Tiling["ring"] = map[string]int{"stock": 4} }, inConfig: true},
		"ring.in_flight_stocked": {change: func(s *State) {
			s.Config.Tiling["ring"] = map[string]int{"stock": 6, "in_flight_stocked": 2}
		}, inConfig: true},
		"ring.in_flight": {change: func(s *State) { s.Config.Tiling["ring"] = map[string]int{"in_flight": 2} },
			inConfig: true},
		"warps.qkv": {change: func(s *State) { s.Config.Tiling["warps"] = map[string]int{"qkv": 4} },
			inConfig: true},
		"warps.o": {change: func(s *State) { s.Config.Tiling["warps"] = map[string]int{"o": 4} },
			inConfig: true},
		"warps.gate_up": {change: func(s *State) { s.Config.Tiling["warps"] = map[string]int{"gate_up": 4} },
			inConfig: true},
		"warps.down": {change: func(s *State) { s.Config.Tiling["warps"] = map[string]int{"down": 4} },
			inConfig: true},
		"warps.lm_head": {change: func(s *State) { s.Config.Tiling["warps"] = map[string]int{"lm_head": 4} },
			inConfig: true},
		"pipelining_depth":     {change: func(s *State) { s.Config.PipeliningDepth = 4 }, inConfig: true},
		"smem_bytes_per_block": {change: func(s *State) { s.Config.SMemBytesPerBlock = 100000 }, inConfig: true},
		"page_allocation":      {change: func(s *State) { s.Config.PageAllocation = "none" }},
		"contiguous":           {change: func(s *State) { s.Config.SMAssignment.Policy = "contiguous" }},
		"round_robin":          {change: func(s *State) { s.Config.SMAssignment.Policy = "round_robin" }},
		"explicit": {change: func(s *State) {
			s.Config.SMAssignment.Rotations = map[string]int{"o": 2,
				"down": 2, "embed": 2}
		}},
	}
	for name, c := range cases {
		s := base()
		c.change(s)
		require.NotEqual(t, print(base(), c.inConfig), print(s, c.inConfig), name)
	}
	for _, k := range knobs {
		require.Contains(t, cases, k.group+"."+k.name)
	}
	s := base()
	s.Config.ThreadsPerBlock, s.Config.FusionGrouping = 288, fusionGroups
	require.Equal(t, print(base(), true), print(s, true), "the one accepted value is the default")
}

func TestConfigRefusals(t *testing.T) {
	explicit := func(m map[string]int) ir.ScheduleConfig {
		return ir.ScheduleConfig{SMAssignment: ir.Assignment{Rotations: m}}
	}
	ring := func(knobs map[string]int) ir.ScheduleConfig {
		return ir.ScheduleConfig{Tiling: map[string]map[string]int{"ring": knobs}}
	}
	conflict := tiling("ring", "in_flight", 2)
	conflict.PipeliningDepth = 5
	checkRefusals(t, "testdata/config_refusals.golden", []refusal{
		{"unknown group", tiling("wavefront", "size", 4)},
		{"unknown knob", tiling("ring", "depth", 4)},
		{"chunk not a multiple", tiling("ring", "chunk_bytes", 5000)},
		{"chunk too small", tiling("ring", "chunk_bytes", 1024)},
		{"run_ahead", tiling("ring", "run_ahead", -1)},
		{"pace", tiling("ring", "pace", -1)},
		{"pace out of range, without run-ahead", ring(map[string]int{"run_ahead": 0, "pace": 1 << 20})},
		{"pace without run-ahead", ring(map[string]int{"run_ahead": 0, "pace": 700})},
		{"stock", tiling("ring", "stock", 65)},
		{"in_flight_stocked without a stock", tiling("ring", "in_flight_stocked", 2)},
		{"in_flight_stocked not below in_flight", ring(map[string]int{"stock": 6, "in_flight_stocked": 3})},
		{"stock of one chunk in flight", ring(map[string]int{"stock": 6, "in_flight": 1})},
		{"in_flight_stocked out of range", ring(map[string]int{"stock": 6, "in_flight_stocked": 0})},
		{"in_flight", tiling("ring", "in_flight", 99)},
		{"in_flight and pipelining_depth", conflict},
		{"pipelining_depth", ir.ScheduleConfig{PipeliningDepth: -2}},
		{"flagged", tiling("exchange", "flagged", 2)},
		{"copies", tiling("exchange", "copies", 3)},
		{"split_from", tiling("attention", "split_from", -1)},
		{"max_splits", tiling("attention", "max_splits", 0)},
		{"rows", tiling("gemv", "rows", 12)},
		{"warps", tiling("warps", "o", 3)},
		{"roll", tiling("loop", "roll", 2)},
		{"loop depth", tiling("loop", "depth", 1)},
		{"threads", ir.ScheduleConfig{ThreadsPerBlock: 256}},
		{"smem above the target", ir.ScheduleConfig{SMemBytesPerBlock: 300000}},
		{"smem below the ring", ir.ScheduleConfig{SMemBytesPerBlock: 30000}},
		{"ring that no block has room for", tiling("ring", "in_flight", 16)},
		{"pages", ir.ScheduleConfig{PageAllocation: "buddy"}},
		{"policy", ir.ScheduleConfig{SMAssignment: ir.Assignment{Policy: "random"}}},
		{"policy and map", ir.ScheduleConfig{SMAssignment: ir.Assignment{Policy: "contiguous",
			Rotations: map[string]int{}}}},
		{"task map", explicit(map[string]int{"L00.qkv.s003": 4})},
		{"rotation", explicit(map[string]int{"qkv": 6})},
		{"o apart from down", explicit(map[string]int{"o": 1, "embed": 1})},
		{"o apart from embed", explicit(map[string]int{"o": 1, "down": 1})},
		{"foreign group", ir.ScheduleConfig{FusionGrouping: [][]string{{"qkv", "attn"}}}},
		{"missing group", ir.ScheduleConfig{FusionGrouping: fusionGroups[1:]}},
	}, func(v any) error {
		_, err := normalise(v.(ir.ScheduleConfig), toyTarget(6))
		return err
	})
}

// What only bulk copies have is refused for a target without them, but for the values that say so.
func TestNoBulkCopies(t *testing.T) {
	plain := toyTarget(6)
	plain.BulkCopy = false
	for name, n := range map[string]int{"stock": 6, "pace": 700} {
		_, err := normalise(tiling("ring", name, n), plain)
		require.ErrorContains(t, err, "toy has no bulk copies", name)
		require.ErrorContains(t, err, "tiling.ring."+name)
	}
	_, err := normalise(tiling("ring", "pace", defaultPace), plain)
	require.NoError(t, err)
}

// Groups in another order, and members in another order, mean the same.
func TestFusionOrderDoesNotMatter(t *testing.T) {
	groups := [][]string{fusionGroups[5], fusionGroups[1], {"silu_mul", "up_proj", "gate_proj", "post_norm"},
		fusionGroups[0], fusionGroups[2], fusionGroups[4]}
	got, bad := fusionOf(groups)
	require.Nil(t, bad)
	require.Equal(t, fusionGroups, got)
}
