package soundness

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/population"
	"amkc/simulate"
)

// counted is what is counted for some programs.
func counted(seeds []uint64) *Report {
	rep := &Report{Strict: map[string]map[string]int{}, Examples: map[string]string{}}
	byClass, fp := map[string]*Row{}, simulate.NewFootprints()
	for _, seed := range seeds {
		rep.count(byClass, "ours", Judge(population.Tokens(seed), fp, simulate.Effort{States: 50, Positions: 1}))
	}
	rep.rows(byClass)
	return rep
}

// The pieces of a run count what the run counts, and only all of them together are a run.
func TestPiecesOfARunAddUp(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	var seeds, all []uint64
	for seed := range uint64(100) {
		seeds = append(seeds, seed)
	}
	files := map[string][]byte{}
	add := func(name string, c Counted) {
		text, err := json.Marshal(c)
		require.NoError(t, err)
		files[name] = text
	}
	for k := 1; k <= 3; k++ {
		part := Piece{k, 3}
		all = append(all, every(seeds, part)...)
		add(part.String(), Counted{100, part, counted(every(seeds, part))})
	}
	slices.Sort(all)
	require.Equal(t, seeds, all)
	programs, merged, err := Merge(files)
	require.NoError(t, err)
	require.Equal(t, 100, programs)
	require.Equal(t, counted(seeds), merged)
	require.NotEmpty(t, merged.Strict)

	refused := func(want string) {
		t.Helper()
		_, _, err := Merge(files)
		require.ErrorContains(t, err, want)
	}
	files["again"] = files["3/3"]
	refused("both are piece 3/3")
	delete(files, "again")
	delete(files, "3/3")
	refused("2 of the 3 pieces")
	add("3/3", Counted{101, Piece{3, 3}, counted(seeds)})
	refused("of 3 pieces of")
	files["3/3"] = []byte("{}")
	refused("3/3: want what a piece of a run has counted")
	files = nil
	refused("want all")
}

func TestParsePiece(t *testing.T) {
	p, err := ParsePiece("2/8")
	require.NoError(t, err)
	require.Equal(t, Piece{2, 8}, p)
	for _, text := range []string{"", "1", "0/2", "3/2", "1/2x", "01/2", "1/-1"} {
		_, err := ParsePiece(text)
		require.ErrorContains(t, err, "want K/OF", text)
	}
}
