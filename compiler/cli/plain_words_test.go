package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goWords are what errors of Go's packages are made of, and no message for a user.
var goWords = regexp.MustCompile(`(?m)(^|[ (])json:|strconv|invalid character|unexpected end of JSON|unmarshal|Go ` +
	`value|Go struct|\bl?stat |\bopen /|\bopen [\w/.-]+:|mkdir|readdirent|parsing "|invalid ` +
	`syntax|EOF|%!|0x[0-9a-f]{6}`)

// Whatever is wrong with a file, a directory or a flag, the message is in the user's words.
func TestNoGoErrorText(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	dir := t.TempDir()
	model := filepath.Join(dir, "model")
	zoo := "../../testdata/models/zoo/llama-gqa"
	put := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	fresh := func() {
		require.NoError(t, os.RemoveAll(model))
		for _, name := range []string{"config.json", "generation_config.json", "model.safetensors"} {
			text, err := os.ReadFile(filepath.Join(zoo, name))
			require.NoError(t, err)
			put(filepath.Join(model, name), string(text))
		}
	}
	build := filepath.Join(dir, "build")
	code, _, stderr := amkc(zoo, "-o", build, "--target", "l4", "--no-build")
	require.Zero(t, code, stderr)
	tried := 0
	refused := func(args ...string) {
		t.Helper()
		code, stdout, stderr := amkc(args...)
		require.NotZero(t, code, "%v\n%s", args, stdout)
		assert.NotRegexp(t, goWords, stderr, "%v", args)
		tried++
	}

	damages := []string{"", "{", "[]", `{"a" 1}`, "3", "\x00", `{"eos_token_id": "x"}`, `{"eos_token_id": [1.5]}`,
		`{"weight_map": 7}`,
		`{"model": 3}`, `{"format": "x"}`, `{"facts": []}`}
	for name, verb := range map[string][]string{
		"config.json":                  {"dump", model, "--after", "import"},
		"generation_config.json":       {"run", model, "--ids", "1", "--device", "ref", "--max-tokens", "1"},
		"tokenizer.json":               {"run", model, "--prompt", "x", "--device", "ref"},
		"model.safetensors":            {"pack", model, "-o", filepath.Join(dir, "w")},
		"model.safetensors.index.json": {"pack", model, "-o", filepath.Join(dir, "w")},
	} {
		for _, text := range append(damages, "directory") {
			fresh()
			if name == "model.safetensors.index.json" {
				require.NoError(t, os.Remove(filepath.Join(model, "model.safetensors")))
			}
			path := filepath.Join(model, name)
			if put(path, text); text == "directory" {
				require.NoError(t, os.Remove(path))
				require.NoError(t, os.Mkdir(path, 0o755))
			}
			_, _, stderr := amkc(verb...)
			assert.NotRegexp(t, goWords, stderr, "%s: %q", name, text)
		}
	}
	for _, name := range []string{"amkc.manifest.json", "program.json", "config.json", "schedule.h",
		"weights.safetensors"} {
		path := filepath.Join(build, name)
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, text := range damages {
			put(path, text)
			if name == "amkc.manifest.json" || text == "" {
				refused("verify", build)
			}
			_, _, stderr := amkc("run", build, "--ids", "1", "--device", "ref", "--max-tokens", "1")
			assert.NotRegexp(t, goWords, stderr, "%s: %q", name, text)
			if name == "program.json" {
				refused("validate", path)
				refused("cost", path)
				refused("dump", path)
			}
		}
		require.NoError(t, os.Remove(path))
		refused("verify", build)
		put(path, string(before))
	}
	fresh()
	file := filepath.Join(dir, "file")
	put(file, "{")
	missing := filepath.Join(dir, "missing")
	for _, args := range [][]string{
		{model, "-o", filepath.Join(file, "x"), "--target", "l4", "--no-build"},
		{model, "-o", file, "--target", "l4", "--no-build"},
		{model, "-o", build + "2", "--target", "l4", "--no-build", "--config", file},
		{model, "-o", build + "2", "--target", "l4", "--no-build", "--config", missing},
		{model, "-o", build + "2", "--target", "l4", "--no-build", "--dump-ir", filepath.Join(file, "x")},
		{"pack", model, "-o", filepath.Join(file, "x")},
		{"pack", model, "-o", filepath.Join(missing, "x")},
		{"logits", model, "--ids", "1", "--device", "ref", "-o", filepath.Join(missing, "x")},
		{"logits", model, "--ids", "1", "--device", "ref", "-o", dir},
		{"logits", model, "--ids", "1,x", "-o", "x"},
		{"quality", model, "--against", model, "--ids-file", file},
		{"quality", model, "--against", missing, "--ids", "1,2"},
		{"quality", model, "--against", model, "--text", missing},
		{"quality", model, "--against", model, "--ids", "1,2", "--window", "x"},
		{"run", model, "--ids", "1e3", "--device", "ref"},
		{"run", model, "--ids", "1", "--max-tokens", "many"},
		{"compile", model, "-o", "x", "--num-sms", "99999999999999999999"},
		{"compile", model, "-o", "x", "--memory", "much"},
		{"compile", model, "-o", "x", "--max-seq", "1.5.2"},
		{"compile", model, "-o", "x", "--random-weights", "-1"},
		{"cost", model, "--position", "a,b"},
		{"dump", missing}, {"validate", missing}, {"validate", dir}, {"verify", missing}, {"verify", file},
		{"check", file}, {"diff", missing, build},
		{"diff", build, file}, {"cost", missing}, {"run", missing, "--prompt", "x"}, {"run", file, "--prompt", "x"},
	} {
		refused(args...)
	}
	require.Greater(t, tried, 60)
}
