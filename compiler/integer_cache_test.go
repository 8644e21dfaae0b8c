package compiler

import (
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/cost"
	"amkc/ir"
	"amkc/refvm"
	"amkc/validate"
	"amkc/validate/kernel"
)

// withIntegers schedules a model with a cache of integers.
func withIntegers(t *testing.T, model, target string, dtype ir.DType) *Scheduled {
	t.Helper()
	cache := ir.I8
	l, err := RunPasses(Options{Model: model, Name: "m", Target: ir.FindTarget(target), DType: &dtype, Cache: &cache,
		MaxSeq: 48, Check: true})
	require.NoError(t, err, model)
	t.Cleanup(func() { l.Close() })
	return l
}

// Every small model that the kernel runs is emitted with a cache of integers too, for a target with tensor cores and
// for one without them, and reads back. The models take the targets in turn; AMKC_LONG asks for both of each.
func TestIntegerCachesAreEmitted(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	dirs, err := filepath.Glob(filepath.Join(root, "models", "zoo", "*"))
	require.NoError(t, err)
	emitted := map[string]int{}
	for i, dir := range dirs {
		name := filepath.Base(dir)
		if CheckModel(Options{Model: dir, ConfigOnly: true}) != nil {
			continue
		}
		for target, dtype := range map[string]ir.DType{"h200": ir.BF16, "t4": ir.F16} {
			if !long() && (target == "t4") != (i%2 == 0) {
				continue
			}
			if slices.ContainsFunc(withoutBody, func(w bodiless) bool {
				return strings.HasPrefix(name, w.prefix) && w.target == target
			}) {
				continue
			}
			cache := ir.I8
			l, err := RunPasses(Options{Model: dir, Name: "m", Target: ir.FindTarget(target), DType: &dtype,
				Cache: &cache, MaxSeq: 48, ConfigOnly: true})
			require.NoError(t, err, name)
			proof := validate.ProgramFor(kernel.Backend, l.Program)
			require.True(t, proof.OK, "%s for %s: %v", name, target, proof.Diags)
			files, err := codegen.Project(l.Program, l.Graph, "m")
			require.NoError(t, err, "%s for %s", name, target)
			require.NoError(t, checkEmitted(files, l.Program), "%s for %s", name, target)
			emitted[target]++
		}
	}
	require.Greater(t, emitted["h200"], 40)
	require.Greater(t, emitted["t4"], 40)
}

// A step reads half of the bytes of the rows that it reads with 16 bits, and their scales. Whatever counts bytes counts
// these.
func TestBytesOfIntegerCaches(t *testing.T) {
	model := filepath.Join(root, "models", "pycoder-5m")
	l, plain := withIntegers(t, model, "h200", ir.BF16), lowerModel(t, "pycoder-5m", "h200", ir.BF16, 48,
		ir.ScheduleConfig{})
	m := &l.Program.Model
	row := m.Layers * m.KVHeads * 2 * (m.HeadDim + 2)
	facts, err := codegen.Facts(l.Program)
	require.NoError(t, err)
	require.Equal(t, "I8", facts.Model.Cache)
	require.InDelta(t, row, facts.Traffic.Cache[0].Bytes, 1)
	_, size := ir.CacheArena(l.Program)
	require.Equal(t, m.Layers*((48*row/m.Layers+ir.ArenaAlign-1)/ir.ArenaAlign*ir.ArenaAlign), size)
	require.Contains(t, string(generated(t, l)["model_config.h"]), "using CacheElement = Int8;")

	bytes := func(p *ir.Program, pos int) int64 {
		c, err := cost.New(p)
		require.NoError(t, err)
		at, err := c.At(pos)
		require.NoError(t, err)
		return at.BytesPerToken
	}
	require.InDelta(t, 40*row, bytes(l.Program, 40)-bytes(l.Program, 0), 1)
	require.InDelta(t, 40*m.Layers*m.KVHeads*4*m.HeadDim, bytes(plain.Program, 40)-bytes(plain.Program, 0), 1)
}

// The forms keep the type of the cache, and headers that say another type, layout or size than was proved are found.
func TestEditsOfIntegerCaches(t *testing.T) {
	l := withIntegers(t, filepath.Join(root, "models", "zoo", "llama-gqa"), "h200", ir.BF16)
	again, err := ir.Load(ir.Print(l.Program), "m.amk")
	require.NoError(t, err)
	require.Equal(t, l.Program.Model, again.Model)
	files := generated(t, l)
	require.NoError(t, checkEmitted(files, l.Program))
	for _, e := range [][3]string{
		{"model_config.h", "using CacheElement = Int8;", "using CacheElement = Bf16;"},
		{"model_config.h", "using WeightElement = Bf16;", "using WeightElement = Int8;"},
		{"model_config.h", "using Element = Bf16;", "using Element = Int8;"},
		{"model_config.h", "kFragmentCache = true", "kFragmentCache = false"},
	} {
		edited := maps.Clone(files)
		text := string(files[e[0]])
		require.Contains(t, text, e[1])
		edited[e[0]] = []byte(strings.Replace(text, e[1], e[2], 1))
		require.Error(t, checkEmitted(edited, l.Program), "%v", e)
	}
	plain := lowerModel(t, "zoo/llama-gqa", "h200", ir.BF16, 48, ir.ScheduleConfig{})
	edited := maps.Clone(generated(t, plain))
	edited["model_config.h"] = []byte(strings.Replace(string(edited["model_config.h"]), "using CacheElement = Bf16;",
		"using CacheElement = Int8;", 1))
	require.Error(t, checkEmitted(edited, plain.Program))
}

// With all that attention may be, logits stay near those of the plain cache, and differ from them. The models take the
// types in turn; AMKC_LONG asks for all of each.
func TestLogitsOfIntegerCaches(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	run := func(l *Scheduled) (logits []float32) {
		s, err := refvm.NewSession(l.Program, l.Weights, refvm.Options{Round: refvm.Device})
		require.NoError(t, err)
		for token := range 20 {
			step, _, err := s.Step(token)
			require.NoError(t, err)
			logits = append(logits, step...)
		}
		return logits
	}
	for i, model := range []string{"llama-gqa", "llama-odd-dims", "mistral-window-narrow", "qwen3-window-half",
		"gemma2-split-k", "gpt2", "olmo2-plain", "falcon-groups", "exaone4-windows", "cohere-head-norms-odd"} {
		dtypes := []ir.DType{ir.BF16, ir.F16, ir.F32}
		if !long() {
			dtypes = dtypes[i%len(dtypes):][:1]
		}
		for _, dtype := range dtypes {
			got := run(withIntegers(t, filepath.Join(root, "models", "zoo", model), "h200", dtype))
			want := run(lowerModel(t, "zoo/"+model, "h200", dtype, 48, ir.ScheduleConfig{}))
			var difference, norm float64
			for i := range want {
				d := float64(got[i]) - float64(want[i])
				difference += d * d
				norm += float64(want[i]) * float64(want[i])
			}
			rms := math.Sqrt(difference / norm)
			require.Less(t, rms, 0.06, "%s in %s", model, dtype)
			require.Greater(t, rms, 1e-5, "%s in %s", model, dtype)
		}
	}
}
