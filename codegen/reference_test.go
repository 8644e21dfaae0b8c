package codegen

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers"
	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/transform"
	"amkc/passes"
)

// The programs of the golden builds: one variant and several, with splits and without.
func goldenPrograms(t *testing.T) map[string]*ir.Program {
	t.Helper()
	paths, err := filepath.Glob("../testdata/golden/*/program.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	programs := map[string]*ir.Program{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		p, diags := ir.ParseJSON(text, path)
		require.Empty(t, diags)
		programs[filepath.Base(filepath.Dir(path))] = p
	}
	return programs
}

// goldenGraphs are the graphs of their models, by the same names.
func goldenGraphs(t *testing.T) map[string]*ir.Graph {
	t.Helper()
	graphs := map[string]*ir.Graph{}
	for name, p := range goldenPrograms(t) {
		dir := "../testdata/models/" + p.Model.Name
		if _, err := os.Stat(dir); err != nil {
			dir = "../testdata/models/zoo/" + p.Model.Name
		}
		config, err := checkpoint.OpenConfig(dir)
		require.NoError(t, err)
		s := &passes.State{Source: importers.Source{MaxSeq: p.Model.MaxSeq, Name: p.Model.Name, Config: config,
			DType: &p.Model.Weights}}
		require.NoError(t, passes.Import.Run(s))
		graphs[name] = s.Graph
	}
	return graphs
}

var completed = regexp.MustCompile(`(k\w+), (\d),\n     \{"((?:L\{i\}\.)?[a-z_]+)", offsetof\(Values, \w+\), (\d+),`)

// A stage that reference.cu completes must be one that a traced kernel publishes, or check --bisect compares nothing.
func TestReferenceAndTraceSpeakOfTheSameStages(t *testing.T) {
	graphs := goldenGraphs(t)
	for name, p := range goldenPrograms(t) {
		source, err := Reference(p, graphs[name])
		require.NoError(t, err)
		facts, err := Facts(p)
		require.NoError(t, err)
		found := completed.FindAllStringSubmatch(string(source), -1)
		stages := 1 + 6*len(graphs[name].Kinds)
		if !strings.Contains(string(source), "{\"embed\"") {
			require.Contains(t, []string{"gemma3-tied_h200_bf16", "gemma4-keys-serve_h200_bf16",
				"gemma2-split-k_h200_bf16", "exaone4-windows_h200_bf16", "olmo2-plain_h200_bf16"}, name,
				"every SM has the token's row, and publishes nothing")
		} else {
			stages++
		}
		if name == "gpt-neox-parallel_h200_bf16" {
			stages-- // o publishes nothing
		}
		for _, kind := range graphs[name].Kinds {
			if slices.ContainsFunc(kind.Nodes, func(n ir.GraphNode) bool { return n.OfExperts() }) {
				stages++ // the router
			}
		}
		require.Len(t, found, stages, name)
		for _, v := range facts.Variants {
			handed, ofKind := map[string]int{}, map[string]int{}
			of := func(stage string, kind int) string { return fmt.Sprintf("%s of layers of kind %d", stage, kind) }
			for _, e := range v.Exchanges {
				handed[e.Stage] = e.Elements / max(1, e.Parts)
				for _, layer := range e.Rounds {
					ofKind[of(e.Stage, graphs[name].Layers[layer])] = handed[e.Stage]
				}
			}
			for _, f := range found {
				kind, err := strconv.Atoi(f[2])
				require.NoError(t, err)
				stage, elements := f[3], cmp.Or(ofKind[of(f[3], kind)], handed[f[3]])
				switch {
				case f[1] == "kObserves": // what is left in the cache, and what should be
					elements = 4 * p.Model.Of(graphs[name].Of(kind)[0]).KeyRows()
				case stage == "lm_head":
					elements = p.Model.Vocab
				default:
					require.Contains(t, handed, stage, "%s, variant %s", name, v.Name)
				}
				require.Equal(t, f[4], itoa(elements), "%s: elements of %s", name, stage)
			}
		}
	}
}

// Layers of some models have much to say of their sizes, and a line has its columns.
func TestTitlesOfLayersFitTheirLines(t *testing.T) {
	const sizes = "sliding_attention without rotation of 128 heads of 256 elements, 16 kv heads and 21504 wide"
	for title, lines := range map[string]int{
		"layers": 1, "layers of kind 0: sliding_attention of 4 heads of 16 elements, 2 kv heads and 88 wide": 1,
		"layers of kind 0: sliding_attention of 32 heads of 256 elements, 16 kv heads and 21504 wide": 2,
		"layers of kind 10: " + sizes + " with 128 experts":                                           2,
	} {
		var words []string
		all := strings.Split(ruleOf(title), "\n")
		require.Len(t, all, lines, title)
		for _, line := range all {
			require.LessOrEqual(t, len(line), maxLine, title)
			words = append(words, strings.Fields(strings.Trim(line, "/- "))...)
		}
		require.Equal(t, strings.Fields(title), words)
	}
}

// What reference.cu reads weights at are constants of model_config.h, or tables of its own.
func TestReferenceUsesConstantsOfTheModel(t *testing.T) {
	graphs := goldenGraphs(t)
	for name, p := range goldenPrograms(t) {
		files, err := CUDA(p)
		require.NoError(t, err)
		source, err := Reference(p, graphs[name])
		require.NoError(t, err)
		config := string(files["model_config.h"])
		for _, m := range regexp.MustCompile(`(?:weights \+ |in_layer\(r, )(k\w+)`).
			FindAllStringSubmatch(string(source), -1) {
			require.Regexp(t, "constexpr size_t "+m[1]+"( = |\\[\\]\\{)", config, name)
		}
		require.Equal(t, p.Model.Tied, strings.Contains(string(source), "{r.weights + kLmHeadWeight}, r.token"), name)
	}
}

// A program whose layers are in no loop holds each layer's weights separately: a table says where, and the
// operations are the same.
func TestReferenceOfUnrolledPrograms(t *testing.T) {
	graphs := goldenGraphs(t)
	for name, p := range goldenPrograms(t) {
		rolled, err := Reference(p, graphs[name])
		require.NoError(t, err)
		alone, err := Reference(unrolled(t, p, -1), graphs[name])
		require.NoError(t, err)
		step := func(source []byte) string {
			_, step, found := strings.Cut(string(source), "amk_reference_step[]")
			require.True(t, found)
			return step
		}
		require.Equal(t, step(rolled), step(alone), name)
	}
}

// A buffer that holds a tensor otherwise than the plain kernels read it is refused, and so is another model.
func TestReferenceRefusals(t *testing.T) {
	const name = "llama-gqa_t4_fp16_split"
	for want, edit := range map[string]func(p *ir.Program, g *ir.Graph){
		"holds rows(model.layers.{i}.other), of which no node of the graph": func(p *ir.Program, _ *ir.Graph) {
			find(t, p, "L{i}.down.weight").Pieces[0].Key = "model.layers.{i}.other"
		},
		"needs pairs:16(model.layers.0.self_attn.q_proj.weight), and L{i}.qkv.weight holds rows(": func(p *ir.Program,
			_ *ir.Graph) {
			find(t, p, "L{i}.qkv.weight").Pieces[0].Chain = nil
		},
		"holds pairs:16(": func(p *ir.Program, _ *ir.Graph) {
			find(t, p, "L{i}.o.weight").Pieces[0].Chain = transform.Of(transform.Pairs, 16)
		},
		"needs rows(@inv_freq), and rope.inv_freq holds [times:2(@inv_freq)]": func(p *ir.Program, _ *ir.Graph) {
			find(t, p, "rope.inv_freq").Pieces[0].Chain = transform.Chain{{Kind: transform.Times, By: 2}}
		},
		"takes 3 rows of 2 sequences in a pass, and the plain kernels decode one row of one": func(p *ir.Program,
			_ *ir.Graph) {
			p.Pass = ir.PassOf(2, 3)
		},
		"want one model": func(_ *ir.Program, g *ir.Graph) { g.Model.Vocab++ },
		// heads of what a product reads, normalised one by one, which are not one norm of it
		"input_norm, which is rounded: false": func(_ *ir.Program, g *ir.Graph) {
			for i := range g.Kinds[0].Nodes {
				if n := &g.Kinds[0].Nodes[i]; n.Name == "input_norm" {
					n.Params = append(n.Params, ir.IntParam("head_dim", ir.Int(16)))
				}
			}
		},
		"is gelu of 2 values": func(_ *ir.Program, g *ir.Graph) {
			for i := range g.Kinds[0].Nodes {
				if n := &g.Kinds[0].Nodes[i]; n.Op == "silu_mul" {
					n.Op = "gelu"
				}
			}
		},
	} {
		p, g := goldenPrograms(t)[name], goldenGraphs(t)[name]
		edit(p, g)
		_, err := Reference(p, g)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "[AMK4007]")
	}
}

func find(t *testing.T, p *ir.Program, name string) *ir.Buffer {
	t.Helper()
	for i := range p.Buffers {
		if p.Buffers[i].Name == name {
			return &p.Buffers[i]
		}
	}
	t.Fatalf("no buffer %s", name)
	return nil
}
