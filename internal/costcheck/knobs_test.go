package costcheck

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/cost"
	"amkc/ir"
)

// knobs are changes of the schedule of Llama-3.2-1B that docs/performance.md measured, each as a ratio to the default schedule on
// the same machine. The builds were earlier ones, so that ratios are compared and not times. No constant was chosen on them.
var knobs = []struct {
	name     string
	config   ir.ScheduleConfig
	position int
	measured float64
}{
	{"pipelining_depth 2", ir.ScheduleConfig{PipeliningDepth: 2}, 0, 624.0 / 608},
	{"pipelining_depth 4", ir.ScheduleConfig{PipeliningDepth: 4}, 0, 612.0 / 608},
	{"ring.run_ahead 0", tiled("ring", "run_ahead", 0), 0, 608.0 / 608},
	{"ring.run_ahead 0", tiled("ring", "run_ahead", 0), 2032, 682.0 / 674},
	{"attention.max_splits 8", tiled("attention", "max_splits", 8), 2032, 657.4 / 661.9},
	{"attention.max_splits 8", tiled("attention", "max_splits", 8), 8192, 744.6 / 705.3},
	{"attention.max_splits 8", tiled("attention", "max_splits", 8), 32000, 1059.6 / 867.2},
	{"warps.o 4", tiled("warps", "o", 4), 8192, 700.0 / 705.3},
}

func tiled(group, name string, n int) ir.ScheduleConfig {
	return ir.ScheduleConfig{Tiling: map[string]map[string]int{group: {name: n}}}
}

// predictKnob is the ratio that the model predicts.
func predictKnob(t testing.TB, config ir.ScheduleConfig, pos int) float64 {
	at := func(config ir.ScheduleConfig) float64 {
		dtype := ir.BF16
		l, err := compiler.Lower(compiler.Options{Model: root + "testdata/configs/llama-3.2-1b", Name: "knobs", ConfigOnly: true, DType: &dtype, MaxSeq: 33024,
			Target: ir.FindTarget("h200"), Config: config})
		require.NoError(t, err)
		defer l.Close()
		m, err := cost.New(l.Program)
		require.NoError(t, err)
		p, err := m.At(pos + 8)
		require.NoError(t, err)
		return p.Latency
	}
	return at(config) / at(ir.ScheduleConfig{})
}

func TestKnobsHold(t *testing.T) {
	for _, k := range knobs {
		require.InEpsilon(t, k.measured, predictKnob(t, k.config, k.position), tolerance, "%s at %d", k.name, k.position)
	}
}

func knobsTable(t testing.TB) string {
	var b strings.Builder
	b.WriteString("\n| Llama-3.2-1B with | position | predicted | measured | off by |\n|---|---|---|---|---|\n")
	for _, k := range knobs {
		p := predictKnob(t, k.config, k.position)
		fmt.Fprintf(&b, "| %s | %d | %.3f | %.3f | %.1f %% |\n", k.name, k.position, p, k.measured, 100*math.Abs(p/k.measured-1))
	}
	b.WriteByte('\n')
	return b.String()
}
