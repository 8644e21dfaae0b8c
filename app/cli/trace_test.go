package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

func TestBenchTrace(t *testing.T) {
	hosttest.NeedDriver(t)
	dir, out := build(t, ""), t.TempDir()
	path := filepath.Join(out, "trace.json")
	require.NoError(t, os.WriteFile(path, []byte("of an earlier run"), 0o600))
	code, text, stderr := run(t, dir, "", "bench", "--position", "10", "--launches", "10", "--trace", path)
	require.Zero(t, code, stderr)
	require.Contains(t, text, "trace      "+path+
		": the step at position 11, 68 spans; https://ui.perfetto.dev opens it\n"+
		"recording  606.0 µs per token with it and 600.0 without, in the same run: it costs 1.0 %\n")
	files, err := os.ReadDir(out)
	require.NoError(t, err)
	require.Len(t, files, 1, "no temporary file is left")

	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var file struct {
		TraceEvents []struct {
			Ph, Name, Cat string
			Pid, Tid      int
			Ts, Dur       float64
			Args          map[string]any
		}
		OtherData map[string]any
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	names, spans := map[[2]int]any{}, 0
	for _, e := range file.TraceEvents {
		switch e.Ph {
		case "M":
			if e.Name == "thread_name" {
				names[[2]int{e.Pid, e.Tid}] = e.Args["name"]
			}
		case "X":
			require.Contains(t, names, [2]int{e.Pid, e.Tid}, "tracks have names before they have events")
			require.Equal(t, e.Cat, e.Args["kind"])
			require.GreaterOrEqual(t, e.Ts, 0.0)
			spans++
		}
	}
	require.Equal(t, 4*(5*3+2), spans)
	require.Equal(t, "SM 0 consumer", names[[2]int{1, 1}])
	require.Equal(t, "SM 3 producer", names[[2]int{2, 4}])
	require.Equal(t, "Fake A", file.OtherData["device"])

	code, text, _ = run(t, dir, "", "bench", "--launches", "10", "--trace", path, "--trace-steps", "3", "--json")
	require.Zero(t, code)
	var r struct {
		Trace struct {
			File  string
			Steps int
			Plain float64 `json:"plain_us"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &r))
	require.Equal(t, path, r.Trace.File)
	require.Equal(t, 3, r.Trace.Steps)
	require.InDelta(t, 400, r.Trace.Plain, 0.1)
}

// What cannot be written is refused before anything is measured: none of these needs a GPU.
func TestTraceFiles(t *testing.T) {
	dir := build(t, "")
	for _, c := range []struct {
		args []string
		text string
	}{
		{[]string{"--trace", dir}, "--trace: " + dir + " is a directory; want a file, as " +
			filepath.Join(dir, "trace.json")},
		{[]string{"--trace", filepath.Join(dir, "no", "trace.json")},
			"there is no directory " + filepath.Join(dir, "no")},
		{[]string{"--trace", "/dev/null"}, "--trace: /dev/null: it is a device; want a file, or a name that is free"},
		{[]string{"--trace", filepath.Join(dir, host.WeightsFile)},
			"is weights.safetensors of the build; want another file"},
		{[]string{"--report", filepath.Join(dir, host.ManifestFile)},
			"is amkc.manifest.json of the build; want another file"},
		{[]string{"--trace", ""}, "no file is named"},
		{[]string{"--trace-steps", "2"}, "--trace-steps says how much --trace FILE records"},
	} {
		code, out, stderr := run(t, dir, "", append([]string{"bench"}, c.args...)...)
		require.Equal(t, 2, code, c.args)
		require.Empty(t, out)
		require.Contains(t, stderr, c.text)
	}
}

func TestNoTraceAfterAFailedCheck(t *testing.T) {
	hosttest.NeedDriver(t)
	path := filepath.Join(t.TempDir(), "trace.json")
	code, _, _ := runAgainst(true, build(t, ""), "", "bench", "--trace", path)
	require.Equal(t, 1, code)
	require.NoFileExists(t, path)
}
