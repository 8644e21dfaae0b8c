package engine_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/app/engine"
	"amkc/app/serve"
	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/runtime/shape"
	"amkc/text/chat"
	"amkc/text/jinja"
	"amkc/text/sampling"
	"amkc/text/tokenizer"
)

// The second turn of a long conversation decodes what the cache lacks of its prompt alone, and says so: all but the new
// message where the template writes earlier turns as they were, and what is before the first change where it does not,
// as one that leaves thoughts out. In all forms of the API, in builds of one sequence and of several, the answer is
// that of a server which has not seen the first turn.
func TestSecondTurns(t *testing.T) {
	hosttest.NeedDriver(t)
	data, err := os.ReadFile("../../testdata/models/pycoder-5m/tokenizer.json")
	require.NoError(t, err)
	tok, err := tokenizer.Load(data)
	require.NoError(t, err)
	const turns = "{% for m in messages %}# {{ m.role }}:\n{{ m.content }}\n{% endfor %}# assistant:\n"
	first := strings.Repeat("def add(a, b):\n    return a + b\n", 300)
	for name, template := range map[string]string{"as they were": turns, "without thoughts": turns + "<think>\n"} {
		for _, sequences := range []int{1, 4} {
			t.Run(name, func(t *testing.T) {
				config := serve.Config{Model: "fake", Tokenizer: tok, Sampling: sampling.Greedy(), Queue: 4,
					Chat: chat.New(map[string]string{"default": template}, &jinja.Dict{}),
					Log:  slog.New(slog.DiscardHandler)}
				user := func(text string) message { return message{"user", text} }
				var url string
				said := ""
				served(t, config, sequences, func(at string) {
					url = at
					prompt, answer, cached := ask(t, url, "chat/completions", user(first))
					require.Greater(t, prompt, 3000)
					require.Zero(t, cached)
					said = answer
				})
				conversation := []message{user(first), {"assistant", said}, user("And in C?")}
				// What the first turn has decoded: its prompt, and the answer but for its last token.
				before := encode(t, tok, config.Chat, conversation[:1])
				prompt := len(before)
				for range 8 {
					_, next := hosttest.Mirror(before)
					before = append(before, next)
				}
				require.Equal(t, said, tok.Decode(before[prompt:], true))
				after := encode(t, tok, config.Chat, conversation)
				want := 0
				for want < len(before)-1 && after[want] == before[want] {
					want++
				}
				if name == "as they were" {
					require.GreaterOrEqual(t, want, prompt-1) // whose last token may be another with a text after it
				} else {
					require.Less(t, want, prompt, "a thought was opened there")
				}
				for _, path := range []string{"chat/completions", "responses", "messages"} {
					var fresh, kept string
					served(t, config, sequences, func(url string) {
						tokens, answer, cached := ask(t, url, path, conversation...)
						require.Equal(t, []int{len(after), 0}, []int{tokens, cached})
						fresh = answer
					})
					served(t, config, sequences, func(url string) {
						ask(t, url, path, conversation[0])
						tokens, answer, cached := ask(t, url, path, conversation...)
						require.Equal(t, []int{len(after), want}, []int{tokens, cached}, path)
						kept = answer
					})
					require.Equal(t, fresh, kept)
				}
			})
		}
	}
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func encode(t *testing.T, tok *tokenizer.Tokenizer, format *chat.Format, messages []message) []int {
	t.Helper()
	text, err := json.Marshal(messages)
	require.NoError(t, err)
	c, err := chat.Parse(text)
	require.NoError(t, err)
	c.AddGenerationPrompt = true
	prompt, err := format.Render(c, chat.Options{})
	require.NoError(t, err)
	ids, err := tok.Encode(prompt, false)
	require.NoError(t, err)
	return slices.Clip(ids)
}

// served runs a server of a build with many positions while f asks it.
func served(t *testing.T, config serve.Config, sequences int, f func(url string)) {
	t.Helper()
	s, err := host.Open(t.Context(), hosttest.Build(t, "max_seq=8192 end0=8192", func(f *host.Facts) {
		f.Model.MaxSeq, f.Variants[0].Hi, f.Prompt = 8192, 8191, 512
		if sequences > 1 {
			hosttest.AddPasses(f, shape.Pass{Rows: 1, Sequences: sequences})
		}
	}), host.Options{})
	require.NoError(t, err)
	config.Engine = engine.New(s, engine.Served())
	l, err := serve.Listen(serve.DefaultHost, 0, config.Log)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	server := serve.New(config)
	server.Take(l)
	go func() { ended <- server.Serve(ctx, 0) }()
	defer func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, s.Close())
	}()
	f("http://" + l.Addr().String())
}

// ask asks for an answer of 8 tokens, and returns it with the tokens of the prompt and those of them that were cached.
func ask(t *testing.T, url, path string, messages ...message) (prompt int, text string, cached int) {
	t.Helper()
	request := map[string]any{"temperature": 0, "max_tokens": 8, "messages": messages}
	if path == "responses" {
		request = map[string]any{"temperature": 0, "max_output_tokens": 8, "input": messages}
	}
	body, err := json.Marshal(request)
	require.NoError(t, err)
	answer, err := http.Post(url+"/v1/"+path, "application/json", strings.NewReader(string(body)))
	require.NoError(t, err)
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, 200, answer.StatusCode, string(all))
	type details struct {
		Cached int `json:"cached_tokens"`
	}
	var got struct {
		Choices []struct{ Message struct{ Content string } }
		Output  []struct{ Content []struct{ Text string } }
		Content []struct{ Text string }
		Usage   struct {
			Prompt   int     `json:"prompt_tokens"`
			Input    int     `json:"input_tokens"`
			Read     int     `json:"cache_read_input_tokens"`
			OfPrompt details `json:"prompt_tokens_details"`
			OfInput  details `json:"input_tokens_details"`
		}
	}
	require.NoError(t, json.Unmarshal(all, &got))
	u := got.Usage
	switch path {
	case "responses":
		return u.Input, got.Output[0].Content[0].Text, u.OfInput.Cached
	case "messages": // which counts what was cached apart
		return u.Input + u.Read, got.Content[0].Text, u.Read
	}
	return u.Prompt, got.Choices[0].Message.Content, u.OfPrompt.Cached
}
