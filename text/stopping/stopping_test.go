package stopping

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Which stop string is found, and where, does not depend on how the text is cut into parts; nor are letters held back
// longer than they have to be.
func TestFindingDoesNotDependOnParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	letters := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "ab"[rng.IntN(2)]
		}
		return string(b)
	}
	for range 2000 {
		text := letters(rng.IntN(24))
		stops := make([]string, rng.IntN(4))
		for i := range stops {
			stops[i] = letters(1 + rng.IntN(6))
		}
		want, which, stopped := text, "", false
		for end := 1; end <= len(text) && !stopped; end++ {
			for _, stop := range stops {
				if strings.HasSuffix(text[:end], stop) && (!stopped || end-len(stop) < len(want)) {
					want, which, stopped = text[:end-len(stop)], stop, true
				}
			}
		}
		s, got, found, rest := Finder{Stops: stops}, "", false, text
		for rest != "" && !found {
			n := 1 + rng.IntN(len(rest))
			var part string
			part, found = s.Push(rest[:n])
			got, rest = got+part, rest[n:]
			for k := 1; !found && k <= len(s.held); k++ {
				require.False(t, k == len(s.held) && !startsOne(stops, s.held), "%q is held for nothing", s.held)
			}
		}
		if !found {
			got += s.Flush()
		}
		require.Equal(t, stopped, found)
		require.Equal(t, which, s.Found)
		require.Equal(t, want, got, "%q without %q", text, stops)
	}
}

func startsOne(stops []string, held string) bool {
	for _, stop := range stops {
		if strings.HasPrefix(stop, held) {
			return true
		}
	}
	return false
}
