package passes

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers"
	"amkc/importers/checkpoint"
	"amkc/importers/modeltest"
	"amkc/ir"
	"amkc/passes/rewrite"
)

// Every layer ends in an arrive and a join on every SM, also the last one, in a loop as without; their counter counts
// although the exchanges are flagged.
func TestBarrierEndsEveryLayer(t *testing.T) {
	state := func(barrier int) *State {
		return &State{Source: importers.Source{Name: "tiny", Config: modeltest.OpenConfig(t, modeltest.TinyConfig)},
			Target: modeltest.ToyTarget(6),
			Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"split_from": 32},
				"loop": {"barrier": barrier}}}}
	}
	flat := lowered(t, state(1), "barrier").Program
	require.NoError(t, ir.Expand(flat))
	for i := range flat.Variants {
		var stages []*ir.Stage
		rewrite.EachStage(&flat.Variants[i], func(st *ir.Stage, l *ir.Loop) {
			require.Nil(t, l)
			stages = append(stages, st)
		})
		var names []string
		for k, st := range stages {
			if st.Ops[0].Code == ir.NOP {
				names = append(names, st.Name)
				require.Len(t, st.Dist.Tasks(0), 6)
			}
			if st.Name == "L01.join" {
				require.Equal(t, "hidden", stages[k+1].Name)
			}
		}
		require.Equal(t, []string{"L00.arrive", "L00.join", "L01.arrive", "L01.join", "join"}, names)
	}

	rolled := lowered(t, state(1), "exchange").Program
	plain := lowered(t, state(0), "exchange").Program
	for i := range rolled.Variants {
		v := &rolled.Variants[i]
		realised := map[string]ir.Realisation{}
		for _, c := range v.Counters {
			realised[c.Name] = c.How
		}
		require.Equal(t, ir.ByCounter, realised["L{i}.join"])
		require.Equal(t, ir.Flagged, realised["L{i}.qkv"])
		var body, without []*ir.Stage
		rewrite.EachStage(v, func(st *ir.Stage, l *ir.Loop) {
			if l != nil {
				body = append(body, st)
			}
		})
		rewrite.EachStage(&plain.Variants[i], func(st *ir.Stage, l *ir.Loop) {
			if l != nil {
				without = append(without, st)
			}
		})
		n := len(without)
		require.Len(t, body, n+2)
		for k := range without {
			require.Equal(t, ir.PrintStage(without[k]), ir.PrintStage(body[k]), "nothing else changes")
		}
		require.Equal(t, []ir.Wait{{Counter: "L{i}.join", Threshold: 6}}, body[n+1].Waits)
	}
	require.Equal(t, fmt.Sprint(plain.Pages), fmt.Sprint(rolled.Pages))
}

// No exchange of any model is on another page for the barrier: nothing that is emitted rests on the order that it adds.
// Passes of rows and of sequences are laid out alike too.
func TestBarrierMovesNoPage(t *testing.T) {
	const zoo = "../testdata/models/zoo/"
	dirs, err := os.ReadDir(zoo)
	require.NoError(t, err)
	of := []ir.Pass{{}, {Rows: 4}, {Sequences: 2, Rows: 2}}
	if testing.Short() {
		of = of[:1]
	}
	compared := 0
	for _, dir := range dirs {
		for _, pass := range of {
			var pages []string
			for barrier := range 2 {
				c, err := checkpoint.Open(zoo + dir.Name())
				require.NoError(t, err)
				defer c.Close()
				s := &State{Source: importers.Source{Name: dir.Name(), Config: c.Config, Weights: c},
					Target: modeltest.ToyTarget(6),
					Pass:   pass,
					Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"loop": {"barrier": barrier}}}}
				at := slices.IndexFunc(pipeline, func(p Pass) bool { return p.Name == "pagecolor" })
				for _, p := range pipeline[:at+1] {
					if err = p.Run(s); err != nil {
						break
					}
				}
				if err != nil {
					break
				}
				text := fmt.Sprint(s.Program.Pages)
				for i := range s.Program.Buffers {
					text += fmt.Sprint(" ", s.Program.Buffers[i].Name, s.Program.Buffers[i].Pages)
				}
				pages = append(pages, text)
			}
			if len(pages) == 2 {
				compared++
				require.Equal(t, pages[0], pages[1], "%s, %v", dir.Name(), pass)
			}
		}
	}
	require.Greater(t, compared, 50*len(of), "models and passes")
}
