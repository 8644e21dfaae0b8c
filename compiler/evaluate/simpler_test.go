package evaluate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/knobs"
	"amkc/search"
)

// A candidate that is as fast as its baseline within 1 % and simpler wins; one that is neither does not, nor one that
// is predicted to be as fast.
func TestSimplerWinsATie(t *testing.T) {
	depth := func(n knobs.Value) knobs.Settings { return knobs.Settings{"pipelining_depth": n} }
	slower := func(part float64) *fakeGPU {
		g := newFakeGPU()
		g.us = func(e string, _, _ int) float64 {
			if e == candidate {
				return 100 * part
			}
			return 100
		}
		return g
	}
	v := slower(1).judges(t, requestFor(t, depth("2"), depth("4")))
	require.Equal(t, "2 chunks in flight in place of 4", v.Simpler)
	require.Equal(t, search.Keep, v.Decision, v.Why)
	require.Contains(t, v.Why, "and it is simpler: 2 chunks in flight in place of 4")
	require.False(t, v.Confirms(), "that is no gain")
	for why, v := range map[string]*search.Verdict{
		"less simple":    slower(1).judges(t, requestFor(t, depth("4"), depth("2"))),
		"shown slower":   slower(1.005).judges(t, requestFor(t, depth("2"), depth("4"))),
		"slower by 2 %":  slower(1.02).judges(t, requestFor(t, depth("2"), depth("4"))),
		"predicted":      judgedAs(t, requestFor(t, depth("2"), depth("4"))),
		"against itself": slower(1).judges(t, requestFor(t, depth("2"), depth("2"))),
	} {
		require.Equal(t, search.Revert, v.Decision, why)
	}
	v = slower(0.9).judges(t, requestFor(t, depth("2"), depth("4")))
	require.Contains(t, v.Why, "the ratio is at most 0.90", "a gain is kept for what it is")

	// It comes to the last rung without half of a gain, and a slower one does not.
	for part, want := range map[float64]search.Decision{0.999: search.Promising, 1.004: search.Revert} {
		r := requestFor(t, depth("2"), depth("4"))
		r.Rung = search.Race
		require.Equal(t, want, slower(part).judges(t, r).Decision, part)
		r.Candidate, r.Baseline = r.Baseline, r.Candidate
		require.Equal(t, search.Revert, slower(part).judges(t, r).Decision, part)
	}
}

func TestSimpler(t *testing.T) {
	was := []measure{{"tasks", 1000, 10}, {"pages", 5, 1}}
	for want, is := range map[string][]measure{
		"990 tasks in place of 1000":                        {{"tasks", 990, 9}, {"pages", 5, 1}},
		"900 tasks in place of 1000, 4 pages in place of 5": {{"tasks", 900, 9}, {"pages", 4, 1}},
		"4 pages in place of 5":                             {{"tasks", 991, 9}, {"pages", 4, 1}},
	} {
		require.Equal(t, want, simpler(is, was))
	}
	for _, is := range [][]measure{was, {{"tasks", 991, 9}, {"pages", 5, 1}}, {{"tasks", 500, 5}, {"pages", 6, 1}},
		{{"tasks", 1001, 10}, {"pages", 1, 1}}} {
		require.Empty(t, simpler(is, was))
	}
}

// What takes more than 80 % of the target's memory is no candidate.
func TestRoom(t *testing.T) {
	r := requestFor(t, knobs.Settings{"tiling.ring.pace": "500"}, nil)
	l, err := compiler.RunPasses(r.Options)
	require.NoError(t, err)
	defer l.Close()
	f, err := compiler.Memory(l.Program)
	require.NoError(t, err)
	target := *r.Options.Target
	r.Options.Target = &target
	for bytes, want := range map[int]search.Class{int(float64(f.Bytes()) / 0.81): search.Rejected,
		int(float64(f.Bytes()) / 0.79): search.Pass, 0: search.Pass} {
		target.HBMBytes = bytes
		v := judgedAs(t, r)
		require.Equal(t, want, v.Class, "%d bytes", bytes)
		if want == search.Rejected {
			require.Equal(t, codeMemory.ID, v.Reason.Code)
			require.Contains(t, v.Reason.Msg, "more than the 80 % (")
		}
	}
}
