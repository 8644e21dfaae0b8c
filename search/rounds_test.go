//go:build unix

package search

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
)

// The environment of a child that works on a round: which trial, and whether it is the evaluation itself.
const (
	childIndex = "AMKC_TEST_INDEX"
	childEval  = "AMKC_TEST_EVAL"
)

// workOn is a worker in a process of its own, which has a process of its own judge its trial; or that process.
func workOn(dir string) {
	c, _, err := LoadCampaign(dir)
	must(err)
	p, err := LoadPlan(dir)
	must(err)
	index, err := strconv.Atoi(os.Getenv(childIndex))
	must(err)
	if os.Getenv(childEval) != "" {
		text, err := json.Marshal(map[string]any{"verdict": toyVerdict(c, &p.Trials[index].Job)})
		must(err)
		os.Stdout.Write(text)
		return
	}
	exe, err := os.Executable()
	must(err)
	w := &Worker{Campaign: c, Key: toyKey, Limit: time.Minute, Command: func(*Job, Stage) ([]string, func(), error) {
		return []string{"/usr/bin/env", childEval + "=1", exe}, func() {}, nil
	}}
	_, err = w.Work(context.Background(), dir, p, index, StageJudge)
	must(err)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func workChild(t *testing.T, dir string, index int) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childDir+"="+dir, fmt.Sprintf("%s=%d", childIndex, index))
	return cmd
}

// inProcess makes a trial without a process.
func inProcess(t *testing.T, dir string, p *Plan, index int) {
	t.Helper()
	c, _, err := LoadCampaign(dir)
	require.NoError(t, err)
	made := &Made{Schema: MadeSchema, ID: p.Trials[index].ID, Campaign: p.Campaign, Previous: p.Previous,
		Job: p.Trials[index].Job, Verdict: toyVerdict(c, &p.Trials[index].Job), Started: time.Now().UTC()}
	require.NoError(t, made.write(dir, false))
}

// inRounds carries a campaign on in rounds until it is at its end, and returns its trials.
func inRounds(t *testing.T, dir string, budget Budget, make func(p *Plan)) ([]Trial, string) {
	t.Helper()
	for {
		j, err := OpenJournal(dir)
		require.NoError(t, err)
		p, stop, err := j.Plan(t.Context(), (*State).noAsker, budget)
		require.NoError(t, err)
		require.NoError(t, j.Close())
		if len(p.Trials) == 0 {
			return j.State.Trials(), stop
		}
		make(p)
		require.Positive(t, merge(t, dir).Entered)
	}
}

func (s *State) noAsker() Asker { return nil }

func merge(t *testing.T, dir string, from ...string) *Merged {
	t.Helper()
	j, err := OpenJournal(dir)
	require.NoError(t, err)
	defer j.Close()
	m, err := j.Merge(from, toyPublic)
	require.NoError(t, err)
	return m
}

// whatOf is what trials are of, whenever they were made.
func whatOf(trials []Trial) []Trial {
	out := slices.Clone(trials)
	for i := range out {
		out[i].Started, out[i].Seconds, out[i].Previous = time.Time{}, 0, ""
	}
	return out
}

// Workers that are killed at any time, or run twice at once, make the trials that one makes that is let alone.
func TestKilledAndDuplicatedWorkers(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	budget := Budget{Trials: 24}
	alone := t.TempDir()
	require.NoError(t, Create(alone, toyCampaign(toySpace().Cold())))
	want, stop := inRounds(t, alone, budget, func(p *Plan) {
		for i := range p.Trials {
			inProcess(t, alone, p, i)
		}
	})
	require.Equal(t, "25 trials are made", stop, "one more confirms the best")

	dir, killed, twice := t.TempDir(), 0, 0
	require.NoError(t, Create(dir, toyCampaign(toySpace().Cold())))
	r := rand.New(rand.NewPCG(3, 3))
	got, _ := inRounds(t, dir, budget, func(p *Plan) {
		for again := 0; ; again++ {
			require.Less(t, again, 50)
			missing := merge0(t, dir)
			if len(missing) == 0 {
				return
			}
			var all []*exec.Cmd
			for _, i := range missing {
				for range 1 + r.IntN(2) {
					cmd := workChild(t, dir, i)
					require.NoError(t, cmd.Start())
					all = append(all, cmd)
				}
			}
			twice += len(all) - len(missing)
			for n, cmd := range all {
				if again < 3 && n%2 == 0 {
					time.Sleep(time.Duration(r.IntN(15)) * time.Millisecond)
					cmd.Process.Kill()
				}
			}
			for _, cmd := range all {
				if cmd.Wait() != nil {
					killed++
				}
			}
		}
	})
	require.Equal(t, whatOf(want), whatOf(got))
	require.Greater(t, killed, 10)
	require.Greater(t, twice, 5)
	_, err := Verify(dir, toyPublic)
	require.NoError(t, err)
	t.Logf("%d workers killed, %d run twice at once", killed, twice)
}

// merge0 lists what is missing of a round, and enters nothing.
func merge0(t *testing.T, dir string) []int {
	t.Helper()
	p, err := LoadPlan(dir)
	require.NoError(t, err)
	var missing []int
	for i := range p.Trials {
		if _, err := loadMade(madePath(dir, p.Trials[i].ID), toyPublic); err != nil {
			require.ErrorIs(t, err, os.ErrNotExist)
			missing = append(missing, i)
		}
	}
	return missing
}

// copied is a machine without the disk of the others: it has what was asked, and the round.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	for _, name := range []string{campaignName, planName} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(to, name), text, 0o644))
	}
	return to
}

// filesIn are the made trials of a directory, by name.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	paths, err := madeIn(dir)
	require.NoError(t, err)
	all := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		all[filepath.Base(path)] = string(text)
	}
	return all
}

// A merge is set union: neither the order of directories nor how often they are merged makes a difference.
func TestMergeIsSetUnion(t *testing.T) {
	dir := t.TempDir()
	c := toyCampaign(toySpace().Cold())
	c.Rules.Bracket = 8
	require.NoError(t, Create(dir, c))
	_, _ = inRounds(t, dir, Budget{Trials: 1}, func(p *Plan) { inProcess(t, dir, p, 0) })
	j, err := OpenJournal(dir)
	require.NoError(t, err)
	p, _, err := j.Plan(t.Context(), (*State).noAsker, Budget{Trials: 100})
	require.NoError(t, err)
	again, _, err := j.Plan(t.Context(), (*State).noAsker, Budget{Trials: 100})
	require.NoError(t, err)
	require.Equal(t, p, again, "a plan that is there stays")
	require.NoError(t, j.Close())
	require.Len(t, p.Trials, 8)

	machines := []string{copied(t, dir), copied(t, dir), copied(t, dir)}
	for n, of := range [][]int{{0, 1, 2, 3, 4}, {3, 4, 5, 6, 0}, {6, 4, 2}} {
		for _, i := range of {
			inProcess(t, machines[n], p, i)
		}
	}
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, merge(t, dir).Missing)
	m := merge(t, dir, machines[0])
	require.Equal(t, 5, m.Added)
	require.Equal(t, []int{5, 6, 7}, m.Missing)
	require.Zero(t, m.Entered)
	m = merge(t, dir, machines[0], machines[2], machines[1], machines[2])
	require.Equal(t, []int{7}, m.Missing)
	other := t.TempDir()
	require.NoError(t, os.CopyFS(other, os.DirFS(dir)))
	require.NoError(t, os.RemoveAll(filepath.Join(other, madeDir)))
	require.Equal(t, []int{7}, merge(t, other, machines[1], dir, machines[2], machines[0]).Missing)
	require.NoError(t, os.Remove(filepath.Join(other, madeDir, slices.Sorted(maps.Keys(filesIn(t, other)))[0])))
	merge(t, other, machines[2], machines[1], machines[0], dir)
	require.Equal(t, filesIn(t, dir), filesIn(t, other))
	require.Len(t, filesIn(t, dir), 8, "the start, and seven of the round")

	inProcess(t, machines[2], p, 7)
	m = merge(t, dir, machines[2])
	require.Equal(t, 8, m.Entered)
	m = merge(t, dir, machines...)
	require.Zero(t, m.Entered, "what was entered is not entered again")
	require.Empty(t, m.Missing)
	require.Equal(t, 9, trialsIn(t, dir))

	// of a process that was killed while it entered the round
	lines := strings.SplitAfter(trialsOf(t, dir), "\n")
	require.NoError(t, os.WriteFile(filepath.Join(dir, trialsName), []byte(strings.Join(lines[:4], "")+lines[5][:9]),
		0o644))
	j, err = OpenJournal(dir)
	require.NoError(t, err)
	again, _, err = j.Plan(t.Context(), (*State).noAsker, Budget{Trials: 100})
	require.NoError(t, err)
	require.Equal(t, p, again, "a round that is entered in part is still the round")
	require.NoError(t, j.Close())
	require.Equal(t, 5, merge(t, dir).Entered)
	require.Equal(t, strings.Join(lines, ""), trialsOf(t, dir))
}

func trialsIn(t *testing.T, dir string) int {
	t.Helper()
	s, _, _, err := Load(dir)
	require.NoError(t, err)
	return len(s.Trials())
}

// Rounds come near to what as many trials come to one after another, where each knows of all before it. Of several
// final verdicts at once, which a wide bracket has, one is accepted.
func TestRoundsFindWhatASearchFinds(t *testing.T) {
	one, _ := ran(t, toyCampaign(toySpace().Cold()), 45)
	_, want := one.State.Best()
	for _, bracket := range []int{9, 27} {
		c := toyCampaign(toySpace().Cold())
		c.Rules.Bracket = bracket
		dir := t.TempDir()
		require.NoError(t, Create(dir, c))
		finals := 0
		trials, stop := inRounds(t, dir, Budget{Trials: 45}, func(p *Plan) {
			of := 0
			for i := range p.Trials {
				inProcess(t, dir, p, i)
				if p.Trials[i].Rung == Final && p.Trials[i].Role == RoleCandidate {
					of++
				}
			}
			finals = max(finals, of)
		})
		require.LessOrEqual(t, finals, bracket/9, "where a gain is obvious there is one")
		accepted := map[string]int{}
		for i := range trials {
			if of := &trials[i]; of.Accepted && of.Role == RoleCandidate {
				accepted[fmt.Sprint(of.Bracket, IDOf(of.Against))]++
			}
		}
		for _, n := range accepted {
			require.Equal(t, 1, n)
		}
		s, _, _, err := Load(dir)
		require.NoError(t, err)
		_, ratio := s.Best()
		require.Less(t, ratio, want+0.15)
		require.NotNil(t, s.Confirmed())
		_, err = Verify(dir, toyPublic)
		require.NoError(t, err)
		t.Logf("brackets of %d: %d trials, %.4f of the start, one by one %.4f: %s", bracket, len(trials), ratio, want,
			stop)
	}
}

// A refusal of a command is a trial of its round, and three in a row end the round.
func TestRoundsOfCommands(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	c.Proposers = []string{"exec:agent"}
	dir := t.TempDir()
	require.NoError(t, Create(dir, c))
	inRounds(t, dir, Budget{Trials: 1}, func(p *Plan) { inProcess(t, dir, p, 0) })
	j, err := OpenJournal(dir)
	require.NoError(t, err)
	asked := 0
	ask := func(*State) Asker {
		return func(context.Context, *Job) (*Proposal, error) {
			asked++
			return &Proposal{Settings: knobs.Settings{"tiling.ring.pace": "600"}}, nil
		}
	}
	p, _, err := j.Plan(t.Context(), ask, Budget{Trials: 50})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	require.Len(t, p.Trials, 4)
	require.Nil(t, p.Trials[0].Refused)
	require.ErrorContains(t, p.Trials[3].Refused, "was proposed before")
	inProcess(t, dir, p, 0)
	require.Equal(t, 4, merge(t, dir).Entered)
	require.Equal(t, 5, trialsIn(t, dir))
	require.Equal(t, 4, asked)
}

// What is of another campaign, not signed, or changed, is not merged, and a plan that was changed is not worked on.
func TestWhatIsNotMerged(t *testing.T) {
	begin := func(seed uint64) (string, *Plan) {
		c := toyCampaign(knobs.Settings{})
		c.Seed = seed
		dir := t.TempDir()
		require.NoError(t, Create(dir, c))
		j, err := OpenJournal(dir)
		require.NoError(t, err)
		defer j.Close()
		p, _, err := j.Plan(t.Context(), (*State).noAsker, Budget{})
		require.NoError(t, err)
		inProcess(t, dir, p, 0)
		return dir, p
	}
	dir, p := begin(1)
	refused := func(what string, from ...string) {
		t.Helper()
		j, err := OpenJournal(dir)
		require.NoError(t, err)
		defer j.Close()
		_, err = j.Merge(from, toyPublic)
		require.ErrorContains(t, err, what)
	}
	other, _ := begin(2)
	refused("is of another campaign", other)
	refused("cannot be read", filepath.Join(dir, "nowhere"))

	edit := func(path, old, new string) {
		t.Helper()
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(text), old)
		require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, new)), 0o644))
	}
	changed := copied(t, dir)
	inProcess(t, changed, p, 0)
	edit(madePath(changed, p.Trials[0].ID), `"band":0.003`, `"band":0.001`)
	refused("something in it was changed", changed)
	changed = copied(t, dir)
	inProcess(t, changed, p, 0)
	edit(madePath(changed, p.Trials[0].ID), `"rung":"final","basin"`, `"rung":"race","basin"`)
	refused("is not the trial that its name says", changed)

	edit(filepath.Join(dir, planName), `"role": "start"`, `"role": "candidate"`)
	refused("is not what its name says")
}
