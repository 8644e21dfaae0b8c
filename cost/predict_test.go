package cost_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/cost"
	"amkc/ir"
	"amkc/ir/diag"
)

// schedule parses the program of a committed build.
func schedule(t testing.TB, name string) *ir.Program {
	text, err := os.ReadFile("../testdata/golden/" + name + "/schedule.amk")
	require.NoError(t, err)
	p, err := ir.Parse(text, name)
	require.NoError(t, err)
	return p
}

func predict(t testing.TB, p *ir.Program, pos int) *cost.Prediction {
	m, err := cost.New(p)
	require.NoError(t, err)
	out, err := m.At(pos)
	require.NoError(t, err)
	return out
}

// codeOf returns the code of a diagnostic.
func codeOf(t testing.TB, err error) string {
	var d *diag.Diagnostic
	require.ErrorAs(t, err, &d)
	return d.Code
}

const pycoder = "pycoder-5m_h200_bf16"

func TestPartsAddUp(t *testing.T) {
	for _, name := range []string{pycoder, "llama-gqa_t4_fp16_split", "llama-odd-dims_h200_fp32"} {
		p := schedule(t, name)
		for _, v := range p.Variants {
			got := predict(t, p, v.Hi)
			sum := got.StepEnd
			for _, s := range got.Stages {
				sum += s.Total()
				require.GreaterOrEqual(t, min(s.Instructions, s.Exchange, s.Stream), 0.0, "%s %s", name, s.Name)
			}
			require.InEpsilon(t, got.Latency, sum, 1e-6, "%s at %d", name, v.Hi)
			require.Less(t, got.Ceiling, got.Latency, name)
			require.Equal(t, v.Name, got.Variant)
		}
	}
}

// TestSlowestMakesTheStep: a stage begins when the slowest SM of the one before is done, and so these times are the
// step, but for the join at its end, and but for what is done concurrently with others. What the mean SM spends is
// elsewhere: for the whole of a stage that few SMs compute, it waits in the next one.
func TestSlowestMakesTheStep(t *testing.T) {
	for _, name := range []string{pycoder, "llama-gqa_t4_fp16_split", "llama-odd-dims_h200_fp32"} {
		p := schedule(t, name)
		for _, v := range p.Variants {
			got := predict(t, p, v.Hi)
			sum := 0.0
			for _, s := range got.Stages {
				sum += s.Slowest
				require.GreaterOrEqual(t, s.Slowest, 0.0, "%s %s", name, s.Name)
			}
			require.InEpsilon(t, got.Latency, sum, 0.05, "%s at %d", name, v.Hi)
			require.LessOrEqual(t, sum, got.Latency, "%s at %d", name, v.Hi)
		}
	}
}

func TestSameProgramSameNumbers(t *testing.T) {
	a, b := predict(t, schedule(t, pycoder), 700), predict(t, schedule(t, pycoder), 700)
	require.Equal(t, a, b)
}

func TestLabels(t *testing.T) {
	require.Equal(t, cost.Predicted, predict(t, schedule(t, pycoder), 0).Label)
	require.Empty(t, predict(t, schedule(t, pycoder), 0).Assumptions)
	other := predict(t, schedule(t, "llama-gqa_t4_fp16_split"), 0)
	require.Equal(t, cost.NeverMeasured, other.Label)
	all := strings.Join(other.Assumptions, "\n")
	for _, want := range []string{"of the data sheet's 320 GB/s", "no cp.async", "no mma.m16n8k16",
		"are those of the H200"} {
		require.Contains(t, all, want)
	}
	fp32 := predict(t, schedule(t, "llama-odd-dims_h200_fp32"), 0)
	require.Contains(t, strings.Join(fp32.Assumptions, "\n"), "fp32: products on the ordinary units")
}

// TestKnobs holds the direction in which knobs and features move a prediction.
func TestKnobs(t *testing.T) {
	base := predict(t, schedule(t, pycoder), 0)
	change := func(f func(p *ir.Program)) *cost.Prediction {
		p := schedule(t, pycoder)
		target := *p.Target
		p.Target = &target
		f(p)
		return predict(t, p, 0)
	}
	counters := change(func(p *ir.Program) { p.Config.Tiling["exchange"]["flagged"] = 0 })
	require.Greater(t, counters.Latency, base.Latency, "counters take a trip more")
	require.Equal(t, counters.Ceiling, base.Ceiling, "the ceiling waits for neither")
	one := change(func(p *ir.Program) { p.Config.PipeliningDepth = 1 })
	require.Less(t, one.Ring.Bandwidth, base.Ring.Bandwidth, "with less in flight, less arrives")
	require.Zero(t, change(func(p *ir.Program) { p.Target.BulkCopy = false }).Ring.Ahead,
		"nothing runs ahead without bulk copies")
	plain := change(func(p *ir.Program) { p.Target.BulkCopy, p.Target.AsyncCopy = false, false })
	require.LessOrEqual(t, plain.Ring.Bandwidth, one.Ring.Bandwidth)
	require.Greater(t, change(func(p *ir.Program) { p.Config.Tiling["ring"]["stock"] = 0 }).Latency, base.Latency,
		"more in flight, and words take longer")
	still := change(func(p *ir.Program) { p.Config.Tiling["ring"]["run_ahead"] = 0 })
	require.Zero(t, still.Ring.Ahead)
	require.NotEqual(t, base.Latency, still.Latency)
	require.NotEqual(t, base.Latency, change(func(p *ir.Program) { p.Config.Tiling["ring"]["pace"] = 1 << 16 }).Latency,
		"L2 is asked for less")
	require.Less(t, base.Drain, base.Latency, "without the stream words have their way free")
	require.Equal(t, base.Drain, still.Drain, "and nothing is streamed ahead")
	slow := change(func(p *ir.Program) { p.Target.HBMGBs /= 100 })
	require.Greater(t, slow.Ceiling, base.Ceiling)
}

func TestRefusals(t *testing.T) {
	untargeted := schedule(t, pycoder)
	untargeted.Target = nil
	_, err := cost.New(untargeted)
	require.Equal(t, "AMK3601", codeOf(t, err))

	unknown := schedule(t, pycoder)
	unknown.Target = ir.ArchTarget(89, 58)
	_, err = cost.New(unknown)
	require.Equal(t, "AMK3601", codeOf(t, err))

	several := schedule(t, pycoder)
	several.Pass = ir.PassOf(1, 4)
	_, err = cost.New(several)
	require.Equal(t, "AMK3603", codeOf(t, err))
	require.ErrorContains(t, err, "takes 4 rows of 1 sequences in a pass; want one row of one")

	m, err := cost.New(schedule(t, pycoder))
	require.NoError(t, err)
	for _, pos := range []int{-1, 1024} {
		_, err = m.At(pos)
		require.Equal(t, "AMK3602", codeOf(t, err))
		require.ErrorContains(t, err, "0 to 511, 512 to 1023")
	}
}

// TestUnjudged takes what a program needs away: an SM for each task, and waits for what stands before.
func TestUnjudged(t *testing.T) {
	for name, edit := range map[string]func(v *ir.Variant){
		"no SM": func(v *ir.Variant) {
			v.Body[0].(*ir.Stage).
				Dist = ir.Dist{Kind: ir.Tiled, Extent: 256, Grain: 8}
		},
		"an SM too far": func(v *ir.Variant) { v.Body[0].(*ir.Stage).Dist.SMs = 133 },
		"an unknown wait": func(v *ir.Variant) {
			v.Body[0].(*ir.Stage).
				Waits = []ir.Wait{{Counter: "best", Threshold: 1}}
		},
		"an index below 0":   func(v *ir.Variant) { v.Body[0].(*ir.Stage).Signal = "L{i-1}.x" },
		"no stage to signal": func(v *ir.Variant) { v.Body = v.Body[1:] },
	} {
		p := schedule(t, pycoder)
		edit(&p.Variants[0])
		m, err := cost.New(p)
		require.NoError(t, err, name)
		_, err = m.At(0)
		require.Error(t, err, name)
		require.Equal(t, "AMK3603", codeOf(t, err), name)
	}
}

func BenchmarkPredict(b *testing.B) {
	p := schedule(b, pycoder)
	for b.Loop() {
		predict(b, p, 0)
	}
}

// TestEveryTargetHasAClock: predictions for GPUs with a record take nothing else for granted than their own facts and
// the H200's latencies.
func TestEveryTargetHasAClock(t *testing.T) {
	for _, target := range ir.Targets {
		p := schedule(t, pycoder)
		target.SMs = p.Target.SMs // which the tasks were distributed to
		p.Target = &target
		require.NotContains(t, strings.Join(predict(t, p, 0).Assumptions, "\n"), "clock is not known", target.Name)
	}
}
