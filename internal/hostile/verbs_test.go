package hostile

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler/cli"
	"amkc/internal/watch"
)

// codeInOutput is the code of a diagnostic, as text or as JSON.
var codeInOutput = regexp.MustCompile(`\[AMK\d{4}\]|"code":"AMK\d{4}"`)

// unforeseen is the code of errors that no diagnostic describes: a hostile file must not lead to one.
const unforeseen = "AMK5904"

// amkc runs a verb in this process, and returns its exit code and standard output. Whatever the input is, the code is
// one of three, and an error is a diagnostic with a code.
func amkc(t testing.TB, args ...string) (code int, stdout string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Main(args, strings.NewReader(""), &out, &errs)
	require.Contains(t, []int{0, 1, 2}, code)
	require.NotContains(t, errs.String(), unforeseen, "%q", args)
	if code == 2 {
		require.Regexp(t, codeInOutput, errs.String(), "%q", args)
	}
	if code == 1 && args[0] != "diff" { // there, 1 is that the two differ
		require.Regexp(t, codeInOutput, errs.String(), "%q", args)
	}
	return code, out.String()
}

// dumpForms are the formats of dump that take a program.
var dumpForms = []string{"text", "json", "amk-json", "loops"}

// Verbs that read a program do so whatever is in the file.
func FuzzPrograms(f *testing.F) {
	if testing.Short() {
		f.Skip("make test-all runs it")
	}
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	addFiles(f, "testdata/programs/*")
	file := filepath.Join(f.TempDir(), "program")
	f.Fuzz(func(t *testing.T, data []byte) {
		defer watch.Execution()()
		require.NoError(t, os.WriteFile(file, data, 0o600))
		readable := 0
		for _, format := range dumpForms {
			if code, text := amkc(t, "dump", file, "--format", format); code == 0 {
				readable++
				reread(t, format, text)
			}
		}
		if readable == 0 && len(data) > 1<<16 {
			return
		}
		amkc(t, "dump", file, "--position", "3", "--format", "loops")
		amkc(t, "cost", file, "--position", "0,100")
		amkc(t, "validate", file)
	})
}

// reread takes what dump has printed in a form that is read back through dump again: it prints the same.
func reread(t *testing.T, format, text string) {
	if format != "text" && format != "json" {
		return
	}
	again := filepath.Join(t.TempDir(), "again")
	require.NoError(t, os.WriteFile(again, []byte(text), 0o600))
	code, second := amkc(t, "dump", again, "--format", format)
	require.Zero(t, code)
	require.Equal(t, text, second)
}

// addFiles adds the files that match a pattern to the seeds.
func addFiles(f *testing.F, pattern string) {
	names, err := filepath.Glob(pattern)
	require.NoError(f, err)
	require.NotEmpty(f, names)
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(data)
	}
}

// Verbs that compile do so whatever config.json and the schedule's configuration say: in memory, without weights. The
// seeds are configs of all small models for a fuzzer and where AMKC_LONG asks for them, and else one of each family.
func FuzzModels(f *testing.F) {
	if testing.Short() {
		f.Skip("make test-all runs it")
	}
	const plain = `{"tiling": {"ring": {"pace": 800}}, "sm_assignment": "round_robin"}`
	all := os.Getenv("AMKC_LONG") != "" || flag.Lookup("test.fuzz").Value.String() != ""
	families := map[string]bool{}
	for _, pattern := range []string{"models/*/config.json", "models/zoo/*/config.json"} {
		names, err := filepath.Glob(filepath.Join("../../testdata", pattern))
		require.NoError(f, err)
		require.NotEmpty(f, names)
		for _, name := range names {
			config, err := os.ReadFile(name)
			require.NoError(f, err)
			var of struct {
				ModelType string `json:"model_type"`
			}
			require.NoError(f, json.Unmarshal(config, &of))
			if all || !families[of.ModelType] {
				f.Add(config, []byte(plain), uint16(132))
			}
			families[of.ModelType] = true
		}
	}
	f.Add([]byte(`{"model_type": "llama", "num_hidden_layers": 512, "vocab_size": 16777216, `+
		`"max_position_embeddings": 16777216}`), []byte(`{}`), uint16(1024))
	f.Add([]byte(`{"model_type": "llama", "rms_norm_eps": 1e308, "rope_theta": 1e30, "head_dim": 1024}`),
		[]byte(`{"tiling": {"loop": {"roll": 0, "barrier": 1}}}`), uint16(7))
	f.Add([]byte(`{"model_type": "llama"}`),
		[]byte(`{"sm_assignment": {"qkv": 1}, "page_allocation": "none", "pipelining_depth": 2}`), uint16(1))
	dir := f.TempDir()
	schedule := filepath.Join(dir, "schedule.json")
	f.Fuzz(func(t *testing.T, config, knobs []byte, sms uint16) {
		defer watch.Execution()()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600))
		require.NoError(t, os.WriteFile(schedule, knobs, 0o600))
		target := []string{"--target", "h200", "--num-sms", itoa(int(sms))}
		if code, _ := amkc(t, append([]string{"cost", dir, "--config", schedule}, target...)...); code == 0 {
			for _, format := range dumpForms {
				amkc(t, append([]string{"dump", dir, "--config", schedule, "--format", format}, target...)...)
			}
		}
		amkc(t, "dump", dir, "--after", "import")
	})
}

// explain takes any words.
func FuzzExplain(f *testing.F) {
	for _, seed := range []string{"AMK3001", "4005", "amk-3001", "", "AMK", "\x1b[31m", "AMK99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, word string) {
		defer watch.Execution()()
		code, text := amkc(t, "explain", "--", word)
		require.Equal(t, code == 0, text != "")
	})
}
