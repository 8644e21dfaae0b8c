package cli

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler/formats"
	"amkc/cost"
)

// TestFormatsSayTheirError: two formats of the same matrices whose predicted times are as close as predictions are off
// are said not to be told apart, and so is what is gained by less; others are not.
func TestFormatsSayTheirError(t *testing.T) {
	tried := func(change string, us float64) formats.Tried {
		return formats.Tried{Weights: change, Change: change, Step: formats.Step{US: us}, Accepted: true}
	}
	near, far := 1+cost.FormatError/2, 1+2*cost.FormatError
	alone := []formats.Tried{tried("q=int8,k=int8", 100), tried("q=int4,k=int4", 100*near), tried("o=int8", 100),
		tried("o=int4", 100*far)}
	require.Equal(t, [][2]string{{"q=int8,k=int8", "q=int4,k=int4"}}, notToldApart(alone))
	require.Equal(t, [][2]string{}, notToldApart(nil), "a list in JSON, and not null")

	says := func(best float64) string {
		r := &formats.Result{AsIs: tried("", 100*far*far), Alone: alone, Best: tried("o=int8", best)}
		return formatsText(r, &formatsFlags{})
	}
	text := says(100)
	off := fmt.Sprintf("is off by %.1f %%", 100*cost.FormatError)
	require.Contains(t, text, off)
	require.Contains(t, text, "not told apart: q=int8,k=int8 and q=int4,k=int4\n")
	require.NotContains(t, text, "o=int8 and o=int4")
	require.NotContains(t, text, "what is gained")
	require.Contains(t, says(100*far*far/near), "what is gained is less than that: compare both builds with amkc bench")
	require.Contains(t, formatsText(&formats.Result{}, &formatsFlags{}), off)
}
