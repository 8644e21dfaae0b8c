package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host/hosttest"
	"amkc/text/chat"
)

// A conversation by lines: the answers are those of run, and the cache is kept from turn to turn.
func TestChat(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := build(t, "")
	code, out, stderr := run(t, dir, "hi\n", "chat")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, stderr, "the model came without a chat template; give the whole prompt with run --prompt")

	hosttest.Write(t, dir, chat.TemplateFile, []byte(chatTemplate))
	hosttest.Write(t, dir, chat.ConfigFile, []byte(`{"bos_token": "<|begin_of_text|>"}`))
	code, out, stderr = run(t, dir, "hi\nagain\n", "chat", "--max-tokens", "3", "--stats")
	require.Zero(t, code, stderr)
	require.Equal(t, 2, strings.Count(stderr, "the answer was cut after 3 tokens (--max-tokens)\n"))
	require.Regexp(t, `(?m)^0 tokens kept, \d+ read at [\d.]+ per second, 3 written`, stderr)
	require.Regexp(t, `(?m)^[1-9]\d* tokens kept, \d+ read at [\d.]+ per second, 3 written`, stderr)
	_, alone, _ := run(t, dir, "", "run", "--messages", messages(t), "--max-tokens", "3")
	_, answer, _ := strings.Cut(alone, "# user: hi\n")
	require.True(t, strings.HasPrefix(out, strings.TrimRight(answer, "\n")), "%q begins with %q", out, answer)

	for _, c := range []struct {
		code  int
		stdin string
		args  []string
		says  string
	}{
		{1, "hi\n", []string{"--system", "be short"}, "with a system message: line 1: no system"},
		{1, strings.Repeat("word ", 200), nil, "fake: error: the context is full: the conversation"},
		{1, "/help\n", nil, "there is no command /help; /clear begins anew"},
		{2, "", []string{"--json"}, "want run --messages FILE --json"},
		{2, "", []string{"--max-tokens", "-1"}, "at least 1 is needed"},
		{2, "", []string{"--top-p", "0.5"}, "chat: --top-p is for drawing tokens"},
		{2, "", []string{"--logprobs", "1"}, "flag provided but not defined: --logprobs"},
	} {
		code, _, stderr := run(t, dir, c.stdin, append([]string{"chat"}, c.args...)...)
		require.Equal(t, c.code, code, stderr)
		require.Contains(t, stderr, c.says)
	}
	code, drawn, stderr := run(t, dir, "hi\n", "chat", "--max-tokens", "3", "--temperature", "9", "--seed", "1")
	require.Zero(t, code, stderr)
	_, again, _ := run(t, dir, "hi\n", "chat", "--max-tokens", "3", "--temperature", "9", "--seed", "1")
	require.Equal(t, drawn, again)
}

// Nobody sits at a pipe: a Ctrl-C ends the conversation, and leaves the GPU clean.
func TestChatInterrupted(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := build(t, "hang_at=5")
	hosttest.Write(t, dir, chat.TemplateFile, []byte(chatTemplate))
	defer interrupts()()
	code, _, stderr := run(t, dir, "hi\nagain\n", "chat")
	require.Equal(t, 130, code)
	require.Contains(t, stderr, "fake: error: interrupted\n")
}
