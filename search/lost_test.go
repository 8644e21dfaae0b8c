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

	"amkc/ir/diag"
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
		require.NoError(t, toyPublic.Check(again), script)
	}
	v := toyVerdict(c, j)
	v.Why = "half of a character: \xc3"
	toyKey.Sign(v)
	text, err := json.Marshal(v)
	require.NoError(t, err)
	again, err := ParseVerdict(text, "v")
	require.NoError(t, err)
	require.NoError(t, toyPublic.Check(again))
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
		_, err := j.Merge(nil, toyPublic)
		require.ErrorContains(t, err, "AMK6013", "%s of %d", first, p.First)
	}
}

// What could not be tried is entered once, also where a merge is killed after a round of which some was not made.
func TestRefusalsAreEnteredOnce(t *testing.T) {
	dir := t.TempDir()
	c := toyCampaign(knobs.Settings{})
	require.NoError(t, Create(dir, c))
	_, _ = inRounds(t, dir, Budget{Trials: 1}, func(p *Plan) { inProcess(t, dir, p, 0) })
	j, err := OpenJournal(dir)
	require.NoError(t, err)
	_, digest, err := LoadCampaign(dir)
	require.NoError(t, err)
	p := &Plan{Schema: PlanSchema, Campaign: digest, Previous: j.previous, First: 1}
	for n, pace := range []knobs.Value{"600", "", "400", "", "200"} {
		planned := Planned{Job: Job{N: 1 + n, Role: RoleCandidate, Rung: Screen, Settings: knobs.Settings{},
			Against: c.Start}}
		if pace == "" {
			planned.Refused = diag.Errorf(codeProposal, "toy", "out of ideas")
		} else {
			planned.Settings["tiling.ring.pace"] = pace
		}
		p.seal(&planned)
		p.Trials = append(p.Trials, planned)
	}
	require.NoError(t, p.write(dir))
	inProcess(t, dir, p, 2)
	inProcess(t, dir, p, 4) // the first was not made when the time was up
	require.NoError(t, toyRunner(j, 100).enter(j, p, toyPublic))
	require.NoError(t, j.Close())
	whole := trialsOf(t, dir)
	lines := strings.SplitAfter(whole, "\n")
	require.Len(t, lines, 6, "the start, four of the round, and nothing behind them")
	for n := 2; n < 5; n++ {
		require.NoError(t, os.WriteFile(filepath.Join(dir, trialsName), []byte(strings.Join(lines[:n], "")), 0o644))
		merge(t, dir)
		require.Equal(t, whole, trialsOf(t, dir), "killed behind %d of them", n)
	}
}
