package serve

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// litellm is content, and the first example of its README runs as it is. AMKC_OPENAI names a Python that has it.
func TestOpenAILiteLLM(t *testing.T) {
	python := os.Getenv("AMKC_OPENAI")
	if python == "" {
		t.Skip("AMKC_OPENAI names no Python with litellm")
	}
	s := newTest(NewSingle(newVM(t), limits, 4), func(c *Config) {
		c.Aliases = []string{"gpt-4o", "claude-sonnet-4-20250514"}
	}).start(t)
	random, agent := serve(t, longer()), serve(t, answering(t))
	out, err := exec.Command(python, "testdata/litellm_client.py", s.url, random.url, agent.url).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
