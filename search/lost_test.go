//go:build unix

package search

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
)

// What crashes while a stage is looked at is a trial of that campaign, and does not end it.
func TestTrialsOfAStageThatFail(t *testing.T) {
	c, j := toyCampaign(knobs.Settings{}), finalJob()
	c.Stage, c.Objective = "qkv", ObjectiveOfStage
	v, err := workerOf(c, "exit 3").Evaluate(t.Context(), j)
	require.NoError(t, err)
	require.Equal(t, Crash, v.Class)
	require.NoError(t, c.verdictFor(j, v))
	j.Role = RoleConfirm // which is about a step
	v, err = workerOf(c, "exit 3").Evaluate(t.Context(), j)
	require.NoError(t, err)
	require.NoError(t, c.verdictFor(j, v))
}

// A verdict that was written and read is the one that was signed, whatever a process has said.
func TestSignaturesOfWhateverWasSaid(t *testing.T) {
	c, j := toyCampaign(knobs.Settings{}), finalJob()
	for _, script := range []string{
		`i=0; while [ $i -lt 300 ]; do printf 'é' >&2; i=$((i+1)); done; exit 1`, // cut at 500 bytes
		`printf 'x' >&2; i=0; while [ $i -lt 300 ]; do printf 'é' >&2; i=$((i+1)); done; exit 1`,
		`printf 'a\377b' >&2; exit 1`,
	} {
		v, err := workerOf(c, script).Evaluate(t.Context(), j)
		require.NoError(t, err)
		require.True(t, utf8.ValidString(v.Reason.Msg), script)
		text, err := json.Marshal(v)
		require.NoError(t, err)
		again, err := ParseVerdict(text, "v")
		require.NoError(t, err)
		require.NoError(t, toyKey.Check(again), script)
	}
	v := toyVerdict(c, j)
	v.Why = "half of a character: \xc3"
	toyKey.Sign(v)
	text, err := json.Marshal(v)
	require.NoError(t, err)
	again, err := ParseVerdict(text, "v")
	require.NoError(t, err)
	require.NoError(t, toyKey.Check(again))
}

// A plan is a file, which anybody may have edited.
func TestPlansThatBeginNowhere(t *testing.T) {
	j, _ := ran(t, toyCampaign(knobs.Settings{}), 3)
	p, _, err := j.Plan(t.Context(), nil, Budget{})
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(j.dir, planName))
	require.NoError(t, err)
	for _, first := range []string{"-1", "2", "1000000"} {
		edited := strings.Replace(string(text), `"first": 3`, `"first": `+first, 1)
		require.NotEqual(t, string(text), edited)
		require.NoError(t, os.WriteFile(filepath.Join(j.dir, planName), []byte(edited), 0o644))
		_, err := j.Merge(nil, toyKey)
		require.ErrorContains(t, err, "AMK6013", "%s of %d", first, p.First)
	}
}
