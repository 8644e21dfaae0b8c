package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host/hosttest"
	"amkc/text/chat"
)

const chatTemplate = "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}" +
	"{{ raise_exception('no system') }}{% endif %}# {{ m.role }}: {{ m.content }}\n{% endfor %}"

// messages writes a file of messages and returns its path.
func messages(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "messages.json")
	require.NoError(t, os.WriteFile(path, []byte(`[{"role": "user", "content": "hi"}]`), 0o600))
	return path
}

// Messages become the prompt that the build's template makes of them, with one begin token, from a file or stdin.
func TestRunMessages(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := build(t, "")
	ids := func(stdin string, args ...string) []int {
		code, out, stderr := run(t, dir, stdin, append(args, "--max-tokens", "2", "--json")...)
		require.Zero(t, code, stderr)
		var r result
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		return r.PromptIDs
	}
	code, _, stderr := run(t, dir, "", "run", "--messages", messages(t))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "the model came without a chat template; give the whole prompt with run --prompt")

	hosttest.Write(t, dir, chat.TemplateFile, []byte(chatTemplate))
	hosttest.Write(t, dir, chat.ConfigFile, []byte(`{"bos_token": "<|begin_of_text|>"}`))
	want := ids("", "run", "--prompt", "# user: hi\n")
	require.Equal(t, want, ids("", "run", "--messages", messages(t)))
	require.Equal(t, want, ids(`{"messages": [{"role": "user", "content": "hi"}]}`, "run", "--messages", "-"))

	for stdin, says := range map[string]string{
		`[{"role": "system", "content": "x"}]`: "the chat template does not format stdin: line 1: no system",
		`{"role": "user"}`:                     `stdin: the conversation has a field "role"; want a list of messages`,
		`[{"role": "user", "content": [{"type": "image"}]}]`: `number 1 of messages has a part of type "image"; ` +
			"want text",
		`[`: "stdin: line 1, column 2: the text ends too early",
	} {
		code, _, stderr := run(t, dir, stdin, "run", "--messages", "-")
		require.Equal(t, 1, code)
		require.Contains(t, stderr, says)
	}
	_, _, stderr = run(t, dir, "", "run", "--messages", filepath.Join(dir, "missing.json"))
	require.Contains(t, stderr, "missing.json: the messages cannot be read: no such file or directory")
	code, _, stderr = run(t, dir, "", "run", "--messages", "-", "--prompt", "x")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "give one of --prompt TEXT, --messages FILE, --ids 1,2,3 and --prompts FILE")
}
