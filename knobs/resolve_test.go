package knobs

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
)

var update = flag.Bool("update", false, "rewrite goldens and generated docs")

func golden(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if string(want) != text {
		t.Errorf("%s is not what the table says; go test ./knobs -update rewrites it", path)
	}
}

func toyTarget() *ir.Target {
	return &ir.Target{Name: "toy", Arch: "sm_90a", SMs: 6, SMemOptin: 232448, BulkCopy: true, AsyncCopy: true,
		TensorCores: true}
}

func toyModel() *ir.Model {
	return &ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: 32, Intermediate: 40, Heads: 4, KVHeads: 2, HeadDim: 8,
		Vocab: 60}
}

func tiling(group, name string, n int) ir.ScheduleConfig {
	return ir.ScheduleConfig{Tiling: map[string]map[string]int{group: {name: n}}}
}

// What Resolve returns states everything, and resolving it again changes nothing.
func TestResolveStatesEveryKnob(t *testing.T) {
	got, diags := Resolve(ir.ScheduleConfig{}, toyModel(), toyTarget(),
		Build{Format: ir.MatrixFormat(toyModel().Weights)})
	require.NoError(t, diags.Err())
	for _, r := range Rows() {
		for _, stage := range r.Each() {
			n, is := r.Stated(&got, stage)
			if require.Equal(t, !r.Rare, is, r.Path(stage)); r.Rare {
				continue
			}
			if r.Rule == nil {
				require.Equal(t, r.Default, n, r.Path(stage))
			}
		}
	}
	require.Equal(t, 3, InFlight.Of(&got))
	require.Equal(t, 232448, SharedBytes.Of(&got))
	require.Equal(t, PagesByColour, PageAllocation.Of(&got))
	require.NotContains(t, got.Tiling["ring"], "in_flight", "an edit of a printed program could contradict itself")
	again, diags := Resolve(got, toyModel(), toyTarget(), Build{Format: ir.MatrixFormat(toyModel().Weights)})
	require.NoError(t, diags.Err())
	require.Equal(t, got, again)
}

// A program that does not state a knob has the default of its row; one that states it, legal or not, has that.
func TestOf(t *testing.T) {
	c := ir.ScheduleConfig{}
	require.Equal(t, 16384, ChunkBytes.Of(&c))
	require.True(t, Roll.Of(&c))
	require.False(t, LayerBarrier.Of(&c))
	require.Equal(t, 8, Warps.Of(&c, "qkv"))
	require.Equal(t, 8, Warps.Of(&c, "no such stage"))
	require.Equal(t, 100, BlockBytes(&c, &ir.Target{SMemOptin: 100}))
	ChunkBytes.Set(&c, 5000)
	Warps.Set(&c, "qkv", 4)
	SharedBytes.Set(&c, 60)
	require.Equal(t, 5000, ChunkBytes.Of(&c))
	require.Equal(t, 4, Warps.Of(&c, "qkv"))
	_, is := Warps.Stated(&c, "o")
	require.False(t, is)
	require.Equal(t, 60, BlockBytes(&c, &ir.Target{SMemOptin: 100}))
	require.Equal(t, 50, BlockBytes(&c, &ir.Target{SMemOptin: 50}))
	alias := tiling("ring", "in_flight", 2)
	require.Equal(t, 2, InFlight.Of(&alias))
}

func TestRefusals(t *testing.T) {
	ring := func(settings map[string]int) ir.ScheduleConfig {
		return ir.ScheduleConfig{Tiling: map[string]map[string]int{"ring": settings}}
	}
	conflict := tiling("ring", "in_flight", 2)
	conflict.PipeliningDepth = 5
	below := tiling("ring", "chunk_bytes", 16384)
	below.SMemBytesPerBlock = 30000
	var b strings.Builder
	for _, c := range []struct {
		name   string
		config ir.ScheduleConfig
	}{
		{"unknown group", tiling("wavefront", "size", 4)},
		{"no name", tiling("", "", 4)},
		{"unknown knob", tiling("ring", "depth", 4)},
		{"unknown knob near another", tiling("ring", "run_ahed", 4)},
		{"unknown stage", tiling("warps", "attn", 4)},
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
		{"smem above the target", ir.ScheduleConfig{SMemBytesPerBlock: 300000}},
		{"smem below the ring", below},
		{"negative smem", ir.ScheduleConfig{SMemBytesPerBlock: -1}},
		{"ring that no block has room for", tiling("ring", "in_flight", 16)},
		{"pages", ir.ScheduleConfig{PageAllocation: "buddy"}},
		{"rotation", tiling("long", "rotation", 6)},
		{"rotation of a stage", tiling("rotation", "lm_head", 6)},
		{"long pace of nothing", ir.ScheduleConfig{Tiling: map[string]map[string]int{
			"long": {"pace": 400, "run_ahead": 0}}}},
		{"long stock of one in flight", ir.ScheduleConfig{Tiling: map[string]map[string]int{"long": {"stock": 4},
			"ring": {"in_flight": 1}}}},
		{"several", ring(map[string]int{"chunk_bytes": 5000, "run_ahead": -1, "pase": 1})},
	} {
		_, diags := Resolve(c.config, toyModel(), toyTarget(), Build{Format: ir.MatrixFormat(toyModel().Weights)})
		require.Error(t, diags.Err(), c.name)
		b.WriteString("== " + c.name + "\n" + diags.Err().Error() + "\n")
		for _, d := range diags {
			require.NotNil(t, diag.Lookup(d.Code), d.Code)
		}
	}
	golden(t, "testdata/refusals.golden", b.String())
}

// What only bulk copies have is refused for a target without them, but for the values that say so.
func TestNoBulkCopies(t *testing.T) {
	plain := toyTarget()
	plain.BulkCopy = false
	for name, n := range map[string]int{"stock": 6, "pace": 900} {
		_, diags := Resolve(tiling("ring", name, n), toyModel(), plain, Build{})
		require.ErrorContains(t, diags.Err(), "toy has no bulk copies", name)
		require.ErrorContains(t, diags.Err(), "tiling.ring."+name)
	}
	_, diags := Resolve(tiling("ring", "pace", Pace.Row().Default), toyModel(), plain, Build{})
	require.NoError(t, diags.Err())
}

// Every row is whole: a legal default, words about it, one name, and a constant that C++ and the JSON form can hold.
func TestRowsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for i := range table {
		r := &table[i]
		require.NotEmpty(t, r.Doc, "row %d", i)
		require.Equal(t, r.Rule != nil || r.Like != nil, r.RuleDoc != "", r.Path(""))
		for _, stage := range r.Each() {
			require.False(t, seen[r.Path(stage)], r.Path(stage))
			seen[r.Path(stage)] = true
		}
		if r.form == nil {
			require.True(t, r.Legal.Has(r.Default), r.Path(""))
		}
		if r.Constant != nil {
			require.Contains(t, []string{"int", "unsigned"}, r.Constant.Type)
		}
		require.Equal(t, r.Legal.Words != nil, r.Field != nil && r.Field.Word != nil, r.Path(""))
	}
}
