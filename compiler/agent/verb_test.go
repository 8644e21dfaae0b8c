package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// wordsOf is the command line of a tool with an input, or why there is none.
func wordsOf(s *Server, tool string, in any) ([]string, error) {
	a := &arguments{s: s}
	a.command(tool, in)
	return a.words, a.err
}

// The fields of an input become flags of their names, or what a tag says; what is empty is left out.
func TestCommandLines(t *testing.T) {
	s, outside := rootWithLinks(t)
	s.options.Key = filepath.Join(t.TempDir(), "verdict.key")
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "text"), nil, 0o644))
	for _, name := range []string{"x", "y/z"} {
		require.NoError(t, os.MkdirAll(filepath.Join(s.dir, name), 0o755))
	}
	model, none := modelInput{Model: "a/b/c", MaxSeq: 64}, 0
	for _, c := range []struct {
		tool string
		in   any
		want []string
	}{
		{"doctor", noInput{}, []string{"doctor"}},
		{"explain", explainInput{Codes: []string{"AMK1", "--x"}}, []string{"explain", "--", "AMK1", "--x"}},
		{"build", buildInput{modelInput: model, Out: "new", NoBuild: true},
			[]string{"compile", "./a/b/c", "--max-seq=64", "--out=./new", "--no-build"}},
		{"bench", benchInput{Builds: []string{"x", "y/z"}, Positions: []int{1, 2}},
			[]string{"bench", "./x", "./y/z", "--position=1,2"}},
		{"simulate", simulateInput{fileInput: fileInput{"text"}, Seconds: 3, Positions: listed{"5", "5/9"}},
			[]string{"simulate", "./text", "--time=3", "--position=5,5/9"}},
		{"quality", qualityInput{modelInput: model, Against: "x", textInput: textInput{Text: "text"}, Greedy: &none},
			[]string{"quality", "./a/b/c", "--max-seq=64", "--against=./x", "--text=./text", "--greedy=0"}},
		{"formats", formatsInput{modelInput: model, Formats: listed{"int8", "int4"}, KL: 0.5},
			[]string{"formats", "./a/b/c", "--max-seq=64", "--format=int8,int4", "--kl=0.5"}},
		{"search", searchInput{modelInput: model, Campaign: "camp", Only: []string{"ring", "--key=x"}, Cold: true,
			judgedInput: judgedInput{Timeout: 9, SameBits: true}},
			[]string{"search", "./a/b/c", "--max-seq=64", "--same-bits", "--timeout=9", "--out=./camp", "--cold",
				"--only=ring", "--only=--key=x", "--key=" + s.options.Key}},
		{"campaign_record", recordInput{campaignInput{"x"}, "text"},
			[]string{"search", "campaign", "record", "./x", "./text", "--key=" + s.options.Key}},
	} {
		words, err := wordsOf(s, c.tool, c.in)
		require.NoError(t, err, c.tool)
		require.Equal(t, c.want, words)
	}
	for _, name := range []string{"file", "out/secret", "none", "../x", outside} {
		for _, in := range []any{fileInput{name}, textInput{Text: name}, benchInput{Builds: []string{"x", name}},
			searchInput{modelInput: model, Campaign: name}, evalInput{modelInput: model, Save: name}} {
			_, err := wordsOf(s, "x", in)
			require.ErrorContains(t, err, "AMK6202", "%T %s", in, name)
		}
	}
	_, err := wordsOf(s, "verify", oneBuildInput{"--key=x"})
	require.ErrorContains(t, err, "is not there")
	_, err = wordsOf(s, "x", struct{ Other uint8 }{})
	require.ErrorContains(t, err, "is of a type that no verb takes")
}

// What may measure waits for its turn.
func TestWhatMeasures(t *testing.T) {
	s, _ := rootWithLinks(t)
	for _, c := range []struct {
		in   any
		want bool
	}{
		{checkInput{}, true}, {benchInput{}, true}, {evalInput{}, false}, {oneBuildInput{}, false},
		{evalInput{judgedInput: judgedInput{Device: "cuda"}}, true}, {textInput{}, true},
		{searchInput{judgedInput: judgedInput{Device: "cuda"}}, true}, {textInput{Device: "ref"}, false},
		{qualityInput{textInput: textInput{Device: "ref"}}, false}, {formatsInput{}, true},
	} {
		a := &arguments{s: s}
		a.command("x", c.in)
		require.Equal(t, c.want, a.alone, "%T", c.in)
	}
}

// What a verb found is a result, whatever it is; that it could not run is an error of the tool, also where
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
	a.command("doctor", noInput{})
	require.True(t, a.finds)
}
