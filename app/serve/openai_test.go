package serve

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// OpenAI's own client for Python is content. AMKC_OPENAI names a Python that has it.
func TestOpenAIClient(t *testing.T) {
	python := os.Getenv("AMKC_OPENAI")
	if python == "" {
		t.Skip("AMKC_OPENAI names no Python with OpenAI's client")
	}
	talk(t, python, "testdata/openai_client.py")
}

// So is the one for Go. It is in a module of its own, which go fetches: AMKC_OPENAI_GO allows that.
func TestOpenAIClientForGo(t *testing.T) {
	if os.Getenv("AMKC_OPENAI_GO") == "" {
		t.Skip("AMKC_OPENAI_GO does not ask for OpenAI's client for Go")
	}
	program := filepath.Join(t.TempDir(), "client")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = "testdata/openai_go"
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	talk(t, program)
}

// talk runs a client of two servers: one decodes, and one calls a tool.
func talk(t *testing.T, client ...string) {
	s := newTest(NewSingle(newVM(t), limits, 4), func(c *Config) { c.APIKey = "k" }).start(t)
	tools := serve(t, says(t, `Let me see.<tool_call>{"name": "weather", "arguments": {"place": "Bern"}}</tool_call>`))
	args := append(client[1:], s.url+"/v1", tools.url+"/v1")
	out, err := exec.Command(client[0], args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
