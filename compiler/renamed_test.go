package compiler

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/passes"
)

// otherwise is the program with names that nobody would expect.
func otherwise(t *testing.T, p *ir.Program) *ir.Program {
	names := ir.NamesOf(p)
	invent := func(what string, list []string) {
		for k, name := range list {
			if list[k] = fmt.Sprintf("%s %d", what, k); ir.IsFamily(name) {
				list[k] += " {i}"
			}
		}
	}
	invent("buffer", names.Buffers)
	for i := range names.Variants {
		invent("counter", names.Variants[i].Counters)
		invent("stage", names.Variants[i].Stages)
		invent("loop", names.Variants[i].Loops)
	}
	q, err := ir.Rename(p, names)
	require.NoError(t, err)
	return q
}

// A program whose objects are called otherwise makes the same build, but for the two forms of the program, and the
// build is verified: what is read back out of its headers is its program.
func TestRenamedProgramIsCompiledAndVerified(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for model, config := range map[string]ir.ScheduleConfig{
		"qwen3-window-half": {Tiling: map[string]map[string]int{"attention": {"split_from": 64, "max_splits": 4},
			"ring": {"chunk_bytes": 4096}}},
		"llama-gqa": {Tiling: map[string]map[string]int{"loop": {"roll": 0, "barrier": 1},
			"exchange": {"flagged": 0}}},
	} {
		t.Run(model, func(t *testing.T) {
			build := func(dir string, after func(int, *passes.Pass, *passes.State, time.Duration) error) string {
				_, err := Compile(t.Context(), BuildOptions{Options: Options{
					Model: filepath.Join(root, "models", "zoo", model), Name: "m", Target: ir.FindTarget("h200"),
					MaxSeq: 128, Config: config, After: after}, OutDir: dir, NoBuild: true})
				require.NoError(t, err)
				v, err := Verify(dir, nil)
				require.NoError(t, err)
				require.NoError(t, v.Findings.Err())
				require.True(t, v.Proof.OK)
				return dir
			}
			plain := build(filepath.Join(t.TempDir(), "build"), nil)
			last := Passes[len(Passes)-1].Name
			renamed := build(filepath.Join(t.TempDir(), "build"),
				func(_ int, pass *passes.Pass, s *passes.State, _ time.Duration) error {
					if pass.Name == last {
						s.Program = otherwise(t, s.Program)
					}
					return nil
				})
			require.Contains(t, text(t, renamed, "program.json"), `"buffer 3`)
			for _, name := range []string{"schedule.h", "pages.h", "model_config.h", "stages.h", "megakernel.cu",
				"reference.cu"} {
				require.Equal(t, text(t, plain, name), text(t, renamed, name), name)
			}
		})
	}
}
