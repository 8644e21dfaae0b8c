package compiler

import (
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
)

const config8B = "../testdata/configs/llama-3.1-8b"

func memoryDiags(t *testing.T, target ir.Target, maxSeq int) diag.List {
	l, err := RunPasses(Options{Model: config8B, Name: "m", Target: &target, MaxSeq: maxSeq, ConfigOnly: true})
	require.NoError(t, err)
	f, err := Memory(l.Program)
	require.NoError(t, err)
	return CheckMemory(&target, f)
}

// What the message suggests fits without a warning, and a little more does not.
func TestSuggestedMaxSeqFits(t *testing.T) {
	suggested := regexp.MustCompile(`--max-seq (\d+) or less`)
	for _, c := range []struct {
		target   string
		maxSeq   int
		severity diag.Severity
	}{{"l4", 131072, diag.Error}, {"a10g", 65536, diag.Warning}} {
		t.Run(c.target, func(t *testing.T) {
			target := *ir.FindTarget(c.target)
			diags := memoryDiags(t, target, c.maxSeq)
			require.Len(t, diags, 1)
			require.Equal(t, c.severity, diags[0].Severity)
			m := suggested.FindStringSubmatch(diags[0].Msg)
			require.NotNil(t, m, diags[0].Msg)
			fits, _ := strconv.Atoi(m[1])
			require.Empty(t, memoryDiags(t, target, fits))
			require.NotEmpty(t, memoryDiags(t, target, fits+64))
		})
	}
}

func TestMemoryOfTheTarget(t *testing.T) {
	target := *ir.FindTarget("l4")
	target.HBMBytes = 8 << 30
	diags := memoryDiags(t, target, 0)
	require.ErrorContains(t, diags.Err(), "AMK2020")
	require.ErrorContains(t, diags.Err(), "the weights leave no room for a cache")
	target.HBMBytes = 0
	require.Empty(t, memoryDiags(t, target, 0), "not known, not compared")
}

// Nothing is written of a build that does not fit.
func TestCompileRefusesWhatDoesNotFit(t *testing.T) {
	seed := uint64(1)
	target := *ir.FindTarget("l4")
	out := filepath.Join(t.TempDir(), "build")
	_, err := Compile(t.Context(), BuildOptions{NoBuild: true, OutDir: out,
		Options: Options{Model: config8B, Name: "m", Target: &target, MaxSeq: 131072, RandomSeed: &seed}})
	require.ErrorContains(t, err, "AMK2020")
	require.NoDirExists(t, out)
}

func TestDiskSpaceIsCheckedBeforePacking(t *testing.T) {
	defer func(real func(string) (uint64, bool)) { freeSpace = real }(freeSpace)
	work := t.TempDir()
	pack := func(out string) error {
		_, err := Compile(t.Context(), BuildOptions{NoBuild: true, OutDir: filepath.Join(work, out),
			Options: Options{Model: "../testdata/models/zoo/llama-gqa", Name: "m", Target: ir.FindTarget("l4")}})
		return err
	}
	freeSpace = func(string) (uint64, bool) { return 100 << 10, true }
	err := pack("full")
	require.ErrorContains(t, err, "AMK5105")
	require.ErrorContains(t, err, "weights.safetensors: error: the packed weights need 810.0 KiB, and 100.0 KiB "+
		"are available")
	left, err := filepath.Glob(filepath.Join(work, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
	left, err = filepath.Glob(filepath.Join(work, ".*"))
	require.NoError(t, err)
	require.Empty(t, left)

	freeSpace = func(string) (uint64, bool) { return 0, false }
	require.NoError(t, pack("unknown"))
	freeSpace = fileSystemSpace
	free, known := fileSystemSpace(work)
	require.True(t, known)
	require.NotZero(t, free)
	require.NoError(t, pack("real"))
}

// What a pass over a prompt has its vectors in is part of what a build takes, and of most models a 64th of the memory
// of the target at most.
func TestMemoryOfPrompts(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for model, positions := range map[string]int{config8B: 8192, "../testdata/configs/llama-3.2-1b": 8192,
		"../testdata/configs/qwen3-8b": 8192, "../testdata/configs/gpt-oss-20b": 8192,
		"../testdata/configs/qwen3-30b-a3b": 512} { // so short a context is not split
		bytes := map[int]uint64{}
		small := *ir.FindTarget("h100")
		small.HBMBytes = 16 << 30
		for _, target := range []*ir.Target{ir.FindTarget("h100"), &small} {
			for _, tokens := range []int{0, 64, -1} {
				var config ir.ScheduleConfig
				if tokens >= 0 {
					knobs.PromptTokens.Set(&config, tokens)
				}
				l, err := RunPasses(Options{Model: model, Name: "m", Target: target, ConfigOnly: true,
					MaxSeq: positions, Config: config})
				require.NoError(t, err)
				f, err := Memory(l.Program)
				require.NoError(t, err)
				bytes[tokens] = f.Bytes()
				facts, err := codegen.Facts(l.Program)
				require.NoError(t, err)
				require.Equal(t, tokens != 0, facts.Prompt > 0, model)
			}
			require.Greater(t, bytes[64], bytes[0], model)
			require.Greater(t, bytes[-1], bytes[64], model)
			require.LessOrEqual(t, bytes[-1]-bytes[0], uint64(target.HBMBytes/64+2<<20), model)
		}
	}
}
