package soundness

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/population"
	"amkc/ir/diag"
	"amkc/simulate"
	"amkc/validate"
	"amkc/validate/kernel"
)

// Families of programs in which one rule alone decides: what it accepts is safe, and much of what it rejects an
// oracle sees go wrong. So the rule is neither too weak nor much too strict. AMKC_LONG judges more of them.
func TestFamilies(t *testing.T) {
	seeds := 500
	if os.Getenv("AMKC_LONG") != "" {
		seeds = 1500
	}
	for _, f := range []struct {
		name   string
		draw   func(uint64) population.Case
		code   *diag.Code
		strict int // of 100 rejections for the code, in how many the oracle sees nothing at most
	}{
		{"indices", population.Indices, validate.CodeIndex, 25}, // a buffer counts as a whole
		{"streamed", population.Streamed, kernel.CodeRunAhead, 55},
		// whole blocks are copied, and what is written after the reader counts
	} {
		t.Run(f.name, func(t *testing.T) {
			fp := simulate.NewFootprints()
			accepted, rejected, strict := 0, 0, 0
			for seed := range uint64(seeds) {
				j := Judge(f.draw(seed), fp, spent(Whole))
				require.False(t, j.FalseAccept(), "%s: %v", j.Case.Name, j.Verdict.Hazard)
				switch {
				case len(j.Diags) == 0:
					accepted++
				case j.Diags[0].Code == f.code.ID:
					if rejected++; !j.Verdict.Unsafe() {
						strict++
					}
				}
			}
			t.Logf("%d of %d accepted, %d rejected for %s, %d of them without a hazard", accepted, seeds, rejected,
				f.code.ID, strict)
			require.Greater(t, accepted, seeds/4)
			require.Greater(t, rejected, seeds/6)
			require.LessOrEqual(t, 100*strict, f.strict*rejected)
		})
	}
}
