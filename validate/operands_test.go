package validate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/simulate"
	"amkc/validate"
)

// misfits are the programs of testdata/operands: an op whose operands the reference VM refuses, and what is said of
// them.
var misfits = map[string]string{
	"argmax_output_gap":  "SAMPLE_ARGMAX: output 1 has 8 elements, want 1, as many as the result",
	"argmax_overflow":    "SAMPLE_ARGMAX: output 1 has 4 elements, want 8, as many as the result",
	"argmax_undefined":   "SAMPLE_ARGMAX: output 1 has 8 elements, want 4, as many as the result",
	"attention_head_dim": "ATTENTION_TILE: operand 2 has the shape [rows 8], want [rows 4]",
	"embed_3d":           "EMBED: output 1 has 8 elements, want 16, as many as the result",
	"embed_no_rows":      "EMBED: the table has no rows, want at least the one that an id names",
	"rope_3_positions": "ROPE: x has 16 elements for 3 positions, want whole heads of 8 for each, and at " +
		"least one position",
	"rope_no_positions": "ROPE: x has 16 elements for 0 positions, want whole heads of 8 for each, and at " +
		"least one position",
	"profile_argmax_overflow": "SAMPLE_ARGMAX: output 1 has 2 elements, want 4, as many as the result",
}

// Operands that do not fit are refused whatever form the program has, and the message says what would fit. The oracle
// finds fault with each program too.
func TestOperandsThatDoNotFit(t *testing.T) {
	files, err := filepath.Glob("testdata/operands/*")
	require.NoError(t, err)
	require.Len(t, files, len(misfits))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		t.Run(name, func(t *testing.T) {
			require.NotEmpty(t, misfits[name])
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			effort := simulate.Effort{States: 100, Positions: 1}
			if filepath.Ext(file) == ".json" {
				p, diags := interchange.Parse(text, file)
				require.Empty(t, diags.Errors())
				f, diags := p.Flatten()
				require.Empty(t, diags.Errors())
				requireCode(t, validate.Flat(f), validate.CodeShapes, misfits[name])
				require.Equal(t, simulate.Refused, simulate.Flat(f, nil, simulate.NewFootprints(), effort).Hazard.Kind)
				return
			}
			p := parse(t, string(text))
			requireCode(t, validate.Program(p), validate.CodeShapes, misfits[name])
			require.Equal(t, simulate.Refused, simulate.Program(p, simulate.NewFootprints(), effort).Hazard.Kind)
		})
	}
}
