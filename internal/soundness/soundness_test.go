package soundness

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/simulate"
)

var (
	programs = flag.Int("programs", usual(), "how many programs to judge")
	report   = flag.String("report", "", "directory to write soundness.md to")
	piece    = flag.String("piece", "1/1", "judge piece K/OF of the programs")
	save     = flag.String("save", "", "file to write what was counted to, for -merge")
	merge    = flag.String("merge", "", "judge nothing, and add up what the files of a `pattern` have counted")
)

// usual is how many programs a run judges that nobody tells how many.
func usual() int {
	if os.Getenv("AMKC_LONG") != "" {
		return Whole
	}
	return 1000
}

// spent is what the oracles spend on a program of a run of n. Schedules and positions are for programs of too many
// states, which take most of the time: the sixteen that are committed take half of it.
func spent(n int) simulate.Effort {
	e := simulate.Effort{States: 2000, Orders: 12, Positions: 3, ExploreWork: 50_000, SampleWork: 50_000}
	if n < Whole {
		e.Orders, e.Positions = 2, 1
	}
	return e
}

// No program that validate accepts goes wrong in any schedule that the oracles have seen, and whatever it rejects
// beyond what they have seen is explained.
func TestPopulation(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	n, rep := judged(t)
	for code := range rep.Strict {
		require.NotEmpty(t, explained[code], "%s rejects %s, which is safe", code, rep.Examples[code])
	}
	all, published := rep.Total(""), rep.Total("published")
	t.Log(all)
	require.Zero(t, all.FalseAccepts)
	if *piece == "1/1" {
		require.GreaterOrEqual(t, all.Programs, n-100)
		if n >= Whole {
			require.Equal(t, Published, published.Programs)
		}
	}
	require.Greater(t, 10*all.Accepted, 2*all.Programs, "enough of both kinds")
	require.Greater(t, 10*all.Unsafe, 3*all.Programs)
	require.Zero(t, all.Disagree)
	require.Greater(t, 10*all.Compared, 8*all.Programs, "enough operands that both have looked at")
	for _, r := range rep.Rows {
		if r.Class == "lowering" || r.Class == "committed" {
			require.Equal(t, r.Programs, r.Accepted, r.Class)
		}
	}
	if *report != "" { // of a run that passes, and no other
		require.NoError(t, os.WriteFile(filepath.Join(*report, "soundness.md"), []byte(rep.Markdown(n, spent(n))),
			0o644))
	}
}

// judged judges a piece of the programs that the flags ask for, or adds up what pieces have counted. It returns how
// many programs the whole run has.
func judged(t *testing.T) (n int, rep *Report) {
	if *merge != "" {
		names, err := filepath.Glob(*merge)
		require.NoError(t, err)
		files := map[string][]byte{}
		for _, name := range names {
			files[name], err = os.ReadFile(name)
			require.NoError(t, err)
		}
		n, rep, err = Merge(files)
		require.NoError(t, err)
		return n, rep
	}
	part, err := ParsePiece(*piece)
	require.NoError(t, err)
	debug.SetGCPercent(800) // many small programs, one after the other
	rep = Run(*programs, part, spent(*programs), func(j *Judgement) {
		if j.FalseAccept() {
			t.Errorf("%s is accepted: %v", j.Case.Name, j.Verdict.Hazard)
		}
		if j.Disagree() {
			t.Errorf("%s: of the operands, validate says %v, and the reference VM %q", j.Case.Name, j.Diags.Err(),
				j.Misfit)
		}
	})
	if *save != "" {
		text, err := json.Marshal(Counted{*programs, part, rep})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(*save, text, 0o644))
	}
	return *programs, rep
}
