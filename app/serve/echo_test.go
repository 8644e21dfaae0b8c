package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/text/sampling"
)

// An echo is a completion with the log-probabilities of its prompt.
type echo struct {
	Text     string
	Index    int
	Finish   *string `json:"finish_reason"`
	Logprobs *echoRows
}

type echoRows struct {
	Tokens   []string
	Logprobs []*float64           `json:"token_logprobs"`
	Top      []map[string]float64 `json:"top_logprobs"`
	Offsets  []int                `json:"text_offset"`
}

// echoes asks for completions, whole and as a stream, which come to the same.
func echoes(t *testing.T, s *testServer, fields string) (all []echo, cost usage) {
	t.Helper()
	fields = `"echo": true, ` + fields
	status, body := s.post(t, "/v1/completions", "{"+fields+"}")
	require.Equal(t, 200, status, body)
	var whole struct {
		Choices []echo
		Usage   usage
	}
	require.NoError(t, json.Unmarshal([]byte(body), &whole))
	status, body = s.post(t, "/v1/completions", `{"stream": true, `+fields+"}")
	require.Equal(t, 200, status, body)
	joined := make([]echo, len(whole.Choices))
	for _, event := range strings.Split(body, "\n\n") {
		var chunk struct{ Choices []echo }
		if strings.HasPrefix(event, "data: {") {
			require.NoError(t, json.Unmarshal([]byte(event[len("data: "):]), &chunk))
			part := chunk.Choices[0]
			into := &joined[part.Index]
			into.Index, into.Finish = part.Index, part.Finish
			into.Text += part.Text
			if l := part.Logprobs; l != nil {
				if into.Logprobs == nil {
					into.Logprobs = &echoRows{}
				}
				into.Logprobs.Tokens = append(into.Logprobs.Tokens, l.Tokens...)
				into.Logprobs.Logprobs = append(into.Logprobs.Logprobs, l.Logprobs...)
				into.Logprobs.Top = append(into.Logprobs.Top, l.Top...)
				into.Logprobs.Offsets = append(into.Logprobs.Offsets, l.Offsets...)
			}
		}
	}
	require.Equal(t, whole.Choices, joined)
	return whole.Choices, whole.Usage
}

// A prompt comes back with what the model thought of its tokens, of the first one nothing; then the answer, and the
// token that has ended it.
func TestEchoLogprobs(t *testing.T) {
	const prompt, text = "A wörld of €", " and"
	ids, more := append([]int{0}, idsOf(t, prompt)...), append(idsOf(t, text), eos)
	e := newScripted(func(prompt, out []int) int {
		if len(prompt) < len(ids) { // the token that comes, but for every third
			return (ids[len(prompt)] + vocab - len(prompt)%3/2) % vocab
		}
		return more[min(len(out), len(more)-1)]
	})
	s := serve(t, e)
	asked, err := json.Marshal(ids)
	require.NoError(t, err)
	for _, c := range []struct {
		fields, text string
		tokens       int
		finish       string
	}{
		{`"max_tokens": 0`, "", 0, finishLength},
		{`"max_tokens": 1`, words().Decode(more[:1], true), 1, finishLength},
		{`"max_tokens": 99`, text, len(more), finishStop},
		{`"max_tokens": 99, "stop": "€"`, text, len(more), finishStop}, // which the prompt has
		{`"max_tokens": 99, "stop": "d"`, " an", len(more) - 1, finishStop},
	} {
		got, cost := echoes(t, s, fmt.Sprintf(`"prompt": %s, "logprobs": 2, %s`, asked, c.fields))
		require.Equal(t, prompt+c.text, got[0].Text)
		require.Equal(t, c.finish, *got[0].Finish)
		require.Equal(t, len(ids), cost.Prompt)
		rows := got[0].Logprobs
		want := append(slices.Clone(ids), more[:c.tokens]...)
		if strings.Contains(c.fields, `"d"`) {
			want = want[:len(rows.Tokens)]
		}
		require.Len(t, rows.Tokens, len(want), c.fields)
		require.Nil(t, rows.Logprobs[0])
		require.Nil(t, rows.Top[0])
		for i, id := range want {
			name := (&textForm{s: s.Server}).name(id)
			require.Equal(t, name, rows.Tokens[i])
			if !strings.HasPrefix(name, "bytes:") && i > 0 && id != eos {
				there := string([]rune(got[0].Text)[rows.Offsets[i]:]) // where a stop string may have cut it
				require.True(t, strings.HasPrefix(there, name) || strings.HasPrefix(name, there), "%q %q", there, name)
			}
			if i == 0 {
				continue
			}
			logits := logitsOf(e.next(want[:min(i, len(ids))], want[min(i, len(ids)):i]))
			scored, err := sampling.Given(logits, id, 2, i)
			require.NoError(t, err)
			require.Equal(t, scored.LogProb, *rows.Logprobs[i])
			require.Equal(t, scored.LogProb, rows.Top[i][name])
			for _, top := range scored.Top {
				require.Contains(t, rows.Top[i], (&textForm{s: s.Server}).name(top.ID))
			}
			require.GreaterOrEqual(t, len(rows.Top[i]), 2)
		}
	}
	// A text is encoded as ever, and what lm-evaluation-harness sends has what it reads.
	got, _ := echoes(t, s, fmt.Sprintf(`"model": "m", "prompt": [%s, %s], "temperature": 0, "max_tokens": 1,
		"logprobs": 1, "seed": 1234`, asked, asked))
	for _, c := range got {
		require.Len(t, c.Logprobs.Logprobs, len(ids)+1)
		for i, p := range c.Logprobs.Logprobs[1:len(ids)] {
			likeliest := math.Inf(-1)
			for _, x := range c.Logprobs.Top[i+1] {
				likeliest = max(likeliest, x)
			}
			require.Equal(t, (i+1)%3 != 2, *p == likeliest, "greedy")
		}
	}
	twice, cost := echoes(t, s, fmt.Sprintf(`"prompt": %s, "temperature": 0, "max_tokens": 1, "logprobs": 1, "n": 2`,
		asked))
	require.Len(t, twice, 2)
	require.Equal(t, twice[0].Logprobs, twice[1].Logprobs)
	require.Equal(t, len(ids), cost.Prompt, "a prompt counts once")
	ended, _ := echoes(t, serve(t, says(t, "")), `"prompt": [5, 6], "logprobs": 1, "max_tokens": 1`)
	require.Equal(t, finishStop, *ended[0].Finish)
	require.Len(t, ended[0].Logprobs.Logprobs, 3, "the token that ends the text is one")
	one, _ := echoes(t, s, `"prompt": [5], "logprobs": 0, "max_tokens": 0`)
	require.Equal(t, []*float64{nil}, one[0].Logprobs.Logprobs)
	plain, _ := echoes(t, s, `"prompt": "`+prompt+`", "max_tokens": 0`)
	require.Equal(t, prompt, plain[0].Text)
	require.Nil(t, plain[0].Logprobs)
}

// A token of a prompt that the model holds for impossible is very unlikely, and fails nothing.
func TestEchoOfTheImpossible(t *testing.T) {
	e := impossibles{newScripted(func(_, _ []int) int { return 300 })}
	s := serve(t, e)
	got, _ := echoes(t, s, `"prompt": [7, 8, 9], "logprobs": 1, "max_tokens": 0`)
	require.Equal(t, []float64{impossible, impossible}, []float64{*got[0].Logprobs.Logprobs[1],
		*got[0].Logprobs.Logprobs[2]})
}

// impossibles are an engine that holds the tokens of prompts for that.
type impossibles struct{ *scripted }

func (e impossibles) Step(ctx context.Context) ([]Event, error) {
	events, err := e.scripted.Step(ctx)
	for _, event := range events {
		if event.Given {
			event.Logits[event.Token] = float32(math.Inf(-1))
		}
	}
	return events, err
}

// Log-probabilities of a prompt are, to the last digit, those that its tokens have when they are chosen one by one,
// with engines of one sequence and of several, alongside others, and whatever a cache has of the prompt.
func TestEchoIsWhatWasDecoded(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	alone, several := serve(t, NewSingle(newVM(t), limits, 4)), serve(t, newBatch(t, 4))
	rng := rand.New(rand.NewPCG(1, 1))
	for _, s := range []*testServer{alone, several} {
		var all sync.WaitGroup
		fault := make(chan string, 99)
		for range 8 {
			ids := make([]int, 5)
			for i := range ids {
				ids[i] = 256 + rng.IntN(700)
			}
			asked, err := json.Marshal(ids)
			require.NoError(t, err)
			// What the sequence is to be decoded to, token by token.
			var rows []string
			for i := 1; i < len(ids); i++ {
				begun, err := json.Marshal(ids[:i])
				require.NoError(t, err)
				status, body := alone.post(t, "/v1/completions", fmt.Sprintf(`{"prompt": %s, "logprobs": 2,
					"max_tokens": 1, "logit_bias": {"%d": 100}, "temperature": 0, "ignore_eos": true}`, begun, ids[i]))
				require.Equal(t, 200, status, body)
				var one struct{ Choices []echo }
				require.NoError(t, json.Unmarshal([]byte(body), &one))
				l := one.Choices[0].Logprobs
				rows = append(rows, fmt.Sprint(l.Tokens[0], *l.Logprobs[0], l.Top[0]))
			}
			all.Go(func() {
				for _, most := range []int{0, 1, 0} {
					_, body := s.post(t, "/v1/completions", fmt.Sprintf(`{"prompt": %s, "logprobs": 2, "echo": true,
						"max_tokens": %d}`, asked, most))
					var got struct{ Choices []echo }
					if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Choices) != 1 {
						fault <- body
						return
					}
					l := got.Choices[0].Logprobs
					for i, want := range rows {
						if is := fmt.Sprint(l.Tokens[i+1], *l.Logprobs[i+1], l.Top[i+1]); is != want {
							fault <- fmt.Sprintf("token %d of %s is %s, and decoded it is %s", i+1, asked, is, want)
						}
					}
				}
			})
		}
		all.Wait()
		close(fault)
		for text := range fault {
			t.Error(text)
		}
	}
}

// A prompt whose log-probabilities come slower than it is read waits for them.
func TestEchoWaits(t *testing.T) {
	e := newScripted(hashed)
	s := newTest(e, nil)
	s.maxRows = 1
	s.start(t)
	long := make([]int, 200)
	for i := range long {
		long[i] = 5 + i
	}
	asked, err := json.Marshal(long)
	require.NoError(t, err)
	eventually(t, func() bool {
		got, _ := echoes(t, s, fmt.Sprintf(`"prompt": %s, "logprobs": 1, "max_tokens": 0`, asked))
		require.Len(t, got[0].Logprobs.Tokens, 200)
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.holds > 0
	})
}
