package ir

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// mixed is the program of tiny.amk, of whose two layers the second has other sizes.
func mixed(t *testing.T) *Program {
	p, _ := tiny(t)
	first := *p.Model.Of(0)
	second := first
	second.KVHeads, second.Intermediate = 1, 64
	p.Model.SetFacts([]LayerFacts{first, second})
	return p
}

func TestFactsOfLayersInBothForms(t *testing.T) {
	p := mixed(t)
	require.Equal(t, LayerFacts{Intermediate: 96, Heads: 4, KVHeads: 2, HeadDim: 16}, *p.Model.Of(0))
	require.Equal(t, LayerFacts{Intermediate: 64, Heads: 4, KVHeads: 1, HeadDim: 16}, *p.Model.Of(1))
	require.Equal(t, p.Model.Of(1), p.Model.Of(3), "the list repeats")
	require.Empty(t, Check(p))
	text := Print(p)
	require.Contains(t, string(text), "\nfacts intermediate=96 heads=4 kv_heads=2 head_dim=16\n"+
		"facts intermediate=64 heads=4 kv_heads=1 head_dim=16\nlayers kinds 0 1\n")
	again, diags := ParseText(text, "p.amk")
	require.NoError(t, diags.Err())
	require.Equal(t, p.Model, again.Model)
	text, err := p.MarshalJSON()
	require.NoError(t, err)
	again, diags = ParseJSON(text, "p.json")
	require.NoError(t, diags.Err())
	require.Equal(t, p.Model, again.Model)
}

// Layers with experts say so in both forms, and layers without them do not.
func TestFactsOfExpertsInBothForms(t *testing.T) {
	p, plain := tiny(t)
	require.NotContains(t, string(plain), "experts")
	dense := *p.Model.Of(0)
	sparse := dense
	sparse.Intermediate, sparse.Experts, sparse.PerToken = 32, 8, 2
	for text, layers := range map[string][]LayerFacts{
		"intermediate=32 experts=8 per_token=2 heads=4":                    {sparse, sparse},
		"\nfacts intermediate=32 experts=8 per_token=2 heads=4 kv_heads=2": {dense, sparse},
		"\nfacts intermediate=96 heads=4 kv_heads=2 head_dim=16\nlayers k": {sparse, dense},
	} {
		p.Model.SetFacts(layers)
		require.Empty(t, Check(p))
		require.Equal(t, layers[1], *p.Model.Of(1))
		printed := Print(p)
		require.Contains(t, string(printed), text)
		again, diags := ParseText(printed, "p.amk")
		require.NoError(t, diags.Err())
		require.Equal(t, p.Model, again.Model)
		object, err := p.MarshalJSON()
		require.NoError(t, err)
		again, diags = ParseJSON(object, "p.json")
		require.NoError(t, diags.Err())
		require.Equal(t, p.Model, again.Model)
	}
}

func TestFactsThatAreAlikeAreTheModels(t *testing.T) {
	p, text := tiny(t)
	p.Model.SetFacts([]LayerFacts{*p.Model.Of(0), *p.Model.Of(1)})
	require.Empty(t, p.Model.Kinds)
	require.Equal(t, string(text), string(Print(p)))
}

func TestRepeating(t *testing.T) {
	for _, list := range [][]int{{}, {0}, {0, 1}, {0, 1, 1}, {0, 1, 0, 2}, {0, 0, 1, 1}} {
		require.Equal(t, list, Repeating(list))
		for n := range len(list) {
			again := append(append(append([]int{}, list...), list...), list[:n]...)
			require.Equal(t, list, Repeating(again))
		}
	}
	m := mixed(t).Model
	m.Layers, m.LayerKinds = 5, []int{0, 1, 0}
	require.Empty(t, m.FactsAmiss(), "0 1 0 0 1 does not repeat 0 1")
}

func TestCheckOfFacts(t *testing.T) {
	for want, edit := range map[string]func(m *Model){
		"says the kinds of 3":                      func(m *Model) { m.LayerKinds = []int{0, 1, 1} },
		"facts of 0 kinds of layers":               func(m *Model) { m.Kinds = nil },
		"has layer 1 of kind 2":                    func(m *Model) { m.LayerKinds[1] = 2 },
		"the same facts for two kinds":             func(m *Model) { m.Kinds[1] = m.Kinds[0] },
		"has other sizes than its first layer":     func(m *Model) { m.Heads = 8 },
		"kv_heads 16385, want 0 to 16384":          func(m *Model) { m.Kinds[1].KVHeads = 16385 },
		"want the same, and kind 0 for that layer": func(m *Model) { m.LayerKinds = []int{1, 0} },
		"facts of kind 2, which no layer has": func(m *Model) {
			m.Kinds = append(m.Kinds, LayerFacts{Intermediate: 1, Heads: 1, KVHeads: 1, HeadDim: 1})
		},
		"has layer 1 of kind 2, and none of kind 1 before": func(m *Model) {
			m.Kinds = append(m.Kinds, LayerFacts{Intermediate: 1, Heads: 1, KVHeads: 1, HeadDim: 1})
			m.Layers, m.LayerKinds = 3, []int{0, 2, 1}
		},
		"of which the first 2 repeat": func(m *Model) { m.Layers, m.LayerKinds = 3, []int{0, 1, 0} },
		"choose 9 of 8 experts":       func(m *Model) { m.Kinds[1].Experts, m.Kinds[1].PerToken = 8, 9 },
		"choose 0 of 8 experts":       func(m *Model) { m.Kinds[1].Experts = 8 },
		"facts of one kind of layers": func(m *Model) { m.Kinds, m.LayerKinds = m.Kinds[:1], []int{0} },
	} {
		p := mixed(t)
		edit(&p.Model)
		require.ErrorContains(t, Check(p).Err(), want)
	}
}
