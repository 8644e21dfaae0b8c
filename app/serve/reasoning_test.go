package serve

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/text/tokenizer"
)

// thinks is a template of a model that thinks, as Qwen3 does.
const thinks = `{% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content %}<think>{{ m.reasoning_content }}` +
	`</think>{% endif %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}<|assistant|>` +
	`{% if enable_thinking is false %}<think></think>{% elif open %}<think>` + "\n" + `{% endif %}{% endif %}`

// thought is what the deltas of a stream, or a message, have of thoughts and of text.
func thought(t *testing.T, body string) (reasoning, content string) {
	t.Helper()
	if !strings.HasPrefix(body, "data: ") {
		var whole struct {
			Choices []struct{ Message chatMessage }
		}
		require.NoError(t, json.Unmarshal([]byte(body), &whole))
		return whole.Choices[0].Message.Reasoning, *whole.Choices[0].Message.Content
	}
	for _, event := range strings.Split(strings.TrimSuffix(body, "\n\ndata: [DONE]\n\n"), "\n\n") {
		var chunk struct{ Choices []struct{ Delta chatDelta } }
		require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &chunk))
		for _, c := range chunk.Choices {
			if c.Delta.Reasoning != "" {
				require.Empty(t, content, "a thought after the text")
			}
			reasoning += c.Delta.Reasoning
			if c.Delta.Content != nil {
				content += *c.Delta.Content
			}
		}
	}
	return reasoning, content
}

// A thought is a field of its own, whole and in a stream, whether the prompt or the model opens it.
func TestReasoning(t *testing.T) {
	for _, c := range []struct{ answer, fields, reasoning, content string }{
		{"<think>\nAs so.\n</think>\n\nIt is.", ``, "As so.", "It is."},
		{"As so.\n</think>\n\nIt is.", `, "chat_template_kwargs": {"open": true}`, "As so.", "It is."},
		{"<think></think>It is.", ``, "", "It is."},
		{"It is </think>.", ``, "", "It is </think>."},
		{"It is.", `, "chat_template_kwargs": {"enable_thinking": false}`, "", "It is."},
		{"<think>For long", ``, "For long", ""},
	} {
		s := newTest(says(t, c.answer), func(config *Config) { config.Chat = format(thinks) }).start(t)
		for _, stream := range []string{"", `, "stream": true`} {
			status, body := s.post(t, "/v1/chat/completions",
				`{"messages": [{"role": "user", "content": "Is it?"}]`+c.fields+stream+`}`)
			require.Equal(t, 200, status, body)
			reasoning, content := thought(t, body)
			require.Equal(t, c.reasoning, reasoning, c.answer)
			require.Equal(t, c.content, content, c.answer)
			require.Contains(t, body, `"finish_reason":"stop"`)
		}
	}
}

// A thought comes in the content, or not at all, if a request says so as for another server.
func TestWhereThoughtsCome(t *testing.T) {
	const answer = "<think>\nAs so.\n</think>\n\nIt is."
	s := newTest(says(t, answer), func(config *Config) { config.Chat = format(thinks) }).start(t)
	for fields, want := range map[string][2]string{
		`"reasoning_format": "auto"`:                                 {"As so.", "It is."},
		`"reasoning_format": "deepseek"`:                             {"As so.", "It is."},
		`"reasoning_format": "none"`:                                 {"", answer},
		`"separate_reasoning": false`:                                {"", answer},
		`"separate_reasoning": true, "include_reasoning": true`:      {"As so.", "It is."},
		`"separate_reasoning": true, "reasoning_format": "none"`:     {"", answer},
		`"include_reasoning": false`:                                 {"", "It is."},
		`"include_reasoning": false, "logprobs": true`:               {"", "It is."},
		`"reasoning_format": "none", "stop": "so", "logprobs": true`: {"", "<think>\nAs "},
	} {
		for _, stream := range []string{"", `, "stream": true`} {
			status, body := s.post(t, "/v1/chat/completions",
				`{"messages": [{"role": "user", "content": "Is it?"}], `+fields+stream+`}`)
			require.Equal(t, 200, status, body)
			reasoning, content := thought(t, body)
			require.Equal(t, want, [2]string{reasoning, content}, fields)
			require.Equal(t, want[0] != "", strings.Contains(body, "reasoning_content"))
		}
	}
	for fields, param := range map[string]string{
		`"reasoning_format": "deepseek-legacy"`:                   "reasoning_format",
		`"reasoning_format": false`:                               "reasoning_format",
		`"separate_reasoning": "no"`:                              "separate_reasoning",
		`"include_reasoning": 0`:                                  "include_reasoning",
		`"include_reasoning": false, "separate_reasoning": false`: "include_reasoning",
	} {
		status, body := s.post(t, "/v1/chat/completions",
			`{"messages": [{"role": "user", "content": "a"}], `+fields+`}`)
		require.Equal(t, 400, status, body)
		require.Equal(t, param, faultOf(t, body).Param)
	}
}

// An answer that is constrained to JSON has no thought before it, and one that the prompt opens is closed.
func TestJSONWithoutThoughts(t *testing.T) {
	s := newTest(longer(), func(config *Config) { config.Chat = format(thinks) }).start(t)
	for _, open := range []string{"true", "false"} {
		status, body := s.post(t, "/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}],
			"response_format": {"type": "json_schema", "json_schema": {"schema": {"const": "<think>"}}},
			"chat_template_kwargs": {"open": `+open+`}}`)
		require.Equal(t, 200, status, body)
		reasoning, content := thought(t, body)
		require.Empty(t, reasoning)
		require.Equal(t, `"<think>"`, strings.TrimSpace(content))
		var got struct{ Usage usage }
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		want := "<|user|>a<|assistant|>"
		if open == "true" {
			want += "<think>\n\n</think>\n\n"
		}
		require.Equal(t, len(idsOf(t, want)), got.Usage.Prompt)
	}
}

// What was thought goes back to the template under the name that it came by.
func TestReasoningInMessages(t *testing.T) {
	s := newTest(says(t, "x"), func(config *Config) { config.Chat = format(thinks) }).start(t)
	_, body := s.post(t, "/tokenize", `{"messages": [{"role": "user", "content": "a"},
		{"role": "assistant", "content": "b", "reasoning_content": "c"}, {"role": "user", "content": "d"}]}`)
	var got struct{ Tokens []int }
	require.NoError(t, json.Unmarshal([]byte(body), &got), body)
	require.Equal(t, "<|user|>a<|assistant|><think>c</think>b<|user|>d<|assistant|>",
		words().Decode(got.Tokens, false))
}

// withSpecial is the tokenizer of the fixture with some special tokens after the others.
func withSpecial(t *testing.T, all ...string) *tokenizer.Tokenizer {
	t.Helper()
	text, err := os.ReadFile(fixture + "/tokenizer.json")
	require.NoError(t, err)
	var file map[string]any
	require.NoError(t, json.Unmarshal(text, &file))
	for i, token := range all {
		file["added_tokens"] = append(file["added_tokens"].([]any), map[string]any{"id": vocab + i, "content": token,
			"special": true, "normalized": false, "single_word": false, "lstrip": false, "rstrip": false})
	}
	text, err = json.Marshal(file)
	require.NoError(t, err)
	tok, err := tokenizer.Load(text)
	require.NoError(t, err)
	return tok
}

// Marks that are special tokens are found, and are not text where nothing is read.
func TestMarksThatAreSpecial(t *testing.T) {
	const template = `{% for m in messages %}{% if m.reasoning_content %}[THINK]{{ m.reasoning_content }}[/THINK]` +
		`{% endif %}{{ m.content }}{% for c in m.tool_calls or [] %}[TOOL_CALLS]{{ c.function.name }}[ARGS]` +
		`{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}{{ tools }}`
	tok := withSpecial(t, "[THINK]", "[/THINK]", "[TOOL_CALLS]", "[ARGS]")
	ids, err := tok.Encode(`[THINK]Warm?[/THINK]So: [TOOL_CALLS]weather[ARGS]{"days": 1}`, false)
	require.NoError(t, err)
	ids = append(ids, eos)
	e := newScripted(func(_, out []int) int { return ids[min(len(out), len(ids)-1)] })
	e.limits.Vocab, e.masks = vocab+4, true
	s := newTest(e, func(c *Config) { c.Tokenizer, c.Chat = tok, format(template) }).start(t)

	_, body := s.post(t, "/v1/chat/completions", `{`+withTools+`}`)
	reasoning, content := thought(t, body)
	require.Equal(t, "Warm?", reasoning)
	require.Equal(t, "So:", content)
	require.Contains(t, body, `"function":{"name":"weather","arguments":"{\"days\":1}"}`)

	_, body = s.post(t, "/v1/chat/completions", `{`+withTools+`, "tool_choice": "none"}`)
	reasoning, content = thought(t, body)
	require.Equal(t, "Warm?", reasoning)
	require.Equal(t, `So: weather{"days": 1}`, content)
	require.NotContains(t, body, "tool_calls")

	// What stands between a name and arguments is a special token, which no mask lets through.
	status, body := s.post(t, "/v1/chat/completions", `{`+twoTools+`, "tool_choice": "required"}`)
	require.Equal(t, 400, status)
	require.Contains(t, faultOf(t, body).Message, "want tool_choice to name one")
	status, body = s.post(t, "/v1/chat/completions", `{`+twoTools+`, "max_tokens": 3,
		"tool_choice": {"type": "function", "function": {"name": "weather"}}}`)
	require.Equal(t, 200, status, body)
}

// An effort is a variable of templates that know it.
func TestReasoningEffort(t *testing.T) {
	s := newTest(says(t, "x"), func(config *Config) {
		config.Chat = format(`{{ reasoning_effort }}{% for m in messages %}{{ m.content }}{% endfor %}`)
	}).start(t)
	_, body := s.post(t, "/tokenize", `{"messages": [{"role": "user", "content": "a"}], "reasoning_effort": "low"}`)
	var got struct{ Tokens []int }
	require.NoError(t, json.Unmarshal([]byte(body), &got), body)
	require.Equal(t, "lowa", words().Decode(got.Tokens, false))
}
