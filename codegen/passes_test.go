package codegen

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// A build has programs for passes of several rows that add up sums as that of one row does, over the same weights and
// cache; others are refused.
func TestPassesOfABuild(t *testing.T) {
	const name = "pycoder-5m_h200_bf16"
	one, g := builtProgram(t, name), goldenGraphs(t)[name]
	of := func(edit func(p *ir.Program)) *ir.Program {
		p := builtProgram(t, name+"/rows8")
		if edit != nil {
			edit(p)
		}
		return p
	}
	files, err := Project(one, g, "demo", of(nil))
	require.NoError(t, err)
	require.Contains(t, string(files["Makefile"]), "rows8/megakernel.fatbin: rows8/*.h")
	require.NotContains(t, files, "rows8/model_config.h")
	for says, passes := range map[string][]*ir.Program{
		"one of each size":                         {of(nil), of(nil)},
		"want programs of passes of 2 to 8 tokens": {one},
		"has another tiling.attention.split_from": {of(func(p *ir.Program) {
			p.Config.Tiling["attention"]["split_from"] = 256
		})},
		"has another tiling.warps.down": {of(func(p *ir.Program) { p.Config.Tiling["warps"]["down"] = 4 })},
		"or other facts of the model": {of(func(p *ir.Program) {
			for i := range p.Buffers {
				if p.Buffers[i].Name == "lm_head.weight" { // a layer's weights come first, and lie elsewhere then
					p.Buffers[i], p.Buffers[i+1] = p.Buffers[i+1], p.Buffers[i]
					return
				}
			}
		})},
	} {
		_, err := Project(one, g, "demo", passes...)
		require.ErrorContains(t, err, says)
	}
	facts, err := Facts(one, of(nil))
	require.NoError(t, err)
	require.Equal(t, 8, facts.Passes[0].Rows)
	require.NotEmpty(t, facts.Passes[0].Stages)
	alone, err := Footprint(one)
	require.NoError(t, err)
	both, err := Footprint(one, of(nil))
	require.NoError(t, err)
	require.Greater(t, both.Bytes(), alone.Bytes(), "passes have exchange pages of their own")
}

// The program for passes of several sequences lies in a directory of its own too, and each sequence has a cache.
func TestSequencesOfABuild(t *testing.T) {
	const name = "mistral-nemo_h200_bf16_sequences"
	one, g := builtProgram(t, name), goldenGraphs(t)[name]
	rows, sequences := builtProgram(t, name+"/rows2"), builtProgram(t, name+"/sequences4")
	files, err := Project(one, g, "demo", rows, sequences)
	require.NoError(t, err)
	require.Contains(t, string(files["Makefile"]), "sequences4/megakernel.fatbin: sequences4/*.h")
	require.NotContains(t, files, "sequences4/model_config.h")
	require.Equal(t, "templates/stages.h.tmpl", Origin("sequences4/stages.h"))
	require.Empty(t, Origin("sequences1/stages.h"))
	_, err = Project(one, g, "demo", sequences, sequences)
	require.ErrorContains(t, err, "one of each size")
	facts, err := Facts(one, rows, sequences)
	require.NoError(t, err)
	require.Equal(t, 4, facts.Sequences())
	require.Equal(t, 1, facts.Passes[1].Rows)
	alone, err := Footprint(one, rows)
	require.NoError(t, err)
	all, err := Footprint(one, rows, sequences)
	require.NoError(t, err)
	require.Equal(t, alone.Weights, all.Weights)
	require.Greater(t, all.Bytes(), alone.Bytes())
}
