package costcheck

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/cost"
	"amkc/internal/population"
	"amkc/ir"
	"amkc/ir/diag"
)

// requireSane predicts every variant at both ends: a diagnostic, or times that are numbers.
func requireSane(t testing.TB, name string, p *ir.Program) (judged bool) {
	if p.Pass.NumTokens() > 1 {
		return requireSanePasses(t, name, p)
	}
	m, err := cost.New(p)
	if err != nil {
		require.ErrorAs(t, err, new(*diag.Diagnostic), name)
		return false
	}
	for i := range p.Variants {
		for _, pos := range []int{p.Variants[i].Lo, p.Variants[i].Hi} {
			got, err := m.At(pos)
			if err != nil {
				require.ErrorAs(t, err, new(*diag.Diagnostic), name)
				continue
			}
			judged = true
			for _, us := range []float64{got.Latency, got.Ceiling, got.StepEnd, got.RingFull, got.Share} {
				require.False(t, math.IsNaN(us) || math.IsInf(us, 0) || us < 0, "%s at %d: %+v", name, pos, got)
			}
			for _, s := range got.Stages {
				require.False(t, math.IsNaN(s.Total()) || s.Total() < 0, "%s at %d: %+v", name, pos, s)
			}
		}
	}
	return judged
}

// requireSanePasses asks the same of a program of passes of several tokens.
func requireSanePasses(t testing.TB, name string, p *ir.Program) (judged bool) {
	m, err := cost.NewPass(p, nil)
	if err != nil {
		require.ErrorAs(t, err, new(*diag.Diagnostic), name)
		return false
	}
	for i := range p.Variants {
		for _, pos := range []int{p.Variants[i].Lo, p.Variants[i].Hi} {
			got, err := m.At(pos)
			if err != nil {
				require.ErrorAs(t, err, new(*diag.Diagnostic), name)
				continue
			}
			judged = true
			for _, us := range []float64{got.Latency, got.Ceiling, got.Drain, got.StepEnd, got.TokensPerSecond} {
				require.False(t, math.IsNaN(us) || math.IsInf(us, 0) || us < 0, "%s at %d: %+v", name, pos, got)
			}
		}
	}
	return judged
}

// TestPassesOfAllKinds predicts passes of models of several kinds: in fp32, quantised, of few columns, with windows.
func TestPassesOfAllKinds(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for _, model := range []string{"models/pycoder-5m", "configs/sizes/hidden-70", "configs/sizes/wide-mlp"} {
		for _, dtype := range []string{"bf16", "fp32"} {
			for _, pass := range []ir.Pass{ir.PassOf(1, 2), ir.PassOf(8, 1), ir.PassOf(2, 4), ir.PassOf(1, 16)} {
				d := map[string]ir.DType{"bf16": ir.BF16, "fp32": ir.F32}[dtype]
				l, err := compiler.RunPasses(compiler.Options{Model: root + "testdata/" + model, Name: "m",
					ConfigOnly: true, Target: ir.FindTarget("h100"), DType: &d, MaxSeq: 600, Pass: pass})
				require.NoError(t, err, "%s %s %v", model, dtype, pass)
				require.NoError(t, l.Close())
				require.True(t, requireSane(t, fmt.Sprintf("%s %s %v", model, dtype, pass), l.Program))
			}
		}
	}
}

// TestGeneratedPrograms tries the model on programs with all kinds of stages, loops, waits and mistakes: it judges
// many of them, says of the others why not, and never panics.
func TestGeneratedPrograms(t *testing.T) {
	each := 100
	if everything() {
		each = 400
	}
	for class, generate := range map[string]func(uint64) population.Case{
		"native": population.Native, "looped": population.Looped, "mutant": population.Mutant,
	} {
		judged, native := 0, 0
		for seed := range uint64(each) {
			c := generate(seed)
			if c.Program == nil {
				continue
			}
			native++
			p := *c.Program
			if p.Target == nil {
				p.Target = ir.FindTarget("h200")
			}
			target := *p.Target
			target.HBMGBs = max(target.HBMGBs, 1) // generated targets say nothing of it
			p.Target = &target
			if ir.Check(&p).Err() == nil && requireSane(t, c.Name, &p) {
				judged++
			}
		}
		if native > 0 {
			require.Positive(t, judged, class)
		}
		t.Logf("%s: %d of %d programs judged", class, judged, native)
	}
}

// TestAllTargets predicts every committed model for every GPU that the passes compile it for.
func TestAllTargets(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for _, dtype := range []string{"bf16", "fp32"} {
		for _, model := range []string{"models/pycoder-5m", "configs/sizes/hidden-70",
			"configs/sizes/mha-200-heads-of-8", "configs/sizes/wide-mlp"} {
			for _, target := range someTargets() {
				name := fmt.Sprintf("%s %s %s", model, dtype, target.Name)
				p := compileAs(t, fmt.Sprintf("amkc testdata/%s --dtype %s --max-seq 600", model, dtype), &target,
					byDefault)
				require.True(t, requireSane(t, name, p), name)
			}
		}
	}
}

// BenchmarkPredict8B measures the model alone, on the largest program that is measured: a search asks for many
// predictions.
func BenchmarkPredict8B(b *testing.B) {
	p := compileAs(b, "amkc testdata/configs/llama-3.1-8b --dtype bf16 --max-seq 2048", ir.FindTarget("h200"),
		byDefault)
	m, err := cost.New(p)
	require.NoError(b, err)
	for b.Loop() {
		_, err := m.At(2040)
		require.NoError(b, err)
	}
}
