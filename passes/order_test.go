package passes

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers"
	"amkc/importers/checkpoint"
	"amkc/importers/modeltest"
	"amkc/ir"
	"amkc/knobs"
	"amkc/refvm"
)

// ordered is a model of which every knob that is an order decides something: contexts have splits, and products have
// few tiles and columns enough to be cut.
const ordered = `{"model_type": "gemma2", "hidden_size": 16, "intermediate_size": 256, "num_hidden_layers": 2,
	"num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 64, "vocab_size": 20, "sliding_window": 40,
	"max_position_embeddings": 72, "torch_dtype": "bfloat16"}`

// Knobs that are not marked as order change no bit of the logits. Those that are do, but for two: how many warps share
// a tile is no matter of the reference VM, and the grain of rows matters only where it makes other parts of columns.
// Without AMKC_LONG, one value of each knob is tried.
func TestOrderOfKnobs(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	config := func() ir.ScheduleConfig {
		c := ir.ScheduleConfig{}
		knobs.SplitFrom.Set(&c, 9)
		knobs.ChunkBytes.Set(&c, 4096) // or its default would follow other knobs
		return c
	}
	run := func(c ir.ScheduleConfig) (logits []float32) {
		s := &State{Source: importers.Source{Name: "ordered", Config: modeltest.OpenConfig(t, ordered)},
			Target: modeltest.ToyTarget(4), Config: c}
		for _, p := range pipeline {
			if p.Run(s) != nil {
				return nil // the value is for other models
			}
		}
		session, err := refvm.NewSession(s.Program, randomWeights(t, s, checkpoint.F32),
			refvm.Options{Round: refvm.Device})
		require.NoError(t, err)
		m := &s.Program.Model
		for pos := range m.MaxSeq {
			row, _, err := session.Step(tokenAt(0, pos, m.Vocab))
			require.NoError(t, err)
			logits = append(logits, row...)
		}
		return logits
	}
	want, moved := run(config()), map[*knobs.Row]bool{}
	require.NotEmpty(t, want)
	for _, r := range knobs.Rows() {
		for _, stage := range r.Each() {
			tried := 0
			for _, n := range candidates(r.Legal) {
				base, c := config(), config()
				was, is := r.Stated(&base, stage)
				if r.Set(&c, stage, n); is && was == n || tried > 0 && !r.Order && os.Getenv("AMKC_LONG") == "" {
					continue
				}
				have := run(c)
				if have == nil {
					continue
				}
				tried++
				same := slices.Equal(want, have)
				require.True(t, same || r.Order, "%s=%d is not marked as order, and changes logits", r.Path(stage), n)
				moved[r] = moved[r] || !same
			}
		}
	}
	for _, r := range []*knobs.Row{knobs.ChunkBytes.Row(), knobs.SplitFrom.Row(), knobs.MaxSplits.Row(),
		knobs.SplitK.Row(), knobs.Parts.Row()} {
		require.True(t, moved[r], r.Path(""))
	}
}
