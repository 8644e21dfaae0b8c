package serve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// chatRows are the log-probabilities of a chat's answer, of all of its tokens.
func chatRows(t *testing.T, s *testServer, fields string, top int) []chatTopToken {
	t.Helper()
	status, body := s.post(t, "/v1/chat/completions", fmt.Sprintf(`{%s, "logprobs": true, "top_logprobs": %d}`, fields,
		top))
	require.Equal(t, 200, status, body)
	var whole struct {
		Choices []struct {
			Logprobs struct{ Content []chatTopToken }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &whole))
	return whole.Choices[0].Logprobs.Content
}

// deltas are the log-probabilities in the events of a stream, and those of its texts as they ended.
func deltas(t *testing.T, stream string) (all, done []eventToken) {
	t.Helper()
	for _, text := range strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		_, data, _ := strings.Cut(text, "\ndata: ")
		var e responseEvent
		require.NoError(t, json.Unmarshal([]byte(data), &e), text)
		switch e.Type {
		case "response.output_text.delta":
			all = append(all, *e.Logprobs...)
		case "response.output_text.done":
			done = append(done, *e.Logprobs...)
		default:
			require.Nil(t, e.Logprobs, e.Type)
		}
	}
	return all, done
}

// Log-probabilities of a response are those that a chat has of the tokens of its texts; thoughts and calls have none.
func TestResponseLogprobs(t *testing.T) {
	const call = `<tool_call>{"name": "weather", "arguments": {"days": 2}}</tool_call>`
	chatTools := strings.ReplaceAll(flatTools, `"input": "Warm?"`, `"messages": [{"role": "user", "content": "Warm?"}]`)
	chatTools = strings.Replace(chatTools, `"name": "weather", "strict": false,`,
		`"function": {"name": "weather", "strict": false,`, 1)
	chatTools = strings.TrimSuffix(chatTools, "}]") + "}}]"
	for _, c := range []struct {
		answer, fields string
		texts          []string
		loose          bool // a token may be of more than the text
	}{
		{"Hello, wörld €!", `"input": "Warm?"`, []string{"Hello, wörld €!"}, false},
		{"Hello, wörld", `"input": "Warm?", "max_output_tokens": 4`, nil, false},
		{"one two three", `"input": "Warm?", "stop": "wo th"`, []string{"one t"}, true},
		{"<think>\nIt is.\n</think>\n\nIt is. <think>", `"input": "Warm?"`, []string{"It is. <think>"}, false},
		{"<think>For long", `"input": "Warm?"`, nil, false},
		{"Let me see.\n" + call + " Well, we" + call, flatTools, []string{"Let me see.", "Well, we"}, true},
		{call, flatTools, nil, false},
		{"", `"input": "Warm?"`, []string{""}, false},
	} {
		s := newTest(says(t, c.answer), func(config *Config) {
			config.Chat = format(chatML + `{% if false %}<think></think>{% endif %}`)
		}).start(t)
		for _, top := range []int{0, 3} {
			fields := c.fields + fmt.Sprintf(`, "include": ["message.output_text.logprobs"], "top_logprobs": %d`, top)
			_, last := same(t, s, fields)
			require.Equal(t, top, last.TopLogprobs)
			var got []chatTopToken
			i := 0
			for _, item := range last.Output {
				if item.Type != itemMessage {
					continue
				}
				part := (*item.Content)[0]
				require.NotNil(t, part.Logprobs)
				var raw []byte
				for _, row := range *part.Logprobs {
					require.Len(t, row.Top, top)
					for _, b := range row.Bytes {
						raw = append(raw, byte(b))
					}
				}
				got = append(got, *part.Logprobs...)
				if c.loose {
					require.Contains(t, string(raw), part.Text, c.answer)
				} else {
					require.Equal(t, part.Text, string(raw), c.answer)
				}
				if c.texts != nil {
					require.Equal(t, c.texts[i], part.Text)
				}
				i++
			}
			require.GreaterOrEqual(t, i, len(c.texts), c.answer)

			chat := strings.NewReplacer(flatTools, chatTools, `"input": "Warm?"`, `"messages": [{"role": "user",
				"content": "Warm?"}]`, "max_output_tokens", "max_tokens").Replace(c.fields)
			rest := chatRows(t, s, chat, top)
			for _, row := range got {
				for len(rest) > 0 && fmt.Sprint(rest[0]) != fmt.Sprint(row) {
					rest = rest[1:]
				}
				require.NotEmpty(t, rest, "%q: %v is not one of the chat's", c.answer, row)
				rest = rest[1:]
			}

			status, stream := s.post(t, responsesPath, `{`+fields+`, "stream": true}`)
			require.Equal(t, 200, status, stream)
			all, done := deltas(t, stream)
			require.Equal(t, done, all)
			require.Len(t, all, len(got))
			for i, row := range got {
				require.Equal(t, row.Token, all[i].Token)
				require.Equal(t, row.Logprob, all[i].Logprob)
				require.Len(t, all[i].Top, top)
				for k := range row.Top {
					require.Equal(t, row.Top[k].Token, all[i].Top[k].Token)
					require.Equal(t, row.Top[k].Logprob, all[i].Top[k].Logprob)
				}
			}
			require.NotContains(t, strings.Split(stream, "event: response.content_part.done")[0], `"bytes"`)
		}
	}
}

// Tokens that complete no character are of the text that they are in, wherever the text ends.
func TestResponseLogprobsOfBytes(t *testing.T) {
	ids := idsOf(t, "a€b")
	require.Len(t, ids, 5)
	for n := 1; n <= len(ids); n++ {
		s := serve(t, newScripted(func(_, out []int) int { return append(ids, eos)[len(out)] }))
		_, last := same(t, s, fmt.Sprintf(`"input": "x", "max_output_tokens": %d,
			"include": ["message.output_text.logprobs"]`, n))
		require.Len(t, *(*last.Output[0].Content)[0].Logprobs, n)
	}
}
