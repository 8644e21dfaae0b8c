package serve

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// exampleKey is the API key that an example in Go has in it.
const exampleKey = "My API Key"

// serveExamples returns the environment of programs that ask a server whose model has some name.
func serveExamples(t *testing.T, model string) []string {
	l := limits
	l.MaxSeq = 80 // an answer goes on to the end of the context: no example says how long it may be
	s := newTest(NewSingle(newVM(t), l, 4), func(c *Config) { c.APIKey, c.Model = exampleKey, model }).start(t)
	return append(os.Environ(), "OPENAI_BASE_URL="+s.url+"/v1", "OPENAI_API_KEY="+exampleKey)
}

// The examples of the README of OpenAI's client for Python run as they are; openai_examples.py says which.
func TestOpenAIExamples(t *testing.T) {
	python := os.Getenv("AMKC_OPENAI")
	if python == "" {
		t.Skip("AMKC_OPENAI names no Python with OpenAI's client")
	}
	run := exec.Command(python, "testdata/openai_examples.py")
	run.Env = serveExamples(t, "gpt-5.5")
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}

// So do those of the one for Go that are whole programs, but for those of other services and of webhooks.
func TestOpenAIExamplesForGo(t *testing.T) {
	if os.Getenv("AMKC_OPENAI_GO") == "" {
		t.Skip("AMKC_OPENAI_GO does not ask for OpenAI's client for Go")
	}
	// go list -m would fetch nothing.
	fetch := exec.Command("go", "mod", "download", "-json", "github.com/openai/openai-go/v3")
	fetch.Dir = "testdata/openai_go"
	said, err := fetch.Output()
	require.NoError(t, err, "%s", said)
	var module struct{ Dir string }
	require.NoError(t, json.Unmarshal(said, &module))
	readme, err := os.ReadFile(filepath.Join(module.Dir, "README.md"))
	require.NoError(t, err)
	env, ran := serveExamples(t, "gpt-5.2"), 0
	other := regexp.MustCompile(`openai-go/v3/(bedrock|azure|webhooks)|VerifySignature`)
	for i, m := range regexp.MustCompile("(?sm)^```go\n(package main\n.*?)^```$").FindAllSubmatch(readme, -1) {
		if other.Match(m[1]) {
			continue
		}
		ran++
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), m[1], 0o666))
		for _, name := range []string{"go.mod", "go.sum"} {
			text, err := os.ReadFile(filepath.Join("testdata/openai_go", name))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o666))
		}
		build := exec.Command("go", "build", "-o", "example", ".")
		build.Dir = dir
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s%s", m[1], out)
		run := exec.Command(filepath.Join(dir, "example"))
		run.Env = env
		out, err = run.CombinedOutput()
		require.NoError(t, err, "%s%s", m[1], out)
		require.NotEmpty(t, strings.TrimSpace(string(out)), "%s", m[1])
		t.Logf("program %d: %.100q", i+1, out)
	}
	require.Equal(t, 2, ran, "programs of the README that need nothing but text")
}
