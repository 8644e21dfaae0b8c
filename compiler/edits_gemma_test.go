package compiler

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate"
	"amkc/validate/kernel"
)

// What a program says of the scale of its embedding, of the offset of its norms and of the activation of its gate is
// what the kernel computes, or it is refused.
func TestEditsOfScaleOffsetAndGate(t *testing.T) {
	const norm = "L{i}.input_norm.weight[0:60]) eps=1e-05"
	testEdits(t, "gemma-tied", map[string]edited{
		"another scale":        {") scale=7.75", ") scale=7.5", ""},
		"no scale":             {") scale=7.75", ")", ""},
		"a scale of 1":         {") scale=7.75", ") scale=1.0", ""},
		"no offset":            {norm + " unit_offset=1", norm, ""},
		"an offset that is 0":  {norm + " unit_offset=1", norm + " unit_offset=0", "the kernel's gemv would compute"},
		"an offset that is 2":  {"unit_offset=1", "unit_offset=2", "0 (w) or 1 (1 + w)"},
		"another activation":   {"GELU_TANH_MUL", "SILU_MUL", ""},
		"an activation of one": {"GELU_TANH_MUL", "GELU", "GELU"},
	})
}

// An edited is other text in a program, and what the refusal says; "" where the emitted code follows.
type edited struct{ old, new, want string }

// testEdits edits the golden program of a small model for the H200, in BF16.
func testEdits(t *testing.T, model string, edits map[string]edited) {
	t.Helper()
	raw, err := os.ReadFile(root + "/golden/" + model + "_h200_bf16/schedule.amk")
	require.NoError(t, err)
	testEditsOf(t, raw, lowerModel(t, "zoo/"+model, "h200", ir.BF16, 64, ir.ScheduleConfig{}).Graph, edits)
}

// testEditsOf edits a program of a graph.
func testEditsOf(t *testing.T, raw []byte, g *ir.Graph, edits map[string]edited) {
	t.Helper()
	original, err := ir.Parse(raw, "schedule.amk")
	require.NoError(t, err)
	before, err := sourcesOf(original, g)
	require.NoError(t, err)
	for name, c := range edits {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, string(raw), c.old)
			p, err := ir.Parse([]byte(strings.Replace(string(raw), c.old, c.new, 1)), "edited.amk")
			var files map[string][]byte
			if err == nil {
				err = validate.ProgramFor(kernel.Backend, p).Diags.Err()
			}
			if err == nil {
				files, err = sourcesOf(p, g)
			}
			if c.want == "" {
				require.NoError(t, err)
				emitted := func(of map[string][]byte) string {
					return string(of["schedule.h"]) + string(of["stages.h"]) + string(of["megakernel.cu"])
				}
				require.False(t, emitted(before) == emitted(files), "the code is the same")
				require.Equal(t, string(before["reference.cu"]), string(files["reference.cu"]), "as the model says")
				return
			}
			require.Error(t, err)
			text := err.Error()
			if d, ok := err.(*diag.Diagnostic); ok {
				text += strings.Join(d.Related, "\n")
			}
			require.Contains(t, text, c.want)
		})
	}
}
