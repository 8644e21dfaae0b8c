package soundness

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/simulate"
)

// What validate rejects of the published population is counted by the code of the first error and by class: all of it,
// and what the oracles call safe. Whether it is right to is for [TestPopulation].
func TestRejections(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	type counts map[string]map[string]int
	count := func(c counts, code, class string) {
		if c[code] == nil {
			c[code] = map[string]int{}
		}
		c[code][class]++
	}
	codes, strict, fp := counts{}, counts{}, simulate.NewFootprints()
	for _, c := range published() {
		diags := Validate(c)
		if len(diags) == 0 {
			continue
		}
		require.NotEqual(t, "lowering", c.Class, diags)
		count(codes, diags[0].Code, c.Class)
		if v := Simulate(c, fp, spent(Whole)); !v.Unsafe() {
			count(strict, diags[0].Code, c.Class)
		}
	}
	if *save != "" {
		text, err := json.Marshal(map[string]counts{"codes": codes, "strict": strict})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(*save, text, 0o644))
	}
}
