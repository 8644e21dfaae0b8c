package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/explore"
)

func TestExploreRefuses(t *testing.T) {
	out := t.TempDir()
	model := models + "zoo/llama-gqa"
	code, _, stderr := amkc("explore", model)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "AMK5908")
	require.Contains(t, stderr, "--num-sms 4 --no-build")

	large, small := filepath.Join(out, "large"), filepath.Join(out, "small")
	code, _, stderr = amkc(model, "-o", large, "--no-build", "--target", "h200")
	require.Zero(t, code, stderr)
	code, _, stderr = amkc("explore", large)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "AMK4925")
	require.Contains(t, stderr, "132 SMs")

	code, _, stderr = amkc(model, "-o", small, "--no-build", "--target", "sm_80", "--num-sms", "2")
	require.Zero(t, code, stderr)
	code, _, stderr = amkc("explore", small, "--replay", filepath.Join(out, "none.json"), "--seed", "3")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "--seed does not go with --replay")
	code, _, stderr = amkc("explore", small, "--replay", filepath.Join(out, "none.json"))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "AMK4922")
	trace := filepath.Join(out, "trace.json")
	require.NoError(t, os.WriteFile(trace, []byte(`{"format": "amkc.trace/1", "build": "0"}`), 0o600))
	code, _, stderr = amkc("explore", small, "--trace", trace)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "AMK4926")
	require.Contains(t, stderr, "is of another build")
	t.Setenv(explore.CompilerVariable, "no-such-compiler")
	code, _, stderr = amkc("explore", small)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "AMK5116")
	require.Contains(t, stderr, "no-such-compiler")
}

// A build of a small model goes right in a few schedules. Once barriers are left out the race is found, at the lines
// where it is; its script shows it again, and is refused for the build as it was.
func TestExploreBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	dir, scripts := filepath.Join(t.TempDir(), "build"), t.TempDir()
	code, _, stderr := amkc(models+"zoo/llama-gqa", "-o", dir, "--no-build", "--target", "sm_80", "--num-sms", "2")
	require.Zero(t, code, stderr)
	args := []string{"explore", dir, "--schedules", "2", "--job", "text", "--job", "steps", "-o", scripts, "--json"}
	code, stdout, stderr := amkc(args...)
	require.Zero(t, code, "%s%s", stdout, stderr)
	var right explored
	require.NoError(t, json.Unmarshal([]byte(stdout), &right))
	require.Empty(t, right.Findings)
	require.Empty(t, right.Scripts)
	require.Len(t, right.Jobs, 2)
	for _, j := range right.Jobs {
		require.NotZero(t, j.Choices)
		require.NotZero(t, j.Values)
	}
	called := func() *explore.Report {
		t.Helper()
		cache, err := compiler.CacheDir()
		require.NoError(t, err)
		exe, err := os.Executable()
		require.NoError(t, err)
		r, err := explore.Explore(t.Context(), explore.Options{Build: dir, Cache: cache, Schedules: 2, Seed: 1,
			Called: true, Jobs: []string{"text", "steps"}, Command: []string{exe, "explore", dir}})
		require.NoError(t, err)
		return r
	}
	require.Equal(t, right.Report, called(), "the same steps and results where functions are called")

	header := filepath.Join(dir, "amk", "attention_fma.cuh")
	text, err := os.ReadFile(header)
	require.NoError(t, err)
	edited := func(to string) {
		t.Helper()
		const barrier = "    consumer_barrier();\n"
		require.Contains(t, string(text), barrier)
		require.NoError(t, os.WriteFile(header, []byte(strings.ReplaceAll(string(text), barrier, to)), 0o600))
	}
	edited("    no_such_barrier();\n")
	code, _, stderr = amkc(args...)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "AMK5117")
	require.Contains(t, stderr, "no_such_barrier")

	edited("\n")
	code, stdout, stderr = amkc(args...)
	require.Equal(t, 1, code, stderr)
	require.Contains(t, stderr, "AMK4921")
	var wrong explored
	require.NoError(t, json.Unmarshal([]byte(stdout), &wrong))
	require.NotEmpty(t, wrong.Scripts)
	f := wrong.Findings[0]
	require.Equal(t, "race", f.Kind)
	require.Contains(t, f.Sites[0].Frames[0].File, "amk/", "%+v", f)
	same := called().Findings[0]
	require.Equal(t, f.Message, same.Message)
	require.Greater(t, len(f.Sites[0].Frames), len(same.Sites[0].Frames), "with callers where functions are inlined")
	script := filepath.Join(scripts, "called.json")
	require.NoError(t, same.Script.Write(script))
	for _, script := range []string{wrong.Scripts[0], script} {
		code, _, stderr = amkc("explore", dir, "--replay", script)
		require.Equal(t, 1, code)
		require.Contains(t, stderr, "race: "+f.Message)
	}

	edited("    consumer_barrier();\n")
	code, _, stderr = amkc("explore", dir, "--replay", wrong.Scripts[0])
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "AMK4922")
	require.Contains(t, stderr, "is of another build")
}
