package search

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
)

// Whatever is changed in a campaign shows: a number, a decision, a line that is gone, another order.
func TestTampering(t *testing.T) {
	j, _ := ran(t, toyCampaign(knobs.Settings{}), 40)
	require.NoError(t, j.Close())
	sound, err := Verify(j.dir, toyPublic)
	require.NoError(t, err)
	require.Positive(t, sound.Accepted)
	require.Zero(t, sound.AcceptedUnproved)
	require.Equal(t, 40, sound.Trials-1)
	_, err = Verify(j.dir, keyOf("o").Public())
	require.ErrorContains(t, err, "takes verdicts signed with the key")

	path := filepath.Join(j.dir, trialsName)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	whole := string(text)
	lines := strings.SplitAfter(whole, "\n")
	for name, changed := range map[string]string{
		"a number":      strings.Replace(whole, `"mean":`, `"mean":0.5`, 1),
		"a line gone":   strings.Join(append(append([]string{}, lines[:3]...), lines[4:]...), ""),
		"another order": strings.Join(append([]string{lines[1], lines[0]}, lines[2:]...), ""),
		"a line twice":  lines[0] + whole,
		"one accepted":  strings.Replace(whole, `"accepted":false`, `"accepted":true`, 1),
		"no JSON":       whole + "{}\n",
		"the first":     strings.Join(lines[1:], ""),
	} {
		require.NoError(t, os.WriteFile(path, []byte(changed), 0o666))
		_, err := Verify(j.dir, toyPublic)
		require.Error(t, err, name)
	}

	// Who keeps the chain whole still has no signature, and no decision but that of the rules.
	for name, change := range map[string]func(*Trial){
		"is not what its signature is of": func(t *Trial) { t.Verdict.Ratio.Mean /= 2 },
		"the decision is keep": func(t *Trial) {
			t.Verdict.Decision = Keep
			toyKey.Sign(t.Verdict)
		},
		"accepted is true": func(t *Trial) { t.Accepted = true },
		"against another":  func(t *Trial) { t.Against = knobs.Settings{"tiling.ring.pace": "0"} },
	} {
		require.NoError(t, os.WriteFile(path, []byte(rechained(t, j.dir, lines, change)), 0o666))
		_, err := Verify(j.dir, toyPublic)
		require.ErrorContains(t, err, name)
	}
	require.NoError(t, os.WriteFile(path, text, 0o666))
	campaign := filepath.Join(j.dir, campaignName)
	text, err = os.ReadFile(campaign)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(campaign, []byte(strings.Replace(string(text), `"min_gain": 0.01`, `"min_gain": 0`,
		1)),
		0o666))
	_, err = Verify(j.dir, toyPublic)
	require.ErrorContains(t, err, "does not follow the line before it")
}

// Campaigns that were written before are read, verified and gone on with, as long as the rules are those that they were
// decided by: testdata/campaign was written once, by rules of today, and is never written again. A change that breaks
// this has changed what a campaign is: then CampaignSchema is raised, and the form of before refused by name.
func TestCampaignOfBefore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "campaign")
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/campaign")))
	sound, err := Verify(dir, toyPublic)
	require.NoError(t, err)
	require.Equal(t, 17, sound.Trials)
	j, err := OpenJournal(dir)
	require.NoError(t, err)
	require.NotNil(t, j.State.Confirmed())
	_, err = toyRunner(j, 20).Run(t.Context(), j)
	require.NoError(t, err)
	require.NoError(t, j.Close())
	_, err = Verify(dir, toyPublic)
	require.NoError(t, err)
}

// Those of earlier forms are refused by name, whatever is to be done with them.
func TestCampaignsOfEarlierForms(t *testing.T) {
	for form, dir := range map[string]string{"1": "testdata/earlier", "2": "testdata/earlier2"} {
		_, err := Verify(dir, toyPublic)
		require.ErrorContains(t, err, "has the schema amkc.campaign/"+form+", of an earlier amkc; want "+
			"amkc.campaign/3 [AMK6018]")
		_, err = OpenJournal(dir)
		require.ErrorContains(t, err, "AMK6018")
		_, _, _, err = Load(dir)
		require.ErrorContains(t, err, "AMK6018")
		text, err := os.ReadFile(filepath.Join(dir, trialsName))
		require.NoError(t, err)
		line, _, _ := strings.Cut(string(text), "\n")
		var first struct{ Verdict json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(line), &first))
		_, err = ParseVerdict(first.Verdict, "v.json")
		require.ErrorContains(t, err, "v.json: error: has the schema amkc.verdict/"+form+", of an earlier amkc")
	}
}

// One that was decided by other rules says so, by a code of its own: it can be read, and neither verified nor gone on
// with.
func TestCampaignOfOtherRules(t *testing.T) {
	j, _ := ran(t, toyCampaign(knobs.Settings{}), 20)
	require.NoError(t, j.Close())
	path := filepath.Join(j.dir, trialsName)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	other := rechained(t, j.dir, lines, func(t *Trial) {
		t.Verdict.Decision = Promising
		toyKey.Sign(t.Verdict)
	})
	require.NoError(t, os.WriteFile(path, []byte(other), 0o666))
	_, err = Verify(j.dir, toyPublic)
	require.ErrorContains(t, err, "the decision is promising, and the rules say revert here; want the amkc that wrote "+
		"it, which was test [AMK6016]")
	_, err = OpenJournal(j.dir)
	require.ErrorContains(t, err, "AMK6016")
	s, _, _, err := Load(j.dir)
	require.NoError(t, err)
	_, err = s.Report()
	require.NoError(t, err)
}

// rechained changes the first candidate that was reverted, and makes every line follow the one before.
func rechained(t *testing.T, dir string, lines []string, change func(*Trial)) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, campaignName))
	require.NoError(t, err)
	previous, changed := hexDigest(text), false
	var b strings.Builder
	for _, line := range lines[:len(lines)-1] {
		var one Trial
		require.NoError(t, json.Unmarshal([]byte(line), &one))
		if v := one.Verdict; !changed && one.Role == RoleCandidate && v.Class == Pass && v.Decision == Revert {
			change(&one)
			changed = true
		}
		one.Previous = previous
		out, err := json.Marshal(one)
		require.NoError(t, err)
		previous = hexDigest(out)
		b.Write(append(out, '\n'))
	}
	require.True(t, changed)
	return b.String()
}

// Half a line at the end is of a process that was killed; half a line elsewhere is not.
func TestHalfALine(t *testing.T) {
	j, _ := ran(t, toyCampaign(knobs.Settings{}), 10)
	require.NoError(t, j.Close())
	path := filepath.Join(j.dir, trialsName)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(text, text[:100]...), 0o666))
	s, _, _, err := Load(j.dir)
	require.NoError(t, err)
	require.Len(t, s.Trials(), 10)
	again, err := OpenJournal(j.dir)
	require.NoError(t, err)
	require.NoError(t, again.Close())
	cut, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(text), string(cut))
}

// A verdict from outside is taken if it was evaluated, for this campaign, against the best, and once.
func TestRecord(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	j, _ := ran(t, c, 3)
	job := &Job{Rung: Final, Settings: knobs.Settings{"tiling.ring.run_ahead": "16"}, Against: j.State.incumbent()}
	v, now := toyVerdict(c, job), time.Unix(5, 0)
	stated := *v
	stated.Signature = ""
	_, err := j.Record(&stated, toyPublic, now)
	require.ErrorContains(t, err, "has no signature")

	// Whoever records may have a key of their own, and a verdict that is signed with it.
	own := keyOf("f")
	foreign := own.Public()
	stated = *v
	own.Sign(&stated)
	_, err = j.Record(&stated, foreign, now)
	require.ErrorContains(t, err, "takes verdicts signed with the key "+toyPublic.String()[:8])
	_, err = j.Record(&stated, toyPublic, now)
	require.ErrorContains(t, err, "is signed with the key "+foreign.String()[:8])
	_, err = Verify(j.dir, foreign)
	require.ErrorContains(t, err, "takes verdicts signed with the key")

	// One that was decided by other rules would lock the campaign: it could be opened no more.
	lenient := *v
	lenient.Decision = Revert
	toyKey.Sign(&lenient)
	_, err = j.Record(&lenient, toyPublic, now)
	require.ErrorContains(t, err, "want a verdict by the rules of the campaign")
	trial, err := j.Record(v, toyPublic, now)
	require.NoError(t, err)
	require.True(t, trial.Accepted)
	require.Equal(t, job.Settings, j.State.incumbent())
	_, err = j.Record(v, toyPublic, now)
	require.ErrorContains(t, err, "against another baseline")
	job.Settings, job.Against = knobs.Settings{"tiling.loop.barrier": "1"}, j.State.incumbent()
	v = toyVerdict(c, job)
	_, err = j.Record(v, toyPublic, now)
	require.NoError(t, err)
	_, err = j.Record(v, toyPublic, now)
	require.ErrorContains(t, err, "is that of trial 4 already")
	require.NoError(t, j.Close())
	_, err = Verify(j.dir, toyPublic)
	require.NoError(t, err)
}

// A new campaign replaces nothing: not the trials of one whose campaign.json is gone, and no file of something else.
func TestNothingIsReplaced(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	j, _ := ran(t, c, 3)
	require.NoError(t, j.Close())
	path := filepath.Join(j.dir, trialsName)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(j.dir, campaignName)))
	require.ErrorContains(t, Create(j.dir, c), "a new campaign would replace it")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
	for _, name := range []string{ResultsName, ReportName} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o600))
		require.ErrorContains(t, Create(dir, c), name)
	}
	dir := t.TempDir() // a process was killed between its two files
	require.NoError(t, os.WriteFile(filepath.Join(dir, trialsName), nil, 0o600))
	require.NoError(t, Create(dir, c))
}
