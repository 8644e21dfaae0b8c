package passes

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers"
	"amkc/importers/modeltest"
	"amkc/ir"
	"amkc/knobs"
	"amkc/passes/rewrite"
)

// How Gemma's products are cut on 132 SMs: down where that spreads its tiles better, and o nowhere, whose tiles are
// smaller than the words that it would cost. They are cut alike in passes of several tokens.
func TestSplitK(t *testing.T) {
	const config = `{"model_type": "gemma2", "hidden_size": %d, "intermediate_size": %d, "num_hidden_layers": 2,
		"num_attention_heads": %d, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 64,
		"max_position_embeddings": 64, "torch_dtype": "bfloat16"}`
	h200 := &ir.Targets[slices.IndexFunc(ir.Targets, func(t ir.Target) bool { return t.Name == "h200" })]
	for _, c := range []struct {
		hidden, intermediate, heads int
		most, want                  int
		fp32                        bool
	}{
		{hidden: 2304, intermediate: 9216, heads: 8, most: 4, want: 2},
		{hidden: 3584, intermediate: 14336, heads: 16, most: 4, want: 2},
		{hidden: 3584, intermediate: 14336, heads: 16, most: 1, want: 1}, // told not to
		{hidden: 3840, intermediate: 15360, heads: 16, most: 4, want: 1}, // 8 halves are 4 tiles
		{hidden: 4096, intermediate: 14336, heads: 16, most: 4, want: 1}, // spreads well as it is
		{hidden: 3584, intermediate: 14368, heads: 16, most: 4, want: 1}, // no whole quads
		{hidden: 3584, intermediate: 14336, heads: 16, most: 4, want: 2, fp32: true},
		{hidden: 4608, intermediate: 18432, heads: 16, most: 4, want: 2},
		{hidden: 4608, intermediate: 18432, heads: 16, most: 4, want: 1, fp32: true}, // 9,216 values, of 8,192
	} {
		s := &State{Target: h200, Source: importers.Source{Name: "gemma",
			Config: modeltest.OpenConfig(t, fmt.Sprintf(config, c.hidden, c.intermediate, c.heads))}}
		if c.fp32 {
			dtype := ir.F32
			s.Source.DType = &dtype
		}
		knobs.SplitK.Set(&s.Config, c.most)
		for _, s.Pass = range []ir.Pass{{}, ir.PassOf(1, 8), ir.PassOf(3, 1)} {
			lowered(t, s, "split_k")
			rewrite.EachStage(&s.Program.Variants[0], func(st *ir.Stage, _ *ir.Loop) {
				want := map[string]int{"o": 1, "down": c.want}[st.Role]
				if want == 0 {
					return
				}
				require.Equal(t, want*c.hidden, st.Dist.Extent, "%s of %+v", st.Role, c)
				part := map[int]bool{}
				for _, task := range st.Dist.Tasks(0) {
					require.Equal(t, task.A/c.hidden, (task.B-1)/c.hidden, "%s of %+v: a task of two parts", st.Role, c)
					part[task.A/c.hidden] = true
				}
				require.Len(t, part, want)
			})
		}
	}
}
