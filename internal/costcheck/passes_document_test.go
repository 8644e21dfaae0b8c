package costcheck

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/cost"
	"amkc/ir"
)

// TestPassesDocument holds the tables of docs/passes.md that are predicted or counted; -update writes them.
func TestPassesDocument(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	holdTables(t, root+"docs/passes.md", map[string]string{"splits": splitsTable(t), "moved": movedTable(t)})
}

// eightB compiles Llama-3.1-8B for an H200.
func eightB(t testing.TB, opts compiler.Options) *compiler.Scheduled {
	opts.Model, opts.Name, opts.ConfigOnly = root+"testdata/configs/llama-3.1-8b", "m", true
	opts.Target = ir.FindTarget("h200")
	l, err := compiler.RunPasses(opts)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l
}

// splitsTable has how long a step and a pass of eight sequences take, by splits of every context.
func splitsTable(t testing.TB) string {
	const every = 16 // positions between those that are tried
	positions, splits := []int{128, 512, 1024, 2048}, []int{1, 2, 16}
	var b strings.Builder
	b.WriteString("| splits, from position 0 on |")
	for _, what := range []string{"one token", "8 sequences"} {
		fmt.Fprintf(&b, " %s at %d | %d | %d | %d |", what, positions[0], positions[1], positions[2], positions[3])
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", 2*len(positions)) + "\n")
	var steps, passes []func(pos int) float64 // latencies, by splits
	for i, n := range splits {
		l := eightB(t, compiler.Options{MaxSeq: 2304, Passes: []ir.Pass{{Sequences: 8}},
			Config: tiled("attention", "split_from", 0, "attention", "max_splits", n)})
		one, err := cost.New(l.Program)
		require.NoError(t, err)
		pass, err := cost.NewPass(l.Passes[0], l.Program)
		require.NoError(t, err)
		steps = append(steps, func(pos int) float64 {
			p, err := one.At(pos)
			require.NoError(t, err)
			return p.Latency
		})
		passes = append(passes, func(pos int) float64 {
			p, err := pass.At(pos)
			require.NoError(t, err)
			return p.Latency
		})
		fmt.Fprintf(&b, "| %d |", n)
		for _, latency := range [][]func(int) float64{steps, passes} {
			for _, pos := range positions {
				fmt.Fprintf(&b, " %.0f |", latency[i](pos))
			}
		}
		b.WriteString("\n")
	}
	ahead := func(latency []func(int) float64) int {
		for pos := 0; pos < 2304; pos += every {
			if latency[1](pos) < latency[0](pos) {
				return pos
			}
		}
		t.Fatal("two splits are never ahead of one")
		return 0
	}
	fmt.Fprintf(&b, "\nAt 128 two splits make a step %.1f %% longer than one; they are faster from position %d on, "+
		"and "+
		"in a pass of eight\nsequences from %d on. At 2,048 a step takes %.1f %% longer with two splits than with "+
		"16.\n",
		100*(steps[1](128)/steps[0](128)-1), ahead(steps), ahead(passes),
		100*(steps[1](2048)/steps[2](2048)-1))
	return b.String()
}

// movedTable has what passes of several rows move.
func movedTable(t testing.TB) string {
	var b strings.Builder
	b.WriteString("| tokens | weights | words read from L2, at position 128 | at 2048 | words stored, at 128 | " +
		"widest vector |\n|---|---|---|---|---|---|\n")
	for _, rows := range []int{1, 2, 4, 8} {
		l := eightB(t, compiler.Options{Pass: ir.PassOf(1, rows)})
		at := func(pos int) *cost.Traffic {
			p, err := cost.TrafficAt(l.Program, pos)
			require.NoError(t, err)
			return p
		}
		near, far := at(128), at(2048)
		fmt.Fprintf(&b, "| %d | %.1f GB | %.2f GB | %.2f GB | %.1f MB | %d KB |\n", rows, float64(near.Weights)/1e9,
			float64(near.Polled)/1e9, float64(far.Polled)/1e9, float64(near.Stored)/1e6, near.Widest>>10)
	}
	return b.String()
}
