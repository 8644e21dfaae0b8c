package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/runtime/shape"
)

const (
	committedTexts = "../../testdata/drafts"
	pycoder        = "../../testdata/models/pycoder-5m"
)

// draftBuild is a build for n positions with passes of eight rows.
func draftBuild(t *testing.T, settings string, positions string, n int) string {
	t.Helper()
	hosttest.NeedDriver(t)
	return hosttest.Build(t, "max_seq="+positions+" end0="+positions+" "+settings, func(f *host.Facts) {
		f.Model.MaxSeq, f.Variants[0].Hi = n, n-1
		hosttest.AddPasses(f, shape.Pass{Rows: 8})
	})
}

func draftsOf(t *testing.T, dir string, args ...string) (code int, r draftsResult) {
	t.Helper()
	args = append([]string{"drafts", "--tokenizer", pycoder, "--rounds", "1"}, args...)
	code, out, stderr := device(t, dir, args...)
	require.Empty(t, stderr)
	require.NoError(t, json.Unmarshal([]byte(out), &r), out)
	return code, r
}

// writeText writes a text of the kind that drafts reads.
func writeText(t *testing.T, dir, name, prompt, answer string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	hosttest.Write(t, filepath.Join(dir, name), "prompt.txt", []byte(prompt))
	hosttest.Write(t, filepath.Join(dir, name), "answer.txt", []byte(answer))
}

// The committed texts are written as they are committed, with drafts and without, and drafts are accepted where the
// text repeats itself.
func TestDraftsOfTheCommittedTexts(t *testing.T) {
	code, r := draftsOf(t, draftBuild(t, "", "2048", 2048), "--scripted", "--texts", committedTexts)
	require.Zero(t, code, r.Difference)
	require.True(t, r.Check.Passed)
	require.Equal(t, 8, r.Rows)
	require.Len(t, r.Kinds, 3)
	for i, kind := range []string{"edit", "fresh", "quotes"} {
		require.Equal(t, kind, r.Kinds[i].Kind)
		require.Equal(t, 4, r.Kinds[i].Texts)
	}
	for _, d := range r.Texts {
		require.True(t, d.Same, d.Name)
		require.Zero(t, d.Cut, "%s has more positions than a build of this many", d.Name)
		require.Positive(t, d.Ratio, d.Name)
		require.InDelta(t, float64(d.Tokens)/float64(d.Tokens-d.Accepted), d.TokensPerRead, 1e-9)
		if d.Kind == "fresh" {
			require.Less(t, d.TokensPerRead, 1.3, d.Name)
		} else {
			require.Greater(t, d.TokensPerRead, 1.7, d.Name)
		}
	}
}

// Without a script the model writes, and a text that does not fit is cut.
func TestDraftsOfAModel(t *testing.T) {
	texts := t.TempDir()
	writeText(t, texts, "edit-a", strings.Repeat("one two three\n", 40), "one two three\n")
	code, r := draftsOf(t, draftBuild(t, "", "128", 128), "--texts", texts)
	require.Zero(t, code, r.Difference)
	d := r.Texts[0]
	require.Positive(t, d.Cut)
	require.Equal(t, 128, d.Prompt+d.Tokens)
	require.True(t, d.Same)
}

// A kernel that is wrong is found before anything is timed, and so is what drafts have changed.
func TestDraftsThatChangeATextAreFound(t *testing.T) {
	texts := t.TempDir()
	writeText(t, texts, "edit-a", "a = b + c\n", strings.Repeat("a = b + c\n", 8))
	for _, settings := range []string{"off=900", "pass_off=1", "pass_picks=1"} {
		code, r := draftsOf(t, draftBuild(t, settings, "128", 128), "--scripted", "--texts", texts)
		require.Equal(t, 1, code, settings)
		require.False(t, r.Check.Passed, settings)
		require.Empty(t, r.Texts, settings)
	}
	r := draftsResult{}
	text := &draftText{answer: []int{5, 6}}
	require.True(t, r.same(text, []int{7, 8}, []int{7, 8}))
	require.False(t, r.same(text, []int{7, 8}, []int{7, 9}))
	require.False(t, r.same(text, []int{7}, []int{7}))
	r.Scripted = true
	require.False(t, r.same(text, []int{7, 8}, []int{7, 8}))
}

func TestDraftsRefuse(t *testing.T) {
	dir := draftBuild(t, "", "128", 128)
	empty, loose, short := t.TempDir(), t.TempDir(), t.TempDir()
	hosttest.Write(t, loose, "a.txt", []byte("x"))
	writeText(t, short, "edit-a", "x", "")
	for texts, why := range map[string]string{empty: "there are no texts", loose: "want folders alone",
		short: "an answer of 0", filepath.Join(empty, "none"): "no such file"} {
		code, _, stderr := device(t, dir, "drafts", "--texts", texts, "--tokenizer", pycoder)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, why)
	}
	code, _, stderr := device(t, hosttest.Build(t, "", nil), "drafts", "--texts", committedTexts, "--tokenizer",
		pycoder)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "no passes of several rows")
	code, _, stderr = device(t, dir, "drafts", "--rounds", "0")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "usage: device DIR drafts")
}
