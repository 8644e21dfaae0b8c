package compiler

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes"
)

// Every pass stands after those it names, and names those it needs.
func TestPassOrder(t *testing.T) {
	var done []string
	for _, p := range Passes {
		require.NotEmpty(t, p.Doc, p.Name)
		require.NotContains(t, done, p.Name)
		for _, before := range p.After {
			require.Contains(t, done, before, "pass %s runs after %s", p.Name, before)
		}
		done = append(done, p.Name)
	}
	for _, s := range Steps {
		require.NotEmpty(t, s.Doc, s.Name)
		require.NotContains(t, done, s.Name)
		require.Subset(t, done, s.After, "step %s", s.Name)
		done = append(done, s.Name)
	}
	require.Equal(t, []string{"import", "quantise", "shard", "lower", "fuse", "tile", "assign", "replicate",
		"split_k", "barrier", "loop", "pagecolor", "exchange", "validate", "emit", "readback"},
		done)
}

func TestLowerRunsEveryPass(t *testing.T) {
	var ran []string
	l, err := RunPasses(Options{
		Model: "../testdata/models/zoo/llama-mha-tied-bf16", Name: "tied", Target: ir.FindTarget("h200"), Check: true,
		After: func(n int, p *passes.Pass, s *passes.State, _ time.Duration) error {
			require.Equal(t, Passes[n-1].Name, p.Name)
			require.NotNil(t, s.Graph)
			ran = append(ran, p.Name)
			return nil
		},
	})
	require.NoError(t, err)
	defer l.Close()
	require.Len(t, ran, len(Passes))
	require.Equal(t, 512, l.Program.Model.MaxSeq, "what the model allows")
	require.NotNil(t, l.Weights)
	require.Less(t, l.Pages.BytesAfter, l.Pages.BytesBefore)
	require.Len(t, l.Consumed, len(slices.Collect(l.Graph.Weights())))
}

// Whatever the target, the models that are accepted give programs that are well formed after every pass.
func TestEveryTargetAndModel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	models := []string{"pycoder-5m", "zoo/llama-gqa", "zoo/llama-odd-dims", "zoo/llama-rope-llama3",
		"zoo/llama-sharded-fp16"}
	for _, target := range append(slices.Clone(ir.Targets), *ir.ArchTarget(90, 1), *ir.ArchTarget(80, 7)) {
		for _, model := range models {
			l, err := RunPasses(Options{Model: "../testdata/models/" + model, Target: &target, Check: true,
				ConfigOnly: true})
			require.NoError(t, err, "%s %s", target.Name, model)
			for _, v := range l.Program.Variants {
				for _, c := range v.Counters {
					require.NotEqual(t, ir.Undecided, c.How, "%s %s %s", target.Name, model, c.Name)
				}
			}
		}
	}
}

func TestRandomWeightsNeedNoFiles(t *testing.T) {
	seed := uint64(7)
	l, err := RunPasses(Options{Model: "../testdata/models/zoo/llama-gqa", RandomSeed: &seed,
		Target: ir.FindTarget("h200")})
	require.NoError(t, err)
	defer l.Close()
	for i := range l.Program.Buffers {
		if b := &l.Program.Buffers[i]; b.Kind == ir.Weight || b.Kind == ir.Const {
			values, err := l.Weights.Floats(b, b.First)
			require.NoError(t, err, b.Name)
			require.Len(t, values, b.Numel())
		}
	}
}

func TestErrorsEndTheRun(t *testing.T) {
	experts := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(experts, "config.json"), []byte(`{"model_type": "jetmoe"}`), 0o644))
	_, err := RunPasses(Options{Model: experts, ConfigOnly: true, Target: ir.FindTarget("h200")})
	var d *diag.Diagnostic
	require.ErrorAs(t, err, &d)
	require.Equal(t, "AMK1101", d.Code)

	_, err = RunPasses(Options{Model: "../testdata/models/zoo/llama-gqa"})
	require.ErrorAs(t, err, &d)
	require.Equal(t, "AMK2010", d.Code, "no target")

	stop := errors.New("stop")
	_, err = RunPasses(Options{Model: "../testdata/models/zoo/llama-gqa", ConfigOnly: true,
		After: func(int, *passes.Pass, *passes.State, time.Duration) error { return stop }})
	require.ErrorIs(t, err, stop)
}
