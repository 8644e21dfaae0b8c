package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// oneOf is a choice of several, whole or put together of a stream.
type oneOf struct {
	text, finish, probs string
	calls               int
}

// ask asks for several answers, streamed and whole, which come to the same.
func (s *testServer) ask(t testing.TB, path, fields string) (all map[int]oneOf, cost usage) {
	t.Helper()
	status, whole := s.post(t, path, "{"+fields+"}")
	require.Equal(t, 200, status, whole)
	all, cost = choicesOf(t, whole)
	for i := range len(all) {
		require.NotEmpty(t, all[i].finish, "choices have the indices from 0 on: %s", whole)
	}
	status, stream := s.post(t, path, `{"stream": true, "stream_options": {"include_usage": true}, `+fields+"}")
	require.Equal(t, 200, status, stream)
	events := slices.DeleteFunc(strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n"),
		func(event string) bool { return strings.HasPrefix(event, ":") }) // comments: pings, and how much is read
	require.Equal(t, "data: [DONE]", events[len(events)-1])
	for i := range events {
		events[i] = strings.TrimPrefix(events[i], "data: ")
	}
	streamed, streamCost := choicesOf(t, events[:len(events)-1]...)
	require.Equal(t, all, streamed)
	streamCost.Details, cost.Details = promptDetails{}, promptDetails{} // the second one finds the prompt in the cache
	require.Equal(t, cost, streamCost)
	return all, cost
}

// choicesOf reads the choices of a whole answer, or of the chunks of a stream.
func choicesOf(t testing.TB, parts ...string) (all map[int]oneOf, cost usage) {
	all = map[int]oneOf{}
	ids := map[string]bool{}
	for _, part := range parts {
		var m struct {
			ID      string
			Choices []struct {
				Index          *int
				Text           string
				Message, Delta chatDelta
				Finish         *string `json:"finish_reason"`
				Logprobs       json.RawMessage
			}
			Usage *usage
		}
		require.NoError(t, json.Unmarshal([]byte(part), &m), part)
		ids[m.ID] = true
		for _, c := range m.Choices {
			a := all[*c.Index]
			require.Empty(t, a.finish, "nothing follows the end")
			for _, d := range []chatDelta{c.Message, c.Delta} {
				if d.Content != nil {
					a.text += *d.Content
				}
				for _, call := range d.ToolCalls {
					if call.ID != "" {
						a.calls++
					}
					a.text += call.Function.Name + call.Function.Arguments
				}
			}
			a.text += c.Text
			if c.Finish != nil {
				a.finish = *c.Finish
			}
			a.probs += probsOf(t, c.Logprobs)
			all[*c.Index] = a
		}
		if m.Usage != nil {
			cost = *m.Usage
		}
	}
	require.Len(t, ids, 1)
	return all, cost
}

// probsOf are the log-probabilities of an answer or of a part of it, in either form, as they are written.
func probsOf(t testing.TB, raw json.RawMessage) (all string) {
	var l *struct {
		Tokens  []json.Number        `json:"token_logprobs"`
		Top     []map[string]float64 `json:"top_logprobs"`
		Content []struct {
			Logprob json.Number
			Top     []struct {
				Token   string
				Logprob json.Number
			} `json:"top_logprobs"`
		}
	}
	if raw == nil {
		return ""
	}
	require.NoError(t, json.Unmarshal(raw, &l), string(raw))
	if l == nil {
		return ""
	}
	for i, p := range l.Tokens {
		all += fmt.Sprintln(p, l.Top[i])
	}
	for _, p := range l.Content {
		all += fmt.Sprintln(p)
	}
	return all
}

// Several answers to a prompt are those of single requests with the seeds that follow the request's, by engines of one
// sequence and of several; the prompt is counted once.
func TestSeveralAnswers(t *testing.T) {
	for _, sequences := range []int{1, 3} {
		e := newScripted(hashed)
		e.limits.Sequences = sequences
		s := serve(t, e)
		for _, c := range []struct{ path, fields string }{
			{"/v1/completions", `"prompt": [5, 9], "max_tokens": 12, "temperature": 1.5, "logprobs": 2`},
			{"/v1/completions", `"prompt": "x", "max_tokens": 12, "temperature": 2, "echo": true, "stop": "a"`},
			{"/v1/chat/completions", `"messages": [{"role": "user", "content": "x"}], "max_tokens": 9,
				"temperature": 1.5, "logprobs": true, "top_logprobs": 3`},
		} {
			got, cost := s.ask(t, c.path, c.fields+`, "n": 5, "seed": -2`)
			require.Len(t, got, 5)
			texts, completion := map[string]bool{}, 0
			for i := range 5 {
				alone, of := s.ask(t, c.path, fmt.Sprintf(`%s, "seed": %d`, c.fields, i-2))
				require.Equal(t, alone[0], got[i], "answer %d", i)
				require.Equal(t, of.Prompt, cost.Prompt)
				completion += of.Completion
				texts[got[i].text] = true
			}
			require.Greater(t, len(texts), 1)
			require.Equal(t, completion, cost.Completion)
			require.Equal(t, cost.Prompt+completion, cost.Total)
		}
		require.Equal(t, sequences, e.most)
	}
}

// Prompts of one request are answered as if each came on its own, and each as often as asked for.
func TestSeveralPrompts(t *testing.T) {
	e := newScripted(hashed)
	e.limits.Sequences = 4
	s := serve(t, e)
	given := []string{`"one"`, `[5, 6, 7]`, `"two three"`}
	const more = `, "max_tokens": 7, "temperature": 1, "echo": true, "seed": 4`
	got, cost := s.ask(t, "/v1/completions", `"n": 2, "best_of": 2, "prompt": [`+strings.Join(given, ", ")+`]`+more)
	require.Len(t, got, 6)
	var sum usage
	for i, prompt := range given {
		alone, of := s.ask(t, "/v1/completions", `"n": 2, "prompt": `+prompt+more)
		require.Equal(t, alone[0], got[2*i])
		require.Equal(t, alone[1], got[2*i+1])
		sum = usage{Prompt: sum.Prompt + of.Prompt, Completion: sum.Completion + of.Completion,
			Total: sum.Total + of.Total}
	}
	require.Equal(t, sum, cost)
	lists, _ := s.ask(t, "/v1/completions", `"prompt": [[5, 6, 7], [5]]`+more)
	require.Equal(t, got[2], lists[0])
}

// Each answer has a call, or JSON, of its own.
func TestSeveralAnswersWithAForm(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	s := serve(t, longer())
	const more = `, "temperature": 2, "seed": 1, "n": 4, "max_tokens": 400`
	got, _ := s.ask(t, "/v1/chat/completions", `"messages": [{"role": "user", "content": "x"}],
		"response_format": {"type": "json_object"}`+more)
	for _, a := range got {
		require.True(t, json.Valid([]byte(a.text)) || a.finish == finishLength, a.text)
	}
	for _, fields := range []string{`, "tool_choice": "required"`, `, "parallel_tool_calls": false,
		"tool_choice": {"type": "function", "function": {"name": "weather"}}`} {
		got, _ := s.ask(t, "/v1/chat/completions", twoTools+more+fields)
		require.Len(t, got, 4)
		for _, a := range got {
			require.Equal(t, 1, a.calls)
			require.Equal(t, "tool_calls", a.finish)
		}
	}
	calls := serve(t, says(t, `<tool_call>{"name": "weather", "arguments": {}}</tool_call>Then`))
	got, cost := calls.ask(t, "/v1/chat/completions", withTools+`, "n": 2, "parallel_tool_calls": false`)
	one := oneOf{"weather{}", "tool_calls", "", 1}
	require.Equal(t, map[int]oneOf{0: one, 1: one}, got)
	require.Equal(t, 2*len(idsOf(t, `<tool_call>{"name": "weather", "arguments": {}}`)), cost.Completion)
}

// All answers of a request have room, or the queue is full and none is decoded.
func TestAnswersTakePlacesInTheQueue(t *testing.T) {
	e := says(t, "abc")
	e.limits.Sequences = 2
	e.gate = make(chan struct{})
	s := newTest(e, func(c *Config) { c.Queue = 3 }).start(t)
	first := make(chan string, 1)
	go func() {
		_, body := s.post(t, "/v1/completions", `{"prompt": "x", "n": 4}`)
		first <- body
	}()
	eventually(t, func() bool {
		running, waiting, _, _ := s.scheduler.load()
		return running == 2 && waiting == 2
	})
	status, body := s.post(t, "/v1/completions", `{"prompt": ["x", "y"]}`)
	require.Equal(t, 429, status, body)
	require.Equal(t, "queue_full", faultOf(t, body).Code)
	status, body = s.post(t, "/v1/completions", `{"prompt": "x", "n": 6}`)
	require.Equal(t, 400, status, body)
	var other sync.WaitGroup
	other.Go(func() {
		status, _ := s.post(t, "/v1/completions", `{"prompt": "x"}`)
		require.Equal(t, 200, status)
	})
	eventually(t, func() bool { _, waiting, _, _ := s.scheduler.load(); return waiting == 3 })
	close(e.gate)
	all, _ := choicesOf(t, <-first)
	require.Len(t, all, 4)
	other.Wait()
	require.Contains(t, s.log.String(), "answers=4 finish=stop")
	_, _, metrics := s.send(t, "GET", "/metrics", "", nil)
	require.Contains(t, metrics, `amkc_completions_total{finish="stop"} 5`)
}

// When one answer fails the request does, and the others end.
func TestOneAnswerThatFails(t *testing.T) {
	e := newScripted(func(_, out []int) int { return 100 + len(out) }) // never ends
	e.limits.Sequences, e.limits.MaxSeq = 2, 1<<30
	e.none = func(prompt []int) bool { return prompt[0] == 7 }
	s := serve(t, e)
	const fields = `"prompt": [[5], [7]], "max_tokens": 1000000`
	status, body := s.post(t, "/v1/completions", `{`+fields+`}`)
	require.Equal(t, 500, status)
	require.Equal(t, "internal_error", faultOf(t, body).Code)
	eventually(t, func() bool { running, waiting, _, _ := s.scheduler.load(); return running+waiting == 0 })
	require.Contains(t, s.log.String(), "answers=2 finish=error")
	_, body = s.post(t, "/v1/completions", `{"stream": true, `+fields+`}`)
	require.NotContains(t, body, "[DONE]")
	require.Contains(t, body, "internal_error")

	e.mu.Lock()
	e.fail = func() error { return errors.New("the secret cause") }
	e.mu.Unlock()
	status, _ = s.post(t, "/v1/completions", `{"prompt": "x", "n": 5}`)
	require.Equal(t, 500, status)
	eventually(t, func() bool { running, waiting, _, _ := s.scheduler.load(); return running+waiting == 0 })
}
