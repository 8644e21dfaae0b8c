package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
)

func parsed(t *testing.T, text string) *ir.Program {
	t.Helper()
	p, diags := ir.ParseText([]byte(text), "f")
	require.NoError(t, diags.Err())
	require.NoError(t, ir.Check(p).Err())
	return p
}

const budgetHead = "amk 2.0\nbuffer in IO_INPUT F32 [100000] HBM rowmajor\nbuffer out IO_OUTPUT F32 [2] HBM rowmajor\n"

// Each of these would take more than a budget in one place: the heads of a cache, whose initial rows are a piece
// each, though the view of it does not depend on pos; and the operands of the ops of a loop.
func TestBudgetOfPieces(t *testing.T) {
	for _, c := range []struct{ name, text, says string }{
		{"heads", budgetHead + `buffer c KV_CACHE F32 [33554432,1,1,1] HBM rowmajor
variant v pos 0..15
counter step counter gpu
stage s whole extent=1
  %x = COPY(c[0,0,0,0])
  signal step
`, "more than 1572864 contiguous pieces of views"},
		{"operands", budgetHead + `target t sms=132
buffer m ACTIVATION F32 [3] HBM rowmajor
variant v pos 0..0
counter step counter gpu
loop l for 0..1899
stage s{i} spread extent=132 grain=1 sms=132 rot=0 step=0
  out[0] = ATTENTION_COMBINE(m[0:3]` + strings.Repeat(",m[0:3]", 63) + `) head_dim=1 n_heads=1
  signal step
end
`, "more than 1572864 views of memory that tasks write"},
	} {
		t.Run(c.name, func(t *testing.T) {
			requireCode(t, validate.Program(parsed(t, c.text)), validate.CodeBudget, c.says)
		})
	}
}

// Variants share a budget of half as much again as one may need: the report is the same whichever proof ends first.
func TestBudgetOfVariants(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	text := budgetHead + "buffer m ACTIVATION F32 [100000,5] HBM rowmajor\n"
	for v := range 8 {
		text += fmt.Sprintf("variant v%d pos %d..%d\ncounter step counter gpu\nstage s whole extent=1\n", v, v, v)
		for k := range 5 {
			text += fmt.Sprintf("  m[0:100000,%d] = COPY(in[0:100000])\n", k)
		}
		text += "  signal step\n"
	}
	p := parsed(t, text)
	first := validate.Program(p)
	requireCode(t, first, validate.CodeBudget,
		"variant v5: error: the proofs of the variants before it have needed more than 150%")
	require.Equal(t, 5, first.Stats.Variants)
	for range 3 {
		require.Equal(t, first, validate.Program(p))
	}
}
