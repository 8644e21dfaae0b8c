package serve

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// documentedFields are the rows of the table in docs/serving.md: by field, what each path does.
func documentedFields(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/serving.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| field | chat | responses | messages | "+
		"completions | embeddings |\n|---|---|---|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string][]string{}
	for _, line := range strings.Split(table, "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		require.Len(t, cells, 6, line)
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[0], -1) {
			require.NotContains(t, rows, name[1])
			rows[name[1]] = cells[1:]
		}
	}
	return rows
}

// Of each field the server does what the documents say, and none that it knows is missing there.
func TestDocumentedFields(t *testing.T) {
	rows := documentedFields(t)
	samples := map[string]string{"add_generation_prompt": "true", "background": "false", "best_of": "1",
		"chat_template_kwargs": `{"thinking": true}`, "continue_final_message": "false", "dimensions": "1",
		"documents": `[{}]`, "echo": "true", "encoding_format": `"float"`, "frequency_penalty": "1",
		"ignore_eos": "true", "include": "[]", "include_reasoning": "true", "logit_bias": `{"5": 1}`,
		"logprobs":              "true",
		"max_completion_tokens": "2", "max_output_tokens": "2", "max_tokens": "2", "metadata": "{}", "min_p": "0.1",
		"min_tokens": "1", "output_config": `{"effort": "low"}`, "stop_sequences": `["x"]`, "stop_token_ids": "[5]",
		"thinking":   `{"type": "adaptive"}`,
		"modalities": `["text"]`, "model": `"m"`, "n": "1", "parallel_tool_calls": "true", "presence_penalty": "1",
		"reasoning": `{"effort": "low"}`, "reasoning_effort": `"low"`, "reasoning_format": `"none"`,
		"repetition_penalty": "1.1", "response_format": `{"type": "text"}`, "seed": "1",
		"separate_reasoning": "true", "stop": `"x"`, "store": "false", "stream": "false",
		"suffix": `"x"`, "temperature": "0.5", "text": `{"format": {"type": "text"}}`, "tool_choice": `"none"`,
		"tools": `[]`, "top_k": "3", "top_logprobs": "1", "top_p": "0.5", "truncation": `"disabled"`}
	s := newTest(says(t, "x"), func(c *Config) {
		c.Chat = format(chatML + `{{ documents }}{{ reasoning_effort }}`)
	}).start(t)
	for i, c := range []struct {
		path, need string
		table      map[string]field
		more       []string
	}{
		{"/v1/chat/completions", `"messages": [{"role": "user", "content": "a"}]`, chatFields, conversationFields},
		{responsesPath, `"input": "a"`, responseFields, inputFields},
		{messagesPath, ask, anthropicFields, blockFields},
		{"/v1/completions", `"prompt": "a"`, completionFields, []string{"prompt", "echo", "best_of"}},
		{"/v1/embeddings", `"input": "a"`, map[string]field{"model": modelName, "user": tolerated}, nil},
	} {
		path, need := c.path, c.need
		known := append(slices.Collect(maps.Keys(c.table)), c.more...)
		for _, name := range known {
			require.Contains(t, rows, name, "%s is not documented", name)
		}
		for name, row := range rows {
			sample := samples[name]
			switch {
			case sample == "":
				sample = `"x"`
			case name == "logprobs" && i == 3:
				sample = "1"
			case name == "tool_choice" && i == 2:
				sample = `{"type": "none"}`
			}
			body := `{` + need + `, "` + name + `": ` + sample + `}`
			switch {
			case strings.Contains(need, `"`+name+`":`):
				body = `{` + need + `}`
			case name == "stream_options" && row[i] == "yes":
				option := "include_usage"
				if i == 1 {
					option = "include_obfuscation"
				}
				body = `{` + need + `, "stream": true, "stream_options": {"` + option + `": true}}`
			case name == "top_logprobs" && i == 0:
				body = `{` + need + `, "logprobs": true, "top_logprobs": 1}`
			case name == "top_logprobs" && i == 1:
				body = `{` + need + `, "include": ["message.output_text.logprobs"], "top_logprobs": 1}`
			}
			status, answer := s.post(t, path, body)
			does := row[i]
			read := c.table[name]
			tolerant := read != nil && reflect.ValueOf(read).Pointer() == reflect.ValueOf(field(tolerated)).Pointer()
			switch does {
			case "yes", "as n", "no effect":
				require.Equal(t, 200, status, "%s %s: %s", path, body, answer)
				require.Equal(t, does == "no effect", tolerant, "%s of %s", name, path)
				if does == "as n" {
					_, answer = s.post(t, path, `{`+need+`, "n": 3, "`+name+`": 2}`)
					require.Equal(t, "unsupported_parameter", faultOf(t, answer).Code, name)
				}
			case "no", "":
				require.Equal(t, 400, status, "%s %s: %s", path, body, answer)
				want := map[string]string{"no": "unsupported_parameter", "": "unknown_parameter"}[does]
				if name == "thread" && i == 2 {
					want = "thread_unsupported_request"
				}
				require.Equal(t, want, codeOf(t, path, answer), "%s %s", path, name)
			default:
				t.Fatalf("%s: %q is not yes, as n, no effect and no", name, does)
			}
		}
	}
}
