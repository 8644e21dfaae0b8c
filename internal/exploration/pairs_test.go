package exploration

import (
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the repository.
var root = filepath.Join("..", "..")

// The builds of the table are emitted as their rows say, and each two properties are together in one of them.
func TestPairs(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	builds := Builds()
	forms := make([]form, len(builds))
	names, seen := map[string]bool{}, make([]valuesSeen, len(builds))
	t.Run("forms", func(t *testing.T) {
		var mu sync.Mutex
		for i, b := range builds {
			require.Len(t, b, len(Columns), "%s", b.Name())
			require.False(t, names[b.Name()], "two rows are called %s", b.Name())
			names[b.Name()] = true
			t.Run(b.Name(), func(t *testing.T) {
				t.Parallel()
				dir, err := b.Compile(t.Context(), root, t.TempDir())
				require.NoError(t, err)
				f, err := formOf(dir, b)
				require.NoError(t, err)
				for _, a := range axes[ofModel:] {
					require.Equal(t, b.stated(a.name), f[a.name], a.name)
				}
				mu.Lock()
				defer mu.Unlock()
				forms[i] = f
				seen[i] = valuesSeen{}
				require.NoError(t, fields(dir, seen[i]))
			})
		}
	})
	require.ElementsMatch(t, elsewhere, missingFields(seen),
		"these constants have not all of their values in the table")
	without, possible := missing(forms)
	for _, p := range without {
		t.Errorf("no build has %s: %s together with %s: %s", p.a, p.value, p.b, p.other)
	}
	require.Empty(t, possible, "these are said to be impossible, and are there")

	// A row less, and a pair is missing, or a value of a constant; a pair that is there cannot be impossible.
	for i := range forms {
		switch builds[i]["model"] {
		case "llama", "gpt-oss-mxfp4", "lfm2-biases": // the plainest build; the only ones with MXFP4, and whose
			continue // convolutions have biases, and take several tokens
		}
		less := append(append([]form{}, forms[:i]...), forms[i+1:]...)
		without, _ = missing(less)
		values := missingFields(append(append([]valuesSeen{}, seen[:i]...), seen[i+1:]...))
		require.True(t, len(without) > 0 || slices.ContainsFunc(values, func(v string) bool {
			return !slices.Contains(elsewhere, v)
		}), "the table needs no %s", builds[i].Name())
	}
}

// What rows cannot ask for is refused, or they do not get it.
func TestImpossible(t *testing.T) {
	for _, c := range []struct {
		edits Build
		want  string
	}{
		{Build{"arch": "sm_75", "prompt": "yes"}, "tensor cores"},
		{Build{"dtype": "fp32", "cache": "fp32", "prompt": "yes"}, "tensor cores"},
		{Build{"sequences": "4", "context": "crossing"}, "want one variant"},
		{Build{"sequences": "2x2", "context": "crossing"}, "want one variant"},
		{nil, ""},
	} {
		b := Build{"model": "llama", "arch": "sm_90", "SMs": "4", "dtype": "bf16", "weights": "none", "cache": "bf16",
			"rows": "1", "sequences": "1", "context": "whole", "prompt": "no", "ends": "chosen", "exchange": "words",
			"barrier": "no", "prefetch": "yes"}
		maps.Copy(b, c.edits)
		_, err := b.Compile(t.Context(), root, t.TempDir())
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.want, "%v", c.edits)
	}
	b := Builds()[0]
	require.Equal(t, "yes", b["prompt"])
	for _, barrier := range []string{"no", "yes"} {
		b["barrier"] = barrier
		dir, err := b.Compile(t.Context(), root, t.TempDir())
		require.NoError(t, err)
		f, err := formOf(dir, b)
		require.NoError(t, err)
		require.Equal(t, barrier, f["barrier"])
		require.Equal(t, barrier == "no", f["prompt"] == "yes")
	}
}

// A pair are two properties that a build may have, of different axes.
type pair struct{ a, value, b, other string }

// pairsOf are the pairs that a form has. Axes of the model come before the others, and each pair is in that order.
func pairsOf(f form) []pair {
	var all []pair
	names := axisNames()
	for i, a := range names {
		for _, b := range names[i+1:] {
			all = append(all, pair{a, f[a], b, f[b]})
		}
	}
	return all
}

func axisNames() []string {
	names := make([]string, 0, len(axes)+1)
	for _, a := range axes {
		names = append(names, a.name)
	}
	return append(names, "ends")
}

// missing are the pairs of values that forms have, each in one of them, of which no form has both and which are not
// impossible; and of those that are said to be impossible the ones that a form has.
func missing(forms []form) (without, possible []pair) {
	values, there := map[string][]string{}, map[pair]bool{}
	for _, f := range forms {
		for name, value := range f {
			if !slices.Contains(values[name], value) {
				values[name] = append(values[name], value)
			}
		}
		for _, p := range pairsOf(f) {
			there[p] = true
		}
	}
	for _, list := range values {
		slices.Sort(list)
	}
	names := axisNames()
	for i, a := range names {
		for _, b := range names[i+1:] {
			for _, value := range values[a] {
				for _, other := range values[b] {
					p := pair{a, value, b, other}
					if _, not := impossible[p]; !not && !there[p] {
						without = append(without, p)
					}
				}
			}
		}
	}
	for p := range maps.Keys(impossible) {
		if there[p] {
			possible = append(possible, p)
		}
	}
	return without, possible
}
