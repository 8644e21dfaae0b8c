package validate_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/simulate"
	"amkc/validate"
)

// ranksProgram is testdata/ir/ranks.amk: two layers on two ranks of two SMs. The columns of o and of down are dealt to
// the ranks.
func ranksProgram(t *testing.T) string {
	text, err := os.ReadFile("../testdata/ir/ranks.amk")
	require.NoError(t, err)
	return string(text)
}

// effortOfRanks is what an oracle spends on one of these programs.
var effortOfRanks = simulate.Effort{Orders: 40, SampleWork: 1 << 17, Positions: 1}

// The program is proved, of one rank and of all, and no order of its tasks goes wrong.
func TestRanksAreProved(t *testing.T) {
	p := parse(t, ranksProgram(t))
	proof := validate.Program(p)
	require.True(t, proof.OK, "%v", proof.Diags)
	require.True(t, validate.AllRanks(p).OK)
	v := simulate.Program(p, simulate.NewFootprints(), effortOfRanks)
	require.Nil(t, v.Hazard, "%v", v.Hazard)
}

// Each of these programs is refused, and an order of its tasks goes wrong on some rank.
func TestMutantsOfRanksAreRefused(t *testing.T) {
	for _, m := range []struct {
		name string
		edit []string // texts, each with what takes its place
		code *diag.Code
		kind simulate.Kind
	}{
		{"a word of a peer that it has not read is overwritten", []string{"word64 page b\n", "word64 page a\n"},
			validate.CodeOverwriteRace, simulate.Stuck},
		{"ranks wait for what they have pushed themselves", []string{
			"counter L{i}.o.sums for 0..1 flagged", "counter L{i}.o.sums for 0..1 counter",
			"wait L{i}.o.sums >= 4", "wait L{i}.o.sums >= 2"}, validate.CodePartialWait, simulate.Race},
		{"what ranks push is counted by each for itself", []string{
			"counter L{i}.o.sums for 0..1 flagged system", "counter L{i}.o.sums for 0..1 counter gpu"},
			validate.CodeUnreachable, simulate.Stuck},
		{"a rank does not read what another has pushed", []string{
			"L{i}.down.sums[0,a:b], L{i}.down.sums[1,a:b]", "L{i}.down.sums[0,a:b], L{i}.down.sums[0,a:b]"},
			validate.CodeOverwriteRace, simulate.Stuck},
		{"ranks read what they have pushed themselves", []string{
			"L{i}.down.sums[0,a:b], L{i}.down.sums[1,a:b]", "L{i}.down.sums[rank,a:b], L{i}.down.sums[rank,a:b]"},
			validate.CodePeers, simulate.Stuck},
		{"an exchange is waited for, and the words of another one are read", []string{
			"wait L{i}.down.sums >= 4", "wait L{i}.o.sums >= 4"}, validate.CodeReadRace, simulate.Undefined},
		{"a rank pushes into the row of another", []string{"L{i}.o.sums[rank,a:b] =", "L{i}.o.sums[0,a:b] ="},
			validate.CodeTwice, simulate.Undefined},
		{"a rank does not wait for the others to join", []string{"counter step counter system",
			"counter step counter gpu"}, validate.CodeStepJoin, simulate.Stuck},
	} {
		text := strings.NewReplacer(m.edit...).Replace(ranksProgram(t))
		p := parse(t, text)
		proof := validate.Program(p)
		require.False(t, proof.OK, m.name)
		require.Equal(t, m.code.ID, proof.Diags.Errors()[0].Code, "%s: %v", m.name, proof.Diags)
		require.False(t, validate.AllRanks(p).OK, m.name)
		v := simulate.Program(p, simulate.NewFootprints(), effortOfRanks)
		require.NotNil(t, v.Hazard, m.name)
		require.Equal(t, m.kind, v.Hazard.Kind, "%s: %v", m.name, v.Hazard)
	}
}

// What one rank alone leaves out is missed: to signal what it has pushed, to push it, to wait.
func TestARankThatDoesLessIsRefused(t *testing.T) {
	for _, m := range []struct {
		task string
		edit func(task *ir.Task)
		code *diag.Code
	}{
		{"L01.down.s001@1", func(task *ir.Task) { task.Signal = -1 }, validate.CodeUnreachable},
		{"L01.down.s001@1", func(task *ir.Task) { task.Ops = nil }, validate.CodeClobbered},
		{"L01.x.s000@1", func(task *ir.Task) { task.Waits = nil }, validate.CodeReadRace},
	} {
		p := parse(t, ranksProgram(t))
		f := flat(t, p, 0)
		require.True(t, validate.Flat(f).OK)
		i := slices.IndexFunc(f.Tasks, func(task ir.Task) bool { return task.Name == m.task })
		m.edit(&f.Tasks[i])
		proof := validate.Flat(f)
		require.False(t, proof.OK, m.task)
		require.Equal(t, m.code.ID, proof.Diags.Errors()[0].Code, "%s: %v", m.task, proof.Diags)
		if m.code == validate.CodeUnreachable { // words are polled, and nothing counts who has signalled
			continue
		}
		v := simulate.Flat(f, p.Target, simulate.NewFootprints(), effortOfRanks)
		require.NotNil(t, v.Hazard, m.task)
	}
}

// Memory that ranks push to holds words, and a program of several ranks says how many SMs each has.
func TestFormsOfRanks(t *testing.T) {
	p := parse(t, strings.Replace(ranksProgram(t), "ACTIVATION F32 [4] PEER_SCRATCH word64",
		"ACTIVATION F32 [4] PEER_SCRATCH rowmajor", 1))
	proof := validate.Program(p)
	require.Equal(t, validate.CodeLayout.ID, proof.Diags.Errors()[0].Code)
	p.Target = nil
	_, diags := ir.Unroll(p, &p.Variants[0])
	require.ErrorContains(t, diags.Err(), "no target says how many SMs each has")
}

// What is in order on the rank that pushed a word need not be so on another, where that word is a peer's.
func TestWordsOfRankZeroAreAPeers(t *testing.T) {
	for _, how := range []string{"counter", "flagged"} {
		p := parse(t, strings.NewReplacer("counter first flagged system", "counter first "+how+" gpu",
			"wait first >= 2", "wait first >= 1", "ALLREDUCE_SHARD(first[0], first[1])", "COPY(first[0])").
			Replace(pushedTwice))
		proof := validate.Program(p)
		require.False(t, proof.OK, how)
		require.Equal(t, validate.CodeReadRace.ID, proof.Diags.Errors()[0].Code, "%s: %v", how, proof.Diags)
		require.False(t, validate.AllRanks(p).OK, how)
	}
}
