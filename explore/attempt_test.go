package explore

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
)

// What a worker refuses keeps its code on its way.
func TestProblemsKeepTheirCodes(t *testing.T) {
	of := func(err error) error {
		text, wrong := json.Marshal(Outcome{problem: problemOf(err)})
		require.NoError(t, wrong)
		var outcome Outcome
		require.NoError(t, json.Unmarshal(text, &outcome))
		require.NotEmpty(t, outcome.Problem)
		return outcome.err("job gpu", "cannot be run")
	}
	one := diag.Errorf(codeRecording, "trace.json", "has a cache of 3 bytes").With("a note")
	require.Equal(t, diag.List{one}, of(fmt.Errorf("gpu: %w", one)))
	require.Equal(t, diag.List{one, one}, of(diag.List{one, one}))
	require.EqualError(t, of(errors.New("no memory")), "job gpu: error: cannot be run: no memory [AMK4924]")
}

// A trace that no job would compare with is refused, and not only read.
func TestTraceWantsItsJob(t *testing.T) {
	_, err := Explore(t.Context(), Options{Build: "none", Recording: "trace.json", Jobs: []string{"text"}})
	require.EqualError(t, err, "--trace: error: nothing would be compared with trace.json, which job gpu alone does; "+
		"want --job gpu too, or no --job [AMK4923]")
}

// Of what a machine finds in a launch that was aborted, garbage is left out: not a race of a plain access and a word,
// nor anything that comes after.
func TestGarbageIsLeftOut(t *testing.T) {
	race := func(of string) Finding {
		return Finding{Kind: "race", Message: "data race of 4 bytes at exchange + 0x0: " + of}
	}
	all := []Finding{race("plain access write after plain access read"), race("word write after plain access read"),
		race("plain access write after atomic read"), race("bulk copy write after plain access read"),
		{Kind: "outside"}, race("plain access write after plain access read")}
	a := &attempt{garbage: 5}
	require.Equal(t, []Finding{all[1], all[2], all[4], all[5]}, a.withoutGarbage(all))
}
