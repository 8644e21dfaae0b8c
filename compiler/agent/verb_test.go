package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// wordsOf is the command line of a tool with an input, or why there is none.
func wordsOf(s *Server, in verbInput) ([]string, error) {
	a := &arguments{s: s}
	in.command(a)
	return a.words, a.err
}

// A search may go by a corpus, and a campaign may be learnt from: both are files of the root, as all others.
func TestCorpusIsInTheRoot(t *testing.T) {
	s, outside := rootWithLinks(t)
	s.options.Key = filepath.Join(t.TempDir(), "verdict.key")
	corpus := filepath.Join(s.dir, "corpus")
	require.NoError(t, os.WriteFile(corpus, nil, 0o644))
	campaign := campaignInput{modelInput: modelInput{Model: "a/b/c"}, Campaign: "camp"}
	guided := func(name string) guidedInput {
		in := guidedInput{campaignInput: campaign, Corpus: name}
		in.Proposers = []string{"local", "prior"}
		return in
	}
	for _, name := range []string{"corpus", corpus} {
		for _, in := range []verbInput{searchInput{guidedInput: guided(name)}, planInput{guided(name)}} {
			words, err := wordsOf(s, in)
			require.NoError(t, err)
			require.Subset(t, words, []string{"--proposer=local", "--proposer=prior", "--corpus=./corpus"})
		}
		words, err := wordsOf(s, learnInput{Corpus: name, From: []string{"corpus"}})
		require.NoError(t, err)
		require.Equal(t, []string{"campaign", "learn", "./corpus", "./corpus", "--key=" + s.options.Key}, words)
	}
	words, err := wordsOf(s, learnInput{Corpus: "a/new"})
	require.NoError(t, err)
	require.Equal(t, "./a/new", words[2], "it is made")

	for _, name := range []string{"file", "out/secret", "none", "../x", outside} {
		for _, in := range []verbInput{searchInput{guidedInput: guided(name)}, planInput{guided(name)},
			learnInput{Corpus: name}, learnInput{Corpus: "corpus", From: []string{name}}} {
			_, err := wordsOf(s, in)
			require.ErrorContains(t, err, "AMK6202", "%T %s", in, name)
		}
	}
	for in, want := range map[verbInput]string{
		&searchInput{guidedInput: guided("nowhere")}:             "is not there",
		&learnInput{Corpus: "corpus", From: []string{"--key=x"}}: "is not there",
	} {
		_, err := wordsOf(s, in)
		require.ErrorContains(t, err, want)
	}
}

// What runs a command is no proposer of a tool, and a stage on its own is not searched by what was learnt of steps.
func TestProposersOfTools(t *testing.T) {
	s, _ := rootWithLinks(t)
	campaign := campaignInput{modelInput: modelInput{Model: "a/b/c"}, Campaign: "camp"}
	campaign.Proposers = []string{"exec:touch x"}
	_, err := wordsOf(s, searchInput{guidedInput: guidedInput{campaignInput: campaign}})
	require.ErrorContains(t, err, `"exec:touch x"; want random, local, evolve, cost or prior`)
	campaign.Proposers = []string{"prior"}
	_, err = wordsOf(s, tuneInput{campaignInput: campaign, Stage: "qkv"})
	require.ErrorContains(t, err, `"prior"; want random, local, evolve or cost`)
	campaign.Proposers = []string{"local", "cost"}
	words, err := wordsOf(s, tuneInput{campaignInput: campaign, Stage: "qkv"})
	require.NoError(t, err)
	require.Subset(t, words, []string{"tune", "qkv", "--proposer=local", "--proposer=cost"})
}

// What a verb found is a result, whatever it is; that it could not be carried out is an error of the tool, also where
// fields of its own are there and empty.
func TestFailed(t *testing.T) {
	for result, want := range map[string]bool{
		`{"schema":"amkc.space/1","ok":true,"exit":0,"errors":[],"warnings":[]}`:                   false,
		`{"ok":true,"exit":0,"errors":[],"stop":""}`:                                               false,
		`{"ok":false,"exit":1,"errors":[{"code":"AMK6101"}],"verdict":{"class":"REJECTED"}}`:       false,
		`{"ok":false,"exit":1,"errors":[{"code":"AMK4005"}],"stats":{"tasks":3},"backend":"ref"}`:  false,
		`{"ok":false,"exit":1,"errors":[],"same":false,"changes":[{"path":"a"}]}`:                  false,
		`{"schema":"amkc.cost/1","ok":false,"exit":1,"errors":[{"code":"AMK3602"}],"warnings":[]}`: true,
		`{"ok":false,"exit":2,"errors":[{"code":"AMK5901"}],"codes":[]}`:                           true,
		`{"ok":false,"exit":2,"errors":[{"code":"AMK5903"}],"stats":{"tasks":0}}`:                  true,
		`{"ok":false,"errors":[{"code":"AMK5903"}],"stats":{"tasks":0}}`:                           true,
		`[1]`: true,
	} {
		require.Equal(t, want, failed([]byte(result), false), result)
	}
	// doctor is asked for what is wrong with the environment.
	require.False(t, failed([]byte(`{"ok":false,"exit":2,"errors":[{"code":"AMK5107"}],"checks":[]}`), true))
	require.True(t, failed([]byte(`{"ok":false,"exit":2,"errors":[{"code":"AMK5901"}],"warnings":[]}`), true))
	s, _ := rootWithLinks(t)
	a := &arguments{s: s}
	doctorInput{}.command(a)
	require.True(t, a.finds)
}
