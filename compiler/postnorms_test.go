package compiler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/validate"
)

// Programs with norms after the branches of a layer are proved. There is no stage body for them yet, and the message
// says so.
func TestPostNormsAreProvedAndNotEmitted(t *testing.T) {
	for model, want := range map[string]string{
		"gemma2-tied": "stage L{i}.attn_add: error: no stage body runs the ops RMSNORM ADD; there is one for",
		"gemma3-tied": "stage L{i}.attn_add: error: no stage body runs the ops RMSNORM ADD; there is one for",
	} {
		l := lowerModel(t, "zoo/"+model, "h200", ir.BF16, 48, ir.ScheduleConfig{})
		report := validate.Program(l.Program)
		require.True(t, report.OK, "%v", report.Diags)
		_, err := codegen.CUDA(l.Program)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "AMK4001")
	}
}
