package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
	"amkc/validate"
	"amkc/validate/kernel"
)

// attending is a program whose attention looks at some rows of a cache of n positions, in one part or in four.
func attending(rows string, parts, positions int) string {
	share, own, tasks, params, width := "", "pos", "", "", 16
	if parts > 1 {
		share = fmt.Sprintf(" block 16 part a of %d", parts)
		params = fmt.Sprintf(" flags=2 block=16 part=a parts=%d", parts)
		own, width = "pos:pos+1"+share, 18
	}
	for a := range parts {
		tasks += fmt.Sprintf("  task sm=%d a=%d b=%d\n", a, a, a+1)
	}
	return fmt.Sprintf(`amk 2.0
buffer w WEIGHT F32 [16] HBM rowmajor
buffer kv KV_CACHE F32 [1,%[1]d,2,16] HBM kvrows16
buffer part ACTIVATION F32 [%[2]d,18] GLOBAL_SCRATCH rowmajor
buffer next IO_OUTPUT I32 [1] HBM rowmajor
buffer sampling IO_INPUT I32 [4] HBM rowmajor
variant all pos 0..%[3]d
counter part counter gpu
counter step counter gpu
stage part explicit
%[4]s  part[a,0:%[5]d] = ATTENTION_TILE(w[0:16], kv[0,%[6]s%[7]s,0,0:16], kv[0,%[6]s%[7]s,1,0:16], w[0:16], w[0:16]) `+
		`head_dim=16 n_heads=1 n_kv_heads=1 scale=0.25 row=pos%[8]s
  kv[0,%[9]s,0,0:16] = KV_APPEND(w[0:16])
  kv[0,%[9]s,1,0:16] = KV_APPEND(w[0:16])
  signal part
stage next explicit
  task sm=0 a=0 b=1
  wait part >= %[2]d
  next[0] = SAMPLE(part[0,0:16], sampling[0:4]) pos=pos
  signal step
`, positions, parts, positions-1, tasks, width, rows, share, params, own)
}

// A window is proved whatever it is, and rows that are not there or not yet are refused.
func TestWindows(t *testing.T) {
	for _, c := range []struct {
		rows      string
		positions int
		code      *diag.Code // nil: proved
		says      string
	}{
		{rows: "0:pos", positions: 256},
		{rows: "max(0,pos-15):pos", positions: 256},
		{rows: "max(0,pos-99):pos", positions: 256},
		{rows: "max(0,pos):pos", positions: 256},
		{rows: "max(0,pos-300):pos", positions: 256},
		{rows: "max(0,pos-15)/16*16:pos", positions: 256},
		{rows: "max(0,min(pos,100)-15):min(pos,100)", positions: 256},
		{rows: "max(0,pos-4095):pos", positions: 1 << 20}, // more than could be tried one by one
		{rows: "max(0,pos-4095)/16*16:pos", positions: 1 << 20, code: validate.CodeBudget,
			says: "evaluations of a bound that is not affine in pos"},
		{rows: "pos-15:pos", positions: 256, code: validate.CodeBounds,
			says: "covers [-15, 0) of dimension 1 at pos 0"},
		{rows: "max(0-1,pos-15):pos", positions: 256, code: validate.CodeBounds, says: "begin the view at 0"},
		{rows: "max(0,pos-15):pos+1", positions: 256, code: validate.CodeUndefined, says: "only rows below pos"},
		{rows: "max(0,pos-15):max(pos,200)", positions: 256, code: validate.CodeUndefined, says: "at pos"},
		{rows: "max(0,pos-15):max(pos,257)", positions: 256, code: validate.CodeBounds, says: "covers [0, 257)"},
	} {
		for _, parts := range []int{1, 4} {
			rep := validate.Program(parse(t, attending(c.rows, parts, c.positions)))
			if c.code == nil {
				require.NoError(t, rep.Diags.Err(), "%s in %d parts", c.rows, parts)
				continue
			}
			requireCode(t, rep, c.code, c.says)
		}
	}
}

// The kernel copies whole blocks of rows, and does not tell parts apart within one. Those of a window are of one part;
// where parts share blocks, that is refused.
func TestWindowsAreCopiedInBlocks(t *testing.T) {
	text := attending("max(0,pos-40):pos", 4, 256)
	at := func(block string) validate.Report {
		edited := strings.NewReplacer("block 16", "block "+block, "block=16", "block="+block).Replace(text)
		return validate.ProgramFor(kernel.Backend, parse(t, edited))
	}
	code := func(rep validate.Report) bool {
		for _, d := range rep.Diags {
			if d.Code == kernel.CodeRunAhead.ID {
				return true
			}
		}
		return false
	}
	require.False(t, code(at("16")))
	require.False(t, code(at("32")))
	require.True(t, code(at("8")))
}
