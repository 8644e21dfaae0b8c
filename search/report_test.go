package search

import (
	"flag"
	"fmt"
	"html"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/injection"
	"amkc/knobs"
)

var update = flag.Bool("update", false, "rewrite goldens")

func golden(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

// The twelve columns of the playbook come first, in its order, and every trial has a row.
func TestResults(t *testing.T) {
	j, _ := ran(t, toyCampaign(knobs.Settings{}), 30)
	text := j.State.Results()
	golden(t, "testdata/results.golden", text)
	rows := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	require.Equal(t, strings.Fields("experiment tag loop model gpu regime kept correctness latency_us pct_of_roofline "+
		"schedule_or_kernel_id description"), strings.Split(rows[0], "\t")[:12])
	require.Len(t, rows, 1+len(j.State.Trials()))
	kept := 0
	for _, row := range rows[1:] {
		cells := strings.Split(row, "\t")
		require.Len(t, cells, len(resultColumns))
		require.Equal(t, cells[7] == "PASS", cells[8] != "", "a latency with a check that has passed, and only then")
		if cells[6] == "keep" {
			kept++
		}
	}
	require.Positive(t, kept)

	// Predictions are not latencies, and nothing is kept for them.
	c := toyCampaign(knobs.Settings{})
	c.Device = DeviceCost
	j, _ = ran(t, c, 30)
	predicted := 0
	for _, row := range strings.Split(strings.TrimSuffix(j.State.Results(), "\n"), "\n")[1:] {
		cells := strings.Split(row, "\t")
		require.Equal(t, []string{"revert", ""}, []string{cells[6], cells[8]})
		require.NotEqual(t, "PASS", cells[7], "the cost model checks nothing")
		if cells[7] == "PREDICTED" {
			predicted++
		}
	}
	require.Positive(t, predicted)
	sound := j.State.Soundness()
	require.Positive(t, sound.Accepted)
	require.Equal(t, sound.Accepted, sound.AcceptedUnchecked)
	page, err := j.State.Report()
	require.NoError(t, err)
	require.Contains(t, string(page), fmt.Sprintf("0 of them unproved, %d unchecked.", sound.Accepted))
	require.Contains(t, string(page), "PASS 0. PREDICTED ")
}

func TestReport(t *testing.T) {
	j, _ := ran(t, toyCampaign(knobs.Settings{}), 80)
	page, err := j.State.Report()
	require.NoError(t, err)
	again, err := j.State.Report()
	require.NoError(t, err)
	require.Equal(t, string(page), string(again))
	text := html.UnescapeString(string(page))
	for _, want := range []string{"Confirmed in a process of its own at held-out positions 50", "AMK6011",
		"the toy broke", "Not proposed any more", "0 of them unproved", "81 trials"} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "<script")
	require.NotContains(t, text, "NaN")

	c := toyCampaign(knobs.Settings{})
	c.Device = DeviceCost
	j, _ = ran(t, c, 30)
	page, err = j.State.Report()
	require.NoError(t, err)
	require.Contains(t, string(page), "Every time on this page is a prediction")
	empty, err := NewState(c).Report()
	require.NoError(t, err)
	require.Contains(t, string(empty), "Nothing better than the start was found in 0 trials")
}

// Only an interval below 1 confirms: that of a shortlisted prediction seldom is.
func TestConfirms(t *testing.T) {
	at := func(decision Decision, low, high float64) *Verdict {
		return &Verdict{Class: Pass, Decision: decision,
			Timing: &Timing{Ratio: Interval{Mean: low, Low: low, High: high}}}
	}
	require.True(t, at(Keep, 0.95, 0.98).Confirms())
	require.True(t, at(Shortlist, 0.8, 0.99).Confirms())
	require.False(t, at(Shortlist, 0.9, 1.08).Confirms())
	require.False(t, at(Shortlist, 0.9, 1).Confirms())
	require.False(t, at(Revert, 0.95, 0.98).Confirms())

	c := toyCampaign(knobs.Settings{})
	c.Device = DeviceCost
	s := NewState(c)
	best := knobs.Settings{"pipelining_depth": "5"}
	s.incumbents, s.score[IDOf(best)] = append(s.incumbents, best), -0.05
	for high, want := range map[float64]string{0.99: "<p>Confirmed in a process",
		1.04: "<strong>Not confirmed.</strong>"} {
		v := at(Shortlist, 0.95, high)
		v.ID, v.At, v.Proof = IDOf(best), []At{{Position: 50}}, &Proof{OK: true}
		s.trials = []Trial{{Job: Job{Role: RoleConfirm, Rung: Final, Settings: best}, Verdict: v}}
		page, err := s.Report()
		require.NoError(t, err)
		require.Contains(t, string(page), want)
		require.Equal(t, high < 1, strings.Contains(string(page), "Confirmed in a process"))
	}
}

// What a tool says, and what somebody calls a model, is data in a page and in a table.
func TestHostileTexts(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	c.Model, c.Tag = injection.All(), injection.All()
	s := NewState(c)
	start := Job{Role: RoleStart, Rung: Final, Settings: c.Start, Against: c.Start, Why: injection.All()}
	s.Apply(&Trial{Job: start, Verdict: toyVerdict(c, &start)})
	failed := Job{N: 1, Role: RoleCandidate, Rung: Screen, Settings: knobs.Settings{"tiling.warps.down": "1"},
		Against: c.Start}
	v := toyVerdict(c, &failed)
	v.Why, v.Reason.Msg, v.Build = injection.All(), injection.All(), injection.All()
	s.Apply(&Trial{Job: failed, Verdict: v})
	page, err := s.Report()
	require.NoError(t, err)
	require.NotContains(t, string(page), "<script")
	rows := strings.Split(strings.TrimSuffix(s.Results(), "\n"), "\n")
	require.Len(t, rows, 3)
	for _, row := range rows {
		require.Len(t, strings.Split(row, "\t"), len(resultColumns))
		require.NotContains(t, row, "\x1b")
	}
}
