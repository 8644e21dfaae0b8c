package passes

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers"
	"amkc/importers/modeltest"
	"amkc/ir"
)

func TestWeightFormats(t *testing.T) {
	for spec, want := range map[string]string{
		"int8":                          "int8:g128:sym",
		"int4":                          "int4:g64:asym",
		"int4:sym":                      "int4:g64:sym",
		"int4:g128":                     "int4:g128:asym",
		"int4:g128:asym":                "int4:g128:asym",
		"int8:asym:g32":                 "int8:g32:asym",
		"fp8":                           "fp8",
		"none":                          "none",
		"bf16":                          "bf16",
		"model.layers.*.mlp.*=int4:g32": "int4:g32:asym",
	} {
		f, err := ParseWeightFormats(spec)
		require.NoError(t, err)
		require.Len(t, f, 1)
		require.Equal(t, want, f[0].describe())
		require.Equal(t, spec, f.String())
	}
	f, err := ParseWeightFormats("lm_head=int8,int4,q_proj=none")
	require.NoError(t, err)
	require.Equal(t, "int4,lm_head=int8,q_proj=none", f.String(), "a default comes first")
	for spec, want := range map[string]string{
		"":                `"" is not a format; want int8`,
		"int4,":           `"" is not a format; want int8`,
		"int5":            `"int5" is not a format; want int8, int4, fp8 or none`,
		"I4":              `"I4" is not a format`,
		"int4:g16":        `"g16" is not an option; want int8`,
		"int4:64":         `"64" is not an option; want int8`,
		"int4:":           `"" is not an option; want int8`,
		"int4:signed":     `"signed" is not an option; want int8`,
		"fp8:g128":        `"g128" is not an option of fp8, which has none`,
		"bf16:sym":        `"sym" is not an option of bf16, which has none`,
		"=int4":           `"" is not a pattern of names; want a role`,
		"[=int4":          `"[" is not a pattern of names; want a role`,
		"q_proj=":         `"" is not a format; want int8`,
		"q_proj=\u202e":   "want items of up to",
		"int4 ,down=int8": "want items of up to",
	} {
		_, err := ParseWeightFormats(spec)
		require.ErrorContains(t, err, want, spec)
	}
}

// The words are all formats, and no two of them are the same.
func TestWeightFormatWords(t *testing.T) {
	formats := map[string]string{}
	for _, word := range WeightFormatWords() {
		f, err := ParseWeightFormats(word)
		require.NoError(t, err)
		in := f[0].describe()
		require.Empty(t, formats[in], "%s is %s too", word, in)
		require.LessOrEqual(t, len(word), len(in))
		formats[in] = word
	}
	require.Len(t, formats, 2*len(groups)*2+2)
	require.Equal(t, "int4", formats["int4:g64:asym"])
	require.Equal(t, "int4:g128:sym", formats["int4:g128:sym"])
	require.Equal(t, "int8", formats["int8:g128:sym"])
}

const quantisedConfig = `{"model_type": "llama", "hidden_size": 256, "intermediate_size": 320, "num_hidden_layers": 3,
	"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24, "vocab_size": 600, "torch_dtype": "bfloat16"`

// quantiseModel imports a model and gives its matrices formats.
func quantiseModel(t testing.TB, config, spec string) (*ir.Graph, error) {
	s := &State{Source: importers.Source{Name: "m", Config: modeltest.OpenConfig(t, config)}}
	require.NoError(t, Import.Run(s))
	var err error
	s.Formats, err = ParseWeightFormats(spec)
	require.NoError(t, err)
	err = Quantise.Run(s)
	return s.Graph, err
}

// storages are the formats of all matrices, by role.
func storages(g *ir.Graph) map[string]string {
	out := map[string]string{}
	for _, nodes := range [][]ir.GraphNode{g.Before, g.Kinds[0].Nodes, g.After} {
		for _, n := range nodes {
			for _, w := range n.Weights {
				switch {
				case w.Storage != nil:
					out[n.Name] = w.Storage.DType.String() + " " + w.Storage.Layout().String()
				case len(w.Shape) == 2:
					out[n.Name] = "plain"
				}
			}
		}
	}
	return out
}

// A default leaves head and embedding at 8 bits, and o at 16: its 96 columns are less than a block.
func TestQuantise(t *testing.T) {
	const int8, int4 = "I8 tile8x128.g128.BF16", "I4 tile8x128.g64.BF16.zeros"
	roles := func(all string, others map[string]string) map[string]string {
		out := map[string]string{"o_proj": "plain"}
		for _, role := range []string{"embed", "q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "down_proj",
			"lm_head"} {
			out[role] = all
		}
		for role, format := range others {
			out[role] = format
		}
		return out
	}
	untied, tied := quantisedConfig+`, "tie_word_embeddings": false}`, quantisedConfig+`, "tie_word_embeddings": true}`
	for _, c := range []struct {
		config, spec string
		want         map[string]string
	}{
		{untied, "int8", roles(int8, nil)},
		{untied, "none", roles("plain", nil)},
		{untied, "bf16", roles("plain", nil)},
		{untied, "fp8", roles("F8E4M3 tile8x128.g128.BF16", nil)},
		{untied, "int4", roles(int4, map[string]string{"embed": int8, "lm_head": int8})},
		{untied, "*=int4", roles(int4, nil)},
		{tied, "int4", roles(int4, map[string]string{"embed": int8, "lm_head": int8})},
		{tied, "int4,lm_head=none", roles(int4, map[string]string{"embed": "plain", "lm_head": "plain"})},
		{tied, "lm_head=int8:g32:asym", roles("plain", map[string]string{"embed": "I8 tile8x128.g32.BF16.zeros",
			"lm_head": "I8 tile8x128.g32.BF16.zeros"})},
		{untied, "int4,embed=none,model.layers.*.mlp.down_proj=int8", roles(int4, map[string]string{"embed": "plain",
			"down_proj": int8, "lm_head": int8})},
		{untied, "[gu]*_proj=int4,model.layers.?.mlp.down_proj.weight=int8,*.down_proj=int4",
			roles("plain", map[string]string{"gate_proj": int4, "up_proj": int4, "down_proj": int4})},
	} {
		g, err := quantiseModel(t, c.config, c.spec)
		require.NoError(t, err, c.spec)
		require.Equal(t, c.want, storages(g), c.spec)
	}
}

func TestQuantiseRefusals(t *testing.T) {
	var refusals []modeltest.Refusal
	for _, spec := range []string{"int4,q_proj=int8", "int4,up_proj=int4:g32", "int4,layers.1.*.up_proj=int8",
		"int4,embeddings=int8", "int8,lm_head=fp16"} {
		refusals = append(refusals, modeltest.Refusal{Name: spec, Input: spec})
	}
	modeltest.CheckRefusals(t, "testdata/quantise_refusals.golden", refusals, func(spec any) error {
		_, err := quantiseModel(t, quantisedConfig+"}", spec.(string))
		return err
	})
}

// Layers whose matrices are stored differently are of several kinds, as many as there are sets of formats.
func TestKindsByStorage(t *testing.T) {
	config := strings.Replace(quantisedConfig, `"num_hidden_layers": 3`, `"num_hidden_layers": 12`, 1) + "}"
	for spec, want := range map[string][]string{
		"int4":                   {"[0 1 2 3 4 5 6 7 8 9 10 11] I4 I4"},
		"int4,layers.*.*=int4":   {"[0 1 2 3 4 5 6 7 8 9 10 11] I4 I4"},
		"int4,layers.0.*=none":   {"[0] plain plain", "[1 2 3 4 5 6 7 8 9 10 11] I4 I4"},
		"int4,*.layers.1.*=int8": {"[0 2 3 4 5 6 7 8 9 10 11] I4 I4", "[1] I8 I8"}, // 1, and not 10 or 11
		"int8,layers.?.mlp.down_proj=int4,layers.1?.mlp.*=none": {"[0 1 2 3 4 5 6 7 8 9] I8 I4",
			"[10 11] plain plain"},
		"int4,layers.[02468].*=int8": {"[0 2 4 6 8] I8 I8", "[1 3 5 7 9 10 11] I4 I4"},
		"layers.0.*.o_proj=int8":     {"[0 1 2 3 4 5 6 7 8 9 10 11] plain plain"}, // too narrow to be quantised
	} {
		g, err := quantiseModel(t, config, spec)
		require.NoError(t, err, spec)
		require.Equal(t, want, modeltest.StoredKinds(g), spec)
	}
}

// There is a bound to how many kinds there may be.
func TestTooManyKinds(t *testing.T) {
	config := strings.Replace(quantisedConfig, `"num_hidden_layers": 3`, `"num_hidden_layers": 40`, 1) + "}"
	types := []string{"int8", "int4", "fp8", "none", "int8:g64"}
	spec := func(kinds int) string {
		items := []string{"int8:g32"}
		for layer := range kinds - 1 {
			items = append(items, fmt.Sprintf("layers.%d.mlp.*_proj=%s", layer, types[layer/5]),
				fmt.Sprintf("layers.%d.mlp.down_proj=%s", layer, types[layer%5]))
		}
		return strings.Join(items, ",")
	}
	g, err := quantiseModel(t, config, spec(importers.MostKinds))
	require.NoError(t, err)
	require.Len(t, g.Kinds, importers.MostKinds)
	_, err = quantiseModel(t, config, spec(importers.MostKinds+1))
	require.ErrorContains(t, err, "layers: error: are of more than 16 kinds, by what they compute and how their "+
		"matrices are stored: layer 16 is of another one than all before it; want at most 16")
}

// Kinds that a checkpoint has for its storage alone become one again where --weights evens that out, and layers of
// kinds that compute different things do not.
func TestKindsAreMerged(t *testing.T) {
	g, err := quantiseModel(t, quantisedConfig+"}", "layers.0.*=int8")
	require.NoError(t, err)
	require.Len(t, g.Kinds, 2)
	stored := &ir.Storage{DType: ir.I8, Scales: ir.Scales{Group: 128, DType: ir.BF16}}
	require.Nil(t, importers.StoreLayers(g, func(int, *ir.GraphNode) *ir.Storage { return stored }))
	require.Len(t, g.Kinds, 1)
	require.Equal(t, []int{0, 0, 0}, g.Layers)

	const windows = "../testdata/models/zoo/gemma3-tied"
	s := &State{Source: importers.Source{Name: "m", Config: modeltest.OpenConfig(t, readText(t,
		windows+"/config.json"))}}
	require.NoError(t, Import.Run(s))
	kinds, layers := len(s.Graph.Kinds), s.Graph.Layers
	require.Equal(t, 2, kinds)
	require.Nil(t, importers.StoreLayers(s.Graph, func(layer int, _ *ir.GraphNode) *ir.Storage {
		return []*ir.Storage{stored, nil}[min(layer, 1)]
	}))
	require.Len(t, s.Graph.Kinds, 3, "%v", layers)
	first := s.Graph.Layers[1] // which was of the kind of layer 0
	require.Equal(t, s.Graph.RopeOf(s.Graph.Layers[0]), s.Graph.RopeOf(first))
	require.Equal(t, s.Graph.RopeOwner(s.Graph.Layers[0]), s.Graph.RopeOwner(first), "one table of angles for both")
}

func readText(t testing.TB, path string) string {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// What the checkpoint has quantised stays: a default is for the rest.
func TestQuantisedInTheCheckpoint(t *testing.T) {
	run := func(spec string) (map[string]string, error) {
		s := &State{Source: importers.Source{Name: "m", Config: modeltest.OpenConfig(t, quantisedConfig+"}")}}
		require.NoError(t, Import.Run(s))
		for i := range s.Graph.Kinds[0].Nodes {
			if n := &s.Graph.Kinds[0].Nodes[i]; n.Op == "linear" {
				scales := ir.Scales{Group: 32, DType: ir.F16, Zeros: true}
				n.Weights[0].Storage = &ir.Storage{DType: ir.I4, Scales: scales}
			}
		}
		var err error
		s.Formats, err = ParseWeightFormats(spec)
		require.NoError(t, err)
		err = Quantise.Run(s)
		return storages(s.Graph), err
	}
	for _, spec := range []string{"int8", "lm_head=int8,embed=int8"} {
		got, err := run(spec)
		require.NoError(t, err)
		require.Equal(t, "I4 tile8x128.g32.F16.zeros", got["q_proj"])
		require.Equal(t, "I8 tile8x128.g128.BF16", got["lm_head"])
	}
	_, err := run("down_proj=int8")
	require.ErrorContains(t, err, "layers.0.mlp.down_proj.weight is quantised in the checkpoint; want items for")
}

// Scales are of 16 bits, as the weights are.
func TestScalesOfDTypes(t *testing.T) {
	f, err := ParseWeightFormats("int8")
	require.NoError(t, err)
	for weights, scales := range map[ir.DType]ir.DType{ir.F16: ir.F16, ir.BF16: ir.BF16, ir.F32: ir.BF16} {
		require.Equal(t, scales, f[0].storage(weights).Scales.DType)
	}
}
