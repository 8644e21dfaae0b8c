package serve

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// OpenAI's own client is content. AMKC_OPENAI names a Python that has it.
func TestOpenAIClient(t *testing.T) {
	python := os.Getenv("AMKC_OPENAI")
	if python == "" {
		t.Skip("AMKC_OPENAI names no Python with OpenAI's client")
	}
	s := newTest(NewSingle(newVM(t), vocab, maxSeq, 4), func(c *Config) { c.APIKey = "k" }).start(t)
	tools := serve(t, says(t, `Let me see.<tool_call>{"name": "weather", "arguments": {"place": "Bern"}}</tool_call>`))
	out, err := exec.Command(python, "testdata/openai_client.py", s.url+"/v1", tools.url+"/v1").CombinedOutput()
	require.NoError(t, err, "%s", out)
}
