package serve

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// Anthropic's own client for Python is content. AMKC_OPENAI names a Python that has it, alongside OpenAI's.
func TestAnthropicClient(t *testing.T) {
	python := os.Getenv("AMKC_OPENAI")
	if python == "" {
		t.Skip("AMKC_OPENAI names no Python with Anthropic's client")
	}
	s := newTest(NewSingle(newVM(t), limits, 4), func(c *Config) { c.APIKey = "k" }).start(t)
	const said = `Let me see.<tool_call>{"name": "weather", "arguments": {"place": "Bern"}}</tool_call>`
	tools := newTest(says(t, said), func(c *Config) { c.Aliases = []string{"claude-opus-5-5"} }).start(t)
	thinking := newTest(says(t, "<think>\nAs so.\n</think>\n\nIt is."), func(c *Config) {
		c.Chat = format(thinks)
	}).start(t)
	out, err := exec.Command(python, "testdata/anthropic_client.py", s.url, tools.url, thinking.url).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
