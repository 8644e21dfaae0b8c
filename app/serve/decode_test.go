package serve

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/bench/clients"
	"amkc/text/sampling"
)

func usageJSON(prompt, completion int) string {
	return fmt.Sprintf(`{"prompt_tokens": %d, "completion_tokens": %d, "total_tokens": %d,
		"prompt_tokens_details": {"cached_tokens": 0}}`, prompt, completion, prompt+completion)
}

// A text is what a completion said, and why it ended.
type said struct {
	Text   string
	Finish string
	Usage  usage
}

// complete asks for a completion, streamed or whole, which come to the same.
func (s *testServer) complete(t testing.TB, fields string) said {
	t.Helper()
	status, body := s.post(t, "/v1/completions", "{"+fields+"}")
	require.Equal(t, 200, status, body)
	all, err := readWhole([]byte(body))
	require.NoError(t, err)

	status, body = s.post(t, "/v1/completions", `{"stream": true, `+fields+"}")
	require.Equal(t, 200, status, body)
	text, finish := joined(t, body)
	require.Equal(t, all.Text, text)
	require.Equal(t, all.Finish, finish)
	return all
}

// joined is the text of a stream of completions.
func joined(t testing.TB, stream string) (text, finish string) {
	t.Helper()
	a, err := clients.ReadStream(stream)
	require.NoError(t, err)
	return a.Text, a.Finish
}

func TestStopStrings(t *testing.T) {
	const text = "one two three wörld four"
	s := serve(t, says(t, text))
	for _, c := range []struct{ stop, want string }{
		{`"two"`, "one "},
		{`"wo th"`, "one t"}, // across tokens
		{`["zzz", "örl"]`, "one two three w"},
		{`["three w", "two three w"]`, "one "}, // complete with the same letter: the longest
		{`["hree", "two three wörld"]`, "one two t"},
		{`"four"`, "one two three wörld "},
		{`"ourx"`, text},
		{`"one"`, ""},
		{`[]`, text},
	} {
		got := s.complete(t, `"prompt": "x", "max_tokens": 100, "stop": `+c.stop)
		require.Equal(t, c.want, got.Text, c.stop)
		require.Equal(t, finishStop, got.Finish)
	}
	got := s.complete(t, `"prompt": "x", "max_tokens": 3, "stop": "zzz"`)
	require.Equal(t, finishLength, got.Finish)
	require.Equal(t, words().Decode(idsOf(t, text)[:3], true), got.Text, "what was held back goes out at the end")
}

func TestLengths(t *testing.T) {
	e := newScripted(func(_, out []int) int { return 100 + len(out) }) // never ends
	e.limits.MaxSeq = 32
	s := serve(t, e)
	for _, c := range []struct {
		prompt, most string
		want         int
	}{
		{"[5, 6]", "7", 7},
		{"[5, 6]", "31", 31},   // the last token takes no position
		{"[5, 6]", "1000", 31}, // as many as there are positions for
		{"[" + strings.Repeat("5,", 31) + "5]", "9", 1},
	} {
		got := s.complete(t, `"prompt": `+c.prompt+`, "max_tokens": `+c.most)
		require.Equal(t, c.want, got.Usage.Completion)
		require.Equal(t, finishLength, got.Finish)
	}
	got := s.complete(t, `"prompt": [5]`)
	require.Equal(t, defaultTokens, got.Usage.Completion)

	status, body := s.post(t, "/v1/completions", `{"prompt": [`+strings.Repeat("5,", 32)+`5]}`)
	require.Equal(t, 400, status)
	require.JSONEq(t, `{"error": {"type": "invalid_request_error", "code": "context_length_exceeded", "param": "prompt",
		"message": "this model's maximum context length is 32 tokens, and the prompt has 33 tokens"}}`, body)
	// A chat goes on until the model ends it.
	status, body = s.post(t, "/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}]}`)
	require.Equal(t, 200, status, body)
	n := len(idsOf(t, "<|user|>a<|assistant|>"))
	require.Contains(t, body, fmt.Sprintf(`"completion_tokens":%d`, 32-n+1))
}

func TestEndOfText(t *testing.T) {
	ids := append(idsOf(t, "ab"), eos)
	ids = append(ids, idsOf(t, "cd")...)
	s := serve(t, newScripted(func(_, out []int) int { return ids[len(out)%len(ids)] }))
	require.Equal(t, said{"ab", finishStop, s.cost(2, len(idsOf(t, "ab"))+1)},
		s.complete(t, `"prompt": [5, 6]`))
	got := s.complete(t, fmt.Sprintf(`"prompt": [5, 6], "ignore_eos": true, "max_tokens": %d`, len(ids)))
	require.Equal(t, "abcd", got.Text)
	require.Equal(t, finishLength, got.Finish)
}

func (s *testServer) cost(prompt, completion int) usage {
	return usage{Prompt: prompt, Completion: completion, Total: prompt + completion}
}

// A bias forbids a token, or forces one.
func TestLogitBias(t *testing.T) {
	s := serve(t, newScripted(func(_, out []int) int { return 300 + 10*len(out) }))
	for bias, want := range map[string][]int{
		`{}`:                         {300, 310, 320},
		`{"300": -100}`:              {301, 310, 320},
		`{"310": -1, "311": -0.125}`: {300, 312, 320},
		`{"77": 100}`:                {77, 77, 77},
	} {
		got := s.complete(t, `"prompt": [5], "max_tokens": 3, "logit_bias": `+bias)
		require.Equal(t, words().Decode(append([]int{5}, want...), true),
			words().Decode([]int{5}, true)+got.Text, bias)
	}
}

// What a request says of sampling is what package sampling does, and what it does not say is as the model has it.
func TestSampling(t *testing.T) {
	defaults := sampling.Greedy()
	defaults.Temperature, defaults.TopK = 0.5, 40
	for _, c := range []struct {
		fields string
		want   func(*sampling.Options)
	}{
		{`"seed": 5`, func(o *sampling.Options) { o.Seed = 5 }},
		{`"seed": -5`, func(o *sampling.Options) { o.Seed = 1<<64 - 5 }},
		{`"seed": 5, "temperature": 2, "top_p": 0.3, "top_k": -1`, func(o *sampling.Options) {
			o.Seed, o.Temperature, o.TopP, o.TopK = 5, 2, 0.3, 0
		}},
		{`"seed": 5, "min_p": 0.9, "presence_penalty": 2, "frequency_penalty": -1, "repetition_penalty": 1.5`,
			func(o *sampling.Options) {
				o.Seed, o.MinP, o.PresencePenalty, o.FrequencyPenalty, o.RepetitionPenalty = 5, 0.9, 2, -1, 1.5
			}},
		{`"temperature": 0, "logit_bias": {"300": -3}`, func(o *sampling.Options) {
			o.Temperature, o.Bias = 0, map[int]float64{300: -3}
		}},
	} {
		next := func(_, out []int) int { return 300 + len(out) }
		s := newTest(newScripted(next), func(c *Config) { c.Sampling = defaults }).start(t)
		o := defaults
		c.want(&o)
		sampler, err := sampling.New(o, vocab, []int{5, 6})
		require.NoError(t, err)
		var want []int
		for i := range 12 {
			choice, err := sampler.Next(logitsOf(300+i), nil)
			require.NoError(t, err)
			want = append(want, choice.ID)
		}
		got := s.complete(t, `"prompt": [5, 6], "max_tokens": 12, "ignore_eos": true, `+c.fields)
		require.Equal(t, words().Decode(append([]int{5, 6}, want...), true), words().Decode([]int{5, 6}, true)+got.Text,
			c.fields)
	}
}

// Without a seed each request has one of its own.
func TestSeeds(t *testing.T) {
	s := newTest(newScripted(func(_, out []int) int { return 300 }), nil).start(t)
	texts := map[string]bool{}
	for range 4 {
		_, body := s.post(t, "/v1/completions",
			`{"prompt": [5], "max_tokens": 16, "temperature": 2, "ignore_eos": true}`)
		got, err := readWhole([]byte(body))
		require.NoError(t, err)
		texts[got.Text] = true
	}
	require.Len(t, texts, 4)
}

func TestDefaults(t *testing.T) {
	dir := t.TempDir()
	log := &lines{}
	read := func(config string) sampling.Options {
		require.NoError(t, os.WriteFile(dir+"/generation_config.json", []byte(config), 0o600))
		return Defaults(dir, slog.New(slog.NewTextHandler(log, nil)))
	}
	require.Equal(t, 0.3, read(`{"temperature": 0.3}`).Temperature)
	require.Zero(t, read(`{"do_sample": false}`).Temperature)
	require.Empty(t, log.String())
	o := read(`{"num_beams": 4, "temperature": 0.3}`)
	require.Equal(t, 1.0, o.Temperature)
	require.Contains(t, log.String(), "num_beams")
}

func readWhole(body []byte) (said, error) {
	var whole struct {
		Choices []struct {
			Text   string
			Finish string `json:"finish_reason"`
		}
		Usage usage
	}
	if err := json.Unmarshal(body, &whole); err != nil || len(whole.Choices) != 1 {
		return said{}, fmt.Errorf("%s: %w", body, err)
	}
	return said{whole.Choices[0].Text, whole.Choices[0].Finish, whole.Usage}, nil
}
