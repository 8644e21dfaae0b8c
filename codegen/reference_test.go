package codegen

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
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

var completed = regexp.MustCompile(`\{"((?:L\{i\}\.)?[a-z_]+)", offsetof\(Vectors, (\w+)\), (\w+),`)

// A stage that reference.cu completes must be one that a traced kernel hands over, or check --bisect compares nothing.
func TestReferenceAndTraceSpeakOfTheSameStages(t *testing.T) {
	for name, p := range goldenPrograms(t) {
		files, err := CUDA(p)
		require.NoError(t, err)
		facts, err := Facts(p)
		require.NoError(t, err)
		m := p.Model
		rows := map[string]int{"kHidden": m.Hidden, "kQkvRows": (m.Heads + 2*m.KVHeads) * m.HeadDim,
			"kAttnRows":     m.Heads * m.HeadDim,
			"kIntermediate": m.Intermediate, "kVocab": 0}
		for _, v := range facts.Variants {
			handed := map[string]int{}
			steps := 0
			for _, e := range v.Exchanges {
				handed[e.Stage] = e.Elements
				steps += max(1, e.Layers)
			}
			require.Contains(t, string(files["schedule.h"]), "constexpr int kExchangesPerStep = ")
			require.GreaterOrEqual(t, steps, 2+5*m.Layers, name)
			found := completed.FindAllStringSubmatch(string(files["reference.cu"]), -1)
			require.Len(t, found, 8)
			for _, f := range found {
				if f[1] == "L{i}.kv" { // no stage: what is left in the cache
					continue
				}
				require.Contains(t, handed, f[1], "%s, variant %s", name, v.Name)
				require.Equal(t, rows[f[3]], handed[f[1]], "%s: elements of %s", name, f[1])
			}
		}
		longest := facts.Variants[len(facts.Variants)-1].Exchanges
		if strings.Contains(name, "split") {
			require.Equal(t, "L{i}.part", longest[2].Stage)
			require.Positive(t, longest[2].Elements)
		}
	}
}

// Where an output head of its own exists the embedding is another tensor, and a name that nothing defines is no
// constant.
func TestReferenceUsesConstantsOfTheModel(t *testing.T) {
	for name, p := range goldenPrograms(t) {
		files, err := CUDA(p)
		require.NoError(t, err)
		config := string(files["model_config.h"])
		for _, m := range regexp.MustCompile(`(?:weights \+ |in_layer\(r, )(k\w+)`).
			FindAllStringSubmatch(string(files["reference.cu"]), -1) {
			require.Contains(t, config, "constexpr size_t "+m[1]+" = ", name)
		}
		require.Equal(t, p.Model.Tied, strings.Contains(string(files["reference.cu"]),
			"v.x, r.weights + kLmHeadWeight, r.token"), name)
	}
}
