package serve

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// answering is an engine of an agent: it calls weather, and once a tool has answered it answers itself.
func answering(t testing.TB) *scripted {
	call := append(idsOf(t, `<tool_call>{"name": "weather", "arguments": {"place":"Bern"}}</tool_call>`), eos)
	answer := append(idsOf(t, `{"warm":true,"degrees":31}`), eos)
	e := newScripted(func(prompt, out []int) int {
		ids := call
		if strings.Contains(words().Decode(prompt, false), "<|tool|>") {
			ids = answer
		}
		return ids[min(len(out), len(ids)-1)]
	})
	e.limits.MaxSeq = 3000
	return e
}

// typedClients runs a program that asks two servers for typed answers: one that draws tokens at random, and that of an
// agent.
func typedClients(t *testing.T, program ...string) {
	random, agent := serve(t, longer()), serve(t, answering(t))
	run := exec.Command(program[0], append(program[1:], random.url+"/v1", agent.url+"/v1")...)
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}

// Models of pydantic are answered by OpenAI's client, instructor and OpenAI's agents for Python. AMKC_AGENTS names a
// Python that has them.
func TestOpenAITypedPython(t *testing.T) {
	python := os.Getenv("AMKC_AGENTS")
	if python == "" {
		t.Skip("AMKC_AGENTS names no Python with instructor and OpenAI's agents")
	}
	typedClients(t, python, "testdata/typed_client.py")
}

// Schemas of zod are answered by OpenAI's client, the AI SDK and OpenAI's agents for JavaScript. AMKC_AGENTS_JS names a
// directory where node finds them.
func TestOpenAITypedJavaScript(t *testing.T) {
	packages := os.Getenv("AMKC_AGENTS_JS")
	if packages == "" {
		t.Skip("AMKC_AGENTS_JS names no directory with packages of node")
	}
	program, err := os.ReadFile("testdata/typed_client.mjs")
	require.NoError(t, err)
	file := packages + "/typed_client.mjs" // next to the packages, as node looks for those there
	require.NoError(t, os.WriteFile(file, program, 0o666))
	typedClients(t, "node", file)
}
