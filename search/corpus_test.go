package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
	"amkc/knobs"
)

// toyTraits is what a cost model says of toys: their time without what exchange and ring really do to it, which their
// traits tell.
func toyTraits(candidate, baseline knobs.Settings) Predicted {
	off := func(s knobs.Settings) float64 {
		space := toySpace()
		hidden := 0.0
		if space.Knob("tiling.exchange.flagged").value(s) == "0" {
			hidden += 0.2
		}
		if v := space.Knob("pipelining_depth").value(s); v == "1" || v == "2" {
			hidden += 0.1
		}
		return hidden
	}
	traits := map[string]float64{}
	if d := off(candidate) - off(baseline); d != 0 {
		traits["hidden"] = d
	}
	return Predicted{Candidate: toyTime(candidate) * math.Exp(-off(candidate)),
		Baseline: toyTime(baseline) * math.Exp(-off(baseline)), Traits: traits}
}

// taught is a campaign of a toy whose verdicts say what the cost model said.
func taught(t *testing.T, model string, seed uint64, trials int) string {
	t.Helper()
	c := toyCampaign(toySpace().Cold())
	c.Model, c.Seed, c.Proposers = model, seed, []string{proposeRandom}
	dir := t.TempDir()
	require.NoError(t, Create(dir, c))
	j, err := OpenJournal(dir)
	require.NoError(t, err)
	defer j.Close()
	j.out = unsynced{j.out}
	r := toyRunner(j, trials)
	r.Evaluate = func(_ context.Context, job *Job) (*Verdict, error) {
		v := toyVerdict(c, job)
		for i := range v.Positions {
			if v.Timing != nil {
				p := toyTraits(job.Settings, job.Against)
				v.At[i].Predicted = &p
			}
		}
		toyKey.Sign(v)
		return v, nil
	}
	_, err = r.Run(t.Context(), j)
	require.NoError(t, err)
	return dir
}

// A corpus is a set: the order of campaigns and how often they are added make no difference to its file.
func TestCorpusIsASet(t *testing.T) {
	a, b := taught(t, "a", 1, 12), taught(t, "b", 2, 12)
	one, two := filepath.Join(t.TempDir(), "corpus"), filepath.Join(t.TempDir(), "corpus")
	c, err := Gather(one, []string{a, b}, toyPublic)
	require.NoError(t, err)
	for _, from := range [][]string{{b}, {b, a, b}, {one}, nil} {
		_, err = Gather(two, from, toyPublic)
		require.NoError(t, err)
	}
	text, err := os.ReadFile(one)
	require.NoError(t, err)
	again, err := os.ReadFile(two)
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
	require.Equal(t, len(c), strings.Count(string(text), "\n"))
	classes := map[Class]bool{}
	for _, v := range c {
		classes[v.Class] = true
	}
	require.Greater(t, len(classes), 1, "failures are in it too")

	edited := strings.Replace(string(text), `"band":0.003`, `"band":0.002`, 1)
	require.NoError(t, os.WriteFile(two, []byte(edited), 0o644))
	_, err = Gather(two, nil, toyPublic)
	require.ErrorContains(t, err, "something in it was changed")
	_, err = Gather(one, []string{a}, keyOf("x").Public())
	require.ErrorContains(t, err, "is signed with the key")
	require.NoError(t, os.WriteFile(two, []byte("{}\n"), 0o644))
	_, err = Gather(two, nil, toyPublic)
	require.ErrorContains(t, err, "AMK6001")
	_, err = Gather(two, []string{filepath.Join(t.TempDir(), "nowhere")}, toyPublic)
	require.Error(t, err)
}

// What two toys teach is used for a third: the prior proposes what is fast, and nothing that is refused.
func TestPriorProposes(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	corpus, err := Gather(filepath.Join(t.TempDir(), "corpus"), []string{taught(t, "a", 1, 60), taught(t, "b", 2, 60)},
		toyPublic)
	require.NoError(t, err)
	p, err := corpus.Prior("corpus")
	require.NoError(t, err)
	require.True(t, p.Times.Used)
	require.InDelta(t, 0.2, p.Times.At(map[string]float64{"hidden": 0.2}), 0.03)
	require.True(t, p.Refusals.Used)
	refused := differences(knobs.Settings{"page_allocation": "linear"}, nil)
	require.Greater(t, p.Refusals.Refused(refused), 2*p.Refusals.Refused(nil))

	run := func(dir string, trials ...int) *State {
		c := toyCampaign(toySpace().Cold())
		c.Proposers, c.Prior = []string{proposePrior}, p
		require.NoError(t, Create(dir, c))
		var s *State
		for _, n := range trials {
			j, err := OpenJournal(dir)
			require.NoError(t, err)
			j.out = unsynced{j.out}
			r := toyRunner(j, n)
			r.Ask = j.State.Asker(0, func(candidate, baseline knobs.Settings) ([]Predicted, error) {
				if candidate["page_allocation"] == "linear" {
					return nil, errors.New("refused")
				}
				return []Predicted{toyTraits(candidate, baseline)}, nil
			})
			_, err = r.Run(t.Context(), j)
			require.NoError(t, err)
			s = j.State
			require.NoError(t, j.Close())
		}
		return s
	}
	warm := run(t.TempDir(), 30)
	require.Zero(t, warm.Soundness().Rejected)
	_, got := warm.Best()
	c := toyCampaign(toySpace().Cold())
	c.Proposers = []string{proposeRandom}
	random, _ := ran(t, c, 30)
	_, cold := random.State.Best()
	require.Less(t, got, cold)
	t.Logf("after 30 trials: %.3f of the start with the prior, %.3f at random", got, cold)

	// It is a fold like other proposers: in pieces and in one, the proposals are the same.
	pieces := run(t.TempDir(), 4, 5, 9, 30) // nothing is there to be confirmed until then
	require.Equal(t, whatOf(warm.Trials()), whatOf(pieces.Trials()))
}

func TestWhatTeachesNothing(t *testing.T) {
	_, err := Corpus{}.Prior("corpus")
	require.ErrorContains(t, err, "AMK6015")
	c := toyCampaign(knobs.Settings{})
	c.Proposers = []string{proposePrior}
	require.ErrorContains(t, c.check("campaign.json"), "none that was learnt")
	corpus := Corpus{}
	for i := range 20 { // what is no fault of the settings says nothing of them
		j := finalJob()
		j.Settings = knobs.Settings{"tiling.ring.pace": knobs.Value(fmt.Sprint(i))}
		v := toyVerdict(c, j)
		v.Class, v.Timing, v.Reason = Rejected, nil, &diag.Diagnostic{Code: saysNothing[i%len(saysNothing)], Msg: "so"}
		corpus.Add(v)
	}
	require.Zero(t, corpus.Learn().Refusals.Rows)
}

// Settings that no schedule can have are in a corpus as any verdict, and teach nothing of those that a proposer draws.
// Nor does a refusal that is about the machine.
func TestRefusalsThatTeachNothing(t *testing.T) {
	c := Corpus{}
	add := func(model, depth string, class Class, code string) {
		v := &Verdict{Class: class, Subject: Subject{Model: model, Settings: knobs.Settings{
			"pipelining_depth": knobs.Value(depth)}}}
		if class == Rejected {
			v.Reason = &diag.Diagnostic{Code: code}
		}
		c[model+depth+code] = v
	}
	for _, model := range []string{"a", "b", "c"} {
		add(model, "2", Pass, "")
		add(model, "16", Rejected, "AMK2007")
	}
	want := c.Learn()
	require.NotZero(t, want.Refusals.Rows)
	for _, model := range []string{"a", "b", "c"} {
		add(model, "0", Rejected, "AMK2002")
		add(model, "often", Rejected, "AMK2002")
		add(model, "4", Rejected, CodeMemory)
	}
	require.Equal(t, want, c.Learn())
}
