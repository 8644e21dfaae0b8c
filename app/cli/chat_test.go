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
	// Without a template the model continues a text, as run does.
	code, out, stderr := run(t, dir, "hi\n", "chat", "--greedy", "--max-tokens", "3")
	require.Zero(t, code, stderr)
	require.Equal(t, "the model has no chat template: it continues what you type, by up to 3 tokens (--max-tokens)\n"+
		"the answer was cut after 3 tokens (--max-tokens)\n", stderr)
	_, continued, _ := run(t, dir, "", "run", "--prompt", "hi", "--max-tokens", "3")
	require.Equal(t, continued, "hi"+out)

	hosttest.Write(t, dir, chat.TemplateFile, []byte(chatTemplate))
	hosttest.Write(t, dir, chat.ConfigFile, []byte(`{"bos_token": "<|begin_of_text|>"}`))
	code, out, stderr = run(t, dir, "hi\nagain\n", "chat", "--greedy", "--max-tokens", "3", "--stats")
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
		{1, strings.Repeat("word ", 200), nil, "fake: error: the context is too small: the message takes"},
		{1, "/hepl\n", nil, "there is no command /hepl; want one of /help, /clear"},
		{1, "hi\n", []string{"--think"}, "no switch for thinking; want neither --think nor --no-think"},
		{1, "hi\n", []string{"--chat-template-kwargs", `{"tone": 1}`}, `has no variable "tone"`},
		{2, "", []string{"--json"}, "want run --messages FILE --json"},
		{2, "", []string{"--max-tokens", "-1"}, "want a whole number from 1 to"},
		{2, "", []string{"--greedy", "--top-p", "0.5"}, "chat: --top-p is for drawing tokens; want no --greedy"},
		{2, "", []string{"--greedy", "--temperature", "1"}, "--greedy and --temperature exclude each other"},
		{2, "", []string{"--think", "--no-think"}, "--think and --no-think exclude each other"},
		{2, "", []string{"--chat-template-kwargs", "[]"}, `want an object in JSON, as {"enable_thinking": false}`},
		{2, "", []string{"--chat-template-kwargs", `{"messages": 1}`}, `has "messages", which is set separately`},
		{2, "", []string{"--sample"}, "chat draws tokens without --sample now"},
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

	// Tokens are drawn as the model says, without a flag.
	hosttest.Write(t, dir, "generation_config.json", []byte(`{"do_sample": true, "temperature": 9}`))
	_, again, _ = run(t, dir, "hi\n", "chat", "--max-tokens", "3", "--seed", "1")
	require.Equal(t, drawn, again)
	hosttest.Write(t, dir, "generation_config.json", []byte(`{"do_sample": false}`))
	_, again, _ = run(t, dir, "hi\n", "chat", "--max-tokens", "3")
	_, out, _ = run(t, dir, "hi\n", "chat", "--max-tokens", "3", "--greedy")
	require.Equal(t, out, again)
	hosttest.Write(t, dir, "generation_config.json", []byte(`{"num_beams": 2}`))
	_, out, stderr = run(t, dir, "hi\n", "chat", "--max-tokens", "3", "--seed", "1", "--temperature", "9")
	require.Equal(t, drawn, out)
	require.Contains(t, stderr, "num_beams is 2, which is not supported; tokens are drawn without it, "+
		"by default at temperature 1\n")
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
