package serve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Tokens that a request names end its text like the model's own, in front of them, and with ignore_eos they alone do.
func TestStopTokens(t *testing.T) {
	const text = "one two three four"
	ids := idsOf(t, text)
	s := serve(t, says(t, text))
	for stop, want := range map[string]string{
		"[]": text, fmt.Sprint("[", ids[2], "]"): words().Decode(ids[:2], true),
		fmt.Sprint("[4000, ", ids[3], ", ", ids[1], "]"): words().Decode(ids[:1], true),
	} {
		got := s.complete(t, `"prompt": "x", "max_tokens": 100, "stop_token_ids": `+stop)
		require.Equal(t, want, got.Text, stop)
		require.Equal(t, finishStop, got.Finish)
	}
	ids = append(idsOf(t, "ab"), eos, 300, 301)
	s = serve(t, newScripted(func(_, out []int) int { return ids[len(out)%len(ids)] }))
	got := s.complete(t, `"prompt": "x", "max_tokens": 100, "stop_token_ids": [301], "ignore_eos": true`)
	require.Equal(t, words().Decode(ids[:len(ids)-1], true), got.Text)
	require.Equal(t, len(ids), got.Usage.Completion)
}

// No text ends before it has min_tokens, whether the engine chooses the tokens or the server does.
func TestMinTokens(t *testing.T) {
	for _, chooses := range []bool{false, true} {
		e := newScripted(func(_, out []int) int { return []int{300, eos, 301, 302}[len(out)%4] })
		e.masks = chooses
		s := serve(t, e)
		for least, want := range map[int]int{0: 2, 1: 2, 2: 6, 5: 6, 6: 10} {
			got := s.complete(t, fmt.Sprintf(`"prompt": "x", "max_tokens": 50, "min_tokens": %d`, least))
			require.Equal(t, want, got.Usage.Completion, least)
			require.Equal(t, finishStop, got.Finish)
		}
		got := s.complete(t, `"prompt": "x", "max_tokens": 50, "min_tokens": 5, "stop_token_ids": [302]`)
		require.Equal(t, 6, got.Usage.Completion, "tokens of a request wait too")
		got = s.complete(t, `"prompt": "x", "max_tokens": 4, "min_tokens": 4`)
		require.Equal(t, finishLength, got.Finish)
	}
	// Nor does it at a stop string in the text of those.
	ids := idsOf(t, "abc abc abc")
	s := serve(t, newScripted(func(_, out []int) int { return ids[len(out)%len(ids)] }))
	first := s.complete(t, `"prompt": "x", "max_tokens": 50, "stop": "b"`)
	require.Equal(t, "a", first.Text)
	n := len(idsOf(t, "abc"))
	got := s.complete(t, fmt.Sprintf(`"prompt": "x", "max_tokens": 50, "stop": "b", "min_tokens": %d`, n))
	require.Equal(t, "abc a", got.Text)
	const object = `{"type": "json_object"}`
	for fields, want := range map[string]string{
		`"min_tokens": 9, "max_tokens": 8`:                 "the answer has at most 8 tokens",
		`"min_tokens": -1`:                                 "an integer from 0",
		`"min_tokens": 2, "response_format": ` + object:    "min_tokens is not supported alongside a format",
		`"ignore_eos": true, "response_format": ` + object: "ignore_eos is not supported alongside a format",
		`"stop_token_ids": [4096]`:                         "ids from 0 to 4095",
		`"stop_token_ids": 5`:                              "a list of up to 16 token ids",
	} {
		status, body := s.post(t, "/v1/completions", `{"prompt": "x", `+fields+`}`)
		require.Equal(t, 400, status, fields)
		require.Contains(t, faultOf(t, body).Message, want)
	}
	status, body := s.post(t, "/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}], "min_tokens": 2,
		"parallel_tool_calls": false}`)
	require.Equal(t, 400, status)
	require.Contains(t, faultOf(t, body).Message, "alongside an answer of one call")
}

// A completion has a format like a chat.
func TestCompletionFormat(t *testing.T) {
	s := serve(t, longer())
	for _, fields := range []string{``, `, "logprobs": 1, "echo": true`} {
		got := s.complete(t, `"prompt": "x", "max_tokens": 99, "temperature": 1, "seed": 1, "response_format": {"type":
			"json_schema", "json_schema": {"name": "n", "schema": {"type": "object", "properties": {"a": {"const": 1}},
			"required": ["a"], "additionalProperties": false}}}`+fields)
		require.Equal(t, finishStop, got.Finish)
		text := got.Text
		if fields != "" {
			text = strings.TrimPrefix(text, "x")
		}
		require.JSONEq(t, `{"a": 1}`, text)
	}
}

// promptOf is the prompt that messages make, in the tokens of /tokenize.
func promptOf(t *testing.T, s *testServer, fields string) string {
	t.Helper()
	status, body := s.post(t, "/tokenize", `{`+fields+`}`)
	require.Equal(t, 200, status, body)
	var out struct{ Tokens []int }
	require.NoError(t, json.Unmarshal([]byte(body), &out))
	return words().Decode(out.Tokens, false)
}

// A prompt ends with the beginning of an answer, or without, or with what the assistant has begun.
func TestPromptEnd(t *testing.T) {
	s := serve(t, says(t, "x"))
	const begun = `"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "The answer is "}]`
	const shown = "<|user|>a<|assistant|>The answer is "
	for fields, want := range map[string]string{
		``:                                  shown + "<|assistant|>",
		`, "add_generation_prompt": false`:  shown,
		`, "continue_final_message": false`: shown + "<|assistant|>",
		`, "continue_final_message": true`:  shown,
		`, "continue_final_message": true, "add_generation_prompt": false`: shown,
	} {
		require.Equal(t, want, promptOf(t, s, begun+fields), fields)
	}
	trims := newTest(says(t, "7."), func(c *Config) {
		c.Chat = format(`{% for m in messages %}[{{ m.role }}: {{ m.content | trim }}]{% endfor %}`)
	}).start(t)
	const goesOn = begun + `, "continue_final_message": true`
	require.Equal(t, "[user: a][assistant: The answer is ", promptOf(t, trims, goesOn))
	status, body := trims.post(t, "/v1/chat/completions", `{`+goesOn+`}`)
	require.Equal(t, 200, status)
	require.Contains(t, body, `"content":"7."`)

	twice := newTest(says(t, "x"), func(c *Config) {
		c.Chat = format(`{{ messages[-1].content }}{% for m in messages %}{{ m.content }}{% endfor %}`)
	}).start(t)
	const tool = `, "tools": [{"type": "function", "function": {"name": "f"}}]`
	for _, c := range []struct {
		s            *testServer
		fields, want string
	}{
		{s, begun + `, "continue_final_message": 1`, "true or false"},
		{s, begun + `, "add_generation_prompt": 1`, "true or false"},
		{s, begun + `, "continue_final_message": true, "add_generation_prompt": true`, "are both true; want one"},
		{s, `"messages": [{"role": "user", "content": "a"}], "continue_final_message": true`,
			"a text of the assistant"},
		{s, `"messages": [{"role": "assistant", "content": "a", "tool_calls": [{"function": {"name": "f"}}]}],
			"continue_final_message": true`, "a text of the assistant"},
		{s, begun + tool + `, "continue_final_message": true`, "not supported alongside tools or a format"},
		{s, begun + `, "continue_final_message": true, "response_format": {"type": "json_object"}`,
			"not supported alongside tools or a format"},
		{s, begun + tool + `, "add_generation_prompt": false, "tool_choice": "required"`,
			"add_generation_prompt false is not supported alongside"},
		{s, begun + `, "chat_template_kwargs": {"continue_final_message": true}`, "states separately"},
		{twice, begun + `, "continue_final_message": true`, "an answer cannot continue the last message"},
	} {
		status, body := c.s.post(t, "/v1/chat/completions", `{`+c.fields+`}`)
		require.Equal(t, 400, status, c.fields)
		require.Contains(t, faultOf(t, body).Message, c.want, c.fields)
	}
}

// The model has other names, which requests may call it by and which answers have.
func TestAliases(t *testing.T) {
	s := newTest(says(t, "x"), func(c *Config) { c.Aliases = []string{"gpt-4o", "a/b", "m", "gpt-4o"} }).start(t)
	status, _, body := s.send(t, "GET", "/v1/models", "", nil)
	require.Equal(t, 200, status)
	var list struct{ Data []card }
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	var ids []string
	for _, c := range list.Data {
		ids = append(ids, c.ID)
		require.Equal(t, s.card(c.ID), c)
	}
	require.Equal(t, []string{"m", "gpt-4o", "a/b"}, ids)
	for name, known := range map[string]bool{"m": true, "a/b": true, "gpt-4o": true, "gpt": false} {
		for path, fields := range map[string]string{"/v1/completions": `"prompt": "x"`, messagesPath: ask,
			"/v1/chat/completions": `"messages": [{"role": "user", "content": "a"}]`, responsesPath: `"input": "a"`,
			"/v1/embeddings": `"input": "a"`} {
			status, body := s.post(t, path, `{"model": "`+name+`", `+fields+`}`)
			if known {
				require.Equal(t, 200, status, body)
				require.Contains(t, body, `"model":"`+name+`"`)
			} else {
				require.Equal(t, 404, status, body)
				require.Contains(t, body, `this server has \"m\", \"gpt-4o\", \"a/b\"`)
			}
		}
		status, _, body := s.send(t, "GET", "/v1/models/"+name, "", nil)
		require.Equal(t, known, status == 200, body)
	}
}

// A field that changes nothing is said to the log once.
func TestHints(t *testing.T) {
	s := serve(t, says(t, "x"))
	for range 3 {
		status, body := s.post(t, responsesPath, `{"input": "a", "store": true, "user": "secret", "reasoning":
			{"summary": "auto"}}`)
		require.Equal(t, 200, status, body)
		require.Contains(t, body, `"store":false`)
	}
	for _, name := range []string{"store", "user", "reasoning.summary"} {
		require.Equal(t, 1, strings.Count(s.log.String(), "changes no answer here\" field="+name+"\n"), name)
	}
	require.NotContains(t, s.log.String(), "secret")
}
