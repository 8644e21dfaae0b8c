package cli_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host/hosttest"
)

// docs/bench.md lists every field of the JSON form; this test checks it.
func TestBenchJSONIsDocumented(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := build(t, "slow_us=200") // so that clocks are looked at while a prompt is read
	hosttest.Write(t, dir, "program.json", []byte(`{"config": {"pipelining_depth": 3}}`))
	code, out, stderr := run(t, dir, "", "bench", "--json", "--drawn", "--launches", "3", "--prompt", "100", "--trace",
		filepath.Join(t.TempDir(), "trace.json"))
	require.Zero(t, code, stderr)
	require.Empty(t, stderr)
	var r map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, "amkc.bench/1", r["schema"])
	require.Equal(t, 3.0, r["launches"])
	require.Contains(t, r["prompt"], "clocks")

	doc, err := os.ReadFile("../../docs/bench.md")
	require.NoError(t, err)
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_.]+)`").FindAllSubmatch(doc, -1) {
		documented[string(m[1])] = true
	}
	for _, path := range paths("", r) {
		require.True(t, documented[path], "docs/bench.md has no row for %s", path)
	}
}

// paths lists the fields of an object, those of nested objects as "outer.inner", lists taken for one of their elements.
func paths(prefix string, v any) []string {
	switch v := v.(type) {
	case map[string]any:
		var all []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			all = append(all, paths(prefix+"."+k, v[k])...)
		}
		return all
	case []any:
		if len(v) > 0 {
			return paths(prefix, v[0])
		}
	}
	return []string{prefix[1:]}
}

func TestBenchReport(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := build(t, "")
	page := filepath.Join(t.TempDir(), "out.html")
	hosttest.Write(t, filepath.Dir(page), "out.html", []byte("an older one"))
	code, out, stderr := run(t, dir, "", "bench", "--steps-per-launch", "15", "--position", "10", "--launches", "10",
		"--drawn", "--report", page)
	require.Zero(t, code, stderr)
	require.Contains(t, out, "share      90.0 % of the ceiling")
	require.Contains(t, out, "drawn      200.0 µs (p10 200.0, p90 200.0) where tokens are drawn with a temperature: "+
		"+0.00 %\n")
	for _, how := range []string{"top-k 50 and top-p 0.95", "min-p 0.05", "a mask"} {
		require.Contains(t, out, "where tokens are drawn with a temperature and "+how+": +0.00 %\n")
	}
	require.Contains(t, out, "report     "+page+"\n")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "<title>fake: 200.0 µs per token on Fake A</title>")
	require.Contains(t, string(text), "<dd>fake bench --position 10 --steps-per-launch 15 --launches 10 "+
		"--warm-up 10 --drawn</dd>")
	require.Contains(t, string(text), "SM 1,755 MHz")
	require.Contains(t, string(text), "From one launch of the instrumented kernel: 1 step from position 11 on.")
	require.Contains(t, string(text), "<title>attn, compute</title>")
	require.Len(t, entries(t, filepath.Dir(page)), 1, "nothing but the page is left")

	again := filepath.Join(t.TempDir(), "again.html")
	code, _, _ = run(t, dir, "", "bench", "--steps-per-launch", "15", "--position", "10", "--launches", "10",
		"--drawn", "--report", again, "--json")
	require.Zero(t, code)
	same, err := os.ReadFile(again)
	require.NoError(t, err)
	require.True(t, string(text) == string(same),
		"the fake measures the same again, and there is no time or path on the page")
}

// A path that cannot be written is refused before anything else: the GPU that does not exist is not even looked for.
func TestBenchReportPathIsTriedFirst(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := build(t, "")
	for _, path := range []string{filepath.Join(t.TempDir(), "no", "such", "folder.html"), t.TempDir()} {
		code, out, stderr := run(t, dir, "", "bench", "--report", path, "--gpu", "9")
		require.Equal(t, 2, code)
		require.Empty(t, out)
		require.Contains(t, stderr, "--report")
		require.NotContains(t, stderr, "GPU")
	}
}

func TestBenchReportIsNotWrittenInVain(t *testing.T) {
	hosttest.NeedDriver(t)
	folder := t.TempDir()
	hosttest.Write(t, folder, "out.html", []byte("an older one"))
	code, _, stderr := runAgainst(true, build(t, ""), "", "bench", "--report", filepath.Join(folder, "out.html"))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "check failed")
	code, _, stderr = run(t, build(t, "decode_us=79"), "", "bench", "--report", filepath.Join(folder, "out.html"))
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "is not reported")
	text, err := os.ReadFile(filepath.Join(folder, "out.html"))
	require.NoError(t, err)
	require.Equal(t, "an older one", string(text))
	require.Len(t, entries(t, folder), 1)
}

func entries(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	return all
}
