package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/text/sampling"
)

// What a scorer is told is done in its order. Rows that wait are counted, and room is told; after a failure, which a
// panic is, nothing is done.
func TestScorer(t *testing.T) {
	logits := logitsOf(7)
	var failures []error
	room, gate, done := make(chan bool, 9), make(chan struct{}, 2), make(chan int, 9)
	gate <- struct{}{}
	gate <- struct{}{}
	s := newScorer(2, 3, gate, func(err error) { failures = append(failures, err); done <- -1 },
		func() { room <- true })
	var all []*sampling.Choice
	for i := range 4 {
		require.Equal(t, i >= 3, s.lagging())
		c := &sampling.Choice{ID: 7 + i}
		all = append(all, c)
		s.score(logits, c, i, false)
		s.do(func() error { done <- i; return nil })
	}
	<-gate
	<-gate
	for i := range 4 {
		require.Equal(t, i, <-done)
		sampler, err := sampling.New(sampling.Options{TopP: 1, RepetitionPenalty: 1, LogProbs: 2,
			Bias: map[int]float64{7 + i: 99}}, vocab, nil)
		require.NoError(t, err)
		want, err := sampler.Next(logits, nil)
		require.NoError(t, err)
		require.Equal(t, want, *all[i])
	}
	eventually(t, func() bool { return len(room) == 1 })
	require.False(t, s.lagging())

	s.do(func() error { panic("the cause") })
	s.do(func() error { done <- 9; return nil })
	require.Equal(t, -1, <-done)
	require.ErrorContains(t, failures[0], "the cause")
	s.do(func() error { done <- 9; return nil })
	s.score(logits, all[0], 0, false)
	require.False(t, s.lagging())
	time.Sleep(time.Millisecond)
	require.Empty(t, done)
	require.Len(t, failures, 1)
}

// A sequence whose log-probabilities come slower than its tokens sits out steps, and its answer is the same.
func TestSequencesWaitForTheirLogprobs(t *testing.T) {
	for _, sequences := range []int{1, 2} {
		next := func(_, out []int) int { return 200 + len(out) }
		e := newScripted(next)
		e.limits.Sequences = sequences
		s := newTest(e, nil)
		s.maxRows = 1
		s.start(t)
		const fields = `"prompt": [5], "max_tokens": 50, "logprobs": 5, "n": 2`
		want, _ := serve(t, newScripted(next)).ask(t, "/v1/completions", fields)
		eventually(t, func() bool {
			got, _ := s.ask(t, "/v1/completions", fields)
			require.Equal(t, want, got)
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.holds > 0
		})
	}
}

// A numberless engine chooses a token, and gives logits that are not numbers to a prompt that begins with 7.
type numberless struct{ *scripted }

func (e numberless) Step(ctx context.Context) ([]Event, error) {
	events, err := e.scripted.Step(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range events {
		if event.Logits != nil && e.running[event.Sequence].prompt[0] == 7 {
			event.Logits[event.Token] = float32(math.Inf(-1))
		}
	}
	return events, err
}

// Logits that have no log-probability of the token fail the request that asks for it, and no other.
func TestLogprobsThatThereAreNot(t *testing.T) {
	e := numberless{newScripted(hashed)}
	e.limits.Sequences = 2
	s := serve(t, e)
	status, body := s.post(t, "/v1/completions", `{"prompt": [7], "logprobs": 1}`)
	require.Equal(t, 500, status, body)
	require.Equal(t, "internal_error", faultOf(t, body).Code)
	require.Contains(t, s.log.String(), "was chosen, and is impossible")
	for _, fields := range []string{`"prompt": [7]`, `"prompt": [8], "logprobs": 1`} {
		status, body = s.post(t, "/v1/completions", "{"+fields+"}")
		require.Equal(t, 200, status, body)
	}
	eventually(t, func() bool { left, _ := e.load(); return left == 0 })
}

// Log-probabilities of a sequence alongside others, some of which want none, are those that it has alone, to the last
// digit, streamed or not, with tokens chosen by the kernel or the host.
func TestLogprobsAlongsideOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	alone, s := serve(t, NewSingle(newVM(t), limits, 4)), serve(t, newBatch(t, 4))
	rng := rand.New(rand.NewPCG(1, 1))
	var all sync.WaitGroup
	fault := make(chan error, 20)
	for i := range 12 {
		path, fields := "/v1/completions", fmt.Sprintf(`"prompt": [%d, 300], "logprobs": %d`, 256+rng.IntN(700), i%3)
		switch i % 4 {
		case 1:
			fields += `, "temperature": 1.2, "seed": 3, "n": 2`
		case 2:
			path, fields = "/v1/chat/completions", `"messages": [{"role": "user", "content": "x"}], "logprobs": true,
				"top_logprobs": 4, "logit_bias": {"300": 4}`
		case 3:
			fields = `"prompt": [5, 6], "temperature": 0.7, "seed": 1`
		}
		fields += `, "max_tokens": 5`
		want, _ := alone.ask(t, path, fields)
		require.Equal(t, i%4 == 3, want[0].probs == "")
		all.Go(func() {
			if got, _ := s.ask(t, path, fields); fmt.Sprint(got) != fmt.Sprint(want) {
				fault <- errors.New(fmt.Sprint(fields, ": ", got, ", alone it is ", want))
			}
		})
	}
	all.Wait()
	close(fault)
	require.NoError(t, <-fault)
}
