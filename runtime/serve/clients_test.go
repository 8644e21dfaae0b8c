package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A client asks one thing after the other.
type client struct {
	s    *testServer
	http *http.Client
	rng  *rand.Rand
	want []said // of each of questions

	answered, cancelled, bad, busy int
}

// question is one of some requests that clients send, which differ in all that a request may say.
func question(i int) string {
	fields := fmt.Sprintf(`"prompt": [0, %d, %d, %d], "max_tokens": %d`, 300+i%3, 400+i%2, 500+i, 1+i%7)
	switch i % 5 {
	case 1:
		fields += `, "logit_bias": {"198": 5, "12": -3}, "seed": 7`
	case 2:
		fields += `, "stop": ["e", " d"], "temperature": 1.5, "top_p": 0.9, "seed": -3`
	case 3:
		fields += `, "logprobs": 2, "temperature": 0.7, "repetition_penalty": 1.2, "seed": 11`
	case 4:
		fields += `, "ignore_eos": true`
	}
	return fields
}

const questions = 15

// ask sends a random one of all kinds of requests, as often as it takes.
func (c *client) ask(ctx context.Context) error {
	i := c.rng.IntN(questions)
	body := "{" + question(i) + "}"
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := c.rng.IntN(2) == 0
	if stream {
		body = `{"stream": true, ` + question(i) + "}"
	}
	kind := c.rng.IntN(10)
	if kind == 0 {
		body = body[:c.rng.IntN(len(body))] // never whole, so never JSON
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.s.url+"/v1/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if kind == 1 {
		for range c.rng.IntN(3) {
			runtime.Gosched()
		}
		if c.rng.IntN(2) == 0 {
			cancel() // before there is an answer
		}
	}
	answer, err := c.http.Do(r)
	for ; err == nil && answer.StatusCode == http.StatusTooManyRequests; answer, err = c.http.Do(r) {
		c.busy++
		answer.Body.Close()
		time.Sleep(time.Millisecond)
		r.Body, _ = r.GetBody()
	}
	if kind == 1 && (err != nil || answer.StatusCode == http.StatusOK) {
		c.cancelled++
		if err == nil {
			return answer.Body.Close() // before it is read
		}
		if errors.Is(err, context.Canceled) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err
	case kind == 0 && answer.StatusCode == http.StatusBadRequest:
		c.bad++
		return nil
	case answer.StatusCode != http.StatusOK || kind == 0:
		return fmt.Errorf("status %d: %s", answer.StatusCode, text)
	}
	c.answered++
	got := said{}
	if stream {
		got.Text, got.Finish, err = readStream(string(text))
	} else {
		got, err = readWhole(text)
	}
	if want := c.want[i]; err != nil || got.Text != want.Text || got.Finish != want.Finish {
		return fmt.Errorf("%s: %q (%s), alone it is %q (%s): %v", body, got.Text, got.Finish, want.Text, want.Finish,
			err)
	}
	return nil
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

// readStream joins the texts of a stream of completions.
func readStream(stream string) (text, finish string, err error) {
	events := strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n")
	if last := events[len(events)-1]; last != "data: [DONE]" {
		return "", "", fmt.Errorf("the last event is %q", last)
	}
	for _, event := range events[:len(events)-1] {
		if event == ": ping" {
			continue
		}
		var chunk struct {
			Choices []struct {
				Text   string
				Finish *string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &chunk); err != nil {
			return "", "", fmt.Errorf("%s: %w", event, err)
		}
		for _, choice := range chunk.Choices {
			if finish != "" {
				return "", "", fmt.Errorf("%q follows the end", event)
			}
			text += choice.Text
			if choice.Finish != nil {
				finish = *choice.Finish
			}
		}
	}
	return text, finish, nil
}

// 32 clients at a time, some of which go away or send what is no request, of an engine of one sequence and of one of
// four: every text is the one that the request has alone, nothing is lost, and nothing stays behind. AMKC_LONG sends a
// thousand requests.
func TestManyClients(t *testing.T) {
	t.Run("one sequence", func(t *testing.T) { manyClients(t, NewSingle(newVM(t), limits, 4)) })
	batch := newBatch(t, 4)
	t.Run("four sequences", func(t *testing.T) { manyClients(t, batch) })
	require.Zero(t, batch.taken(), "regions of the cache")
}

func manyClients(t *testing.T, e Engine) {
	requests := 48
	if os.Getenv("AMKC_LONG") != "" {
		requests = 1000
	}
	alone := serve(t, NewSingle(newVM(t), limits, 4))
	want := make([]said, questions)
	for i := range want {
		_, body := alone.post(t, "/v1/completions", "{"+question(i)+"}")
		var err error
		want[i], err = readWhole([]byte(body))
		require.NoError(t, err)
	}

	s := newTest(e, func(c *Config) {
		c.Queue = 24
		c.Log = slog.New(slog.DiscardHandler) // a line for each refusal would be kept
	}).start(t)
	transport := &http.Transport{MaxIdleConnsPerHost: 32}
	all := make([]*client, 32)
	for i := range all {
		all[i] = &client{s: s, http: &http.Client{Transport: transport}, rng: rand.New(rand.NewPCG(9, uint64(i))),
			want: want}
	}
	require.NoError(t, all[0].ask(t.Context())) // what is made once is there
	goroutines, heap := runtime.NumGoroutine(), heapSize()
	var wait sync.WaitGroup
	for i, c := range all {
		wait.Go(func() {
			for range (requests - 1 + i) / len(all) {
				if err := c.ask(t.Context()); err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
			}
		})
	}
	wait.Wait()
	var sum client
	for _, c := range all {
		sum.answered += c.answered
		sum.cancelled += c.cancelled
		sum.bad += c.bad
		sum.busy += c.busy
	}
	t.Logf("%d answered, %d cancelled, %d bad, %d refused as the queue was full", sum.answered, sum.cancelled, sum.bad,
		sum.busy)
	require.NotZero(t, sum.answered)
	require.NotZero(t, sum.cancelled)
	require.NotZero(t, sum.bad)

	// Nothing is decoded for nobody, and what was sent has been counted.
	eventually(t, func() bool { running, waiting, _, _ := s.scheduler.load(); return running+waiting == 0 })
	eventually(t, func() bool {
		transport.CloseIdleConnections() // a connection becomes idle a little after its answer has been read
		return runtime.NumGoroutine() <= goroutines
	})
	_, _, metrics := s.send(t, http.MethodGet, "/metrics", "", nil)
	counted := map[string]int{}
	requestsOf := regexp.MustCompile(`path="/v1/completions",status="(\d+)"} (\d+)`)
	for _, m := range requestsOf.FindAllStringSubmatch(metrics, -1) {
		n, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		counted[m[1]] = n
	}
	require.Equal(t, sum.bad, counted["400"])
	require.Equal(t, requests, sum.answered+sum.cancelled+sum.bad)
	require.GreaterOrEqual(t, counted["429"], sum.busy) // those who went away may have been refused too
	require.GreaterOrEqual(t, counted["200"], sum.answered)
	require.LessOrEqual(t, counted["200"]+counted["400"]+counted["429"]+counted["499"],
		sum.answered+sum.cancelled+sum.bad+sum.busy)
	require.Zero(t, counted["500"])
	require.Less(t, heapSize(), heap+4<<20)
}

// heapSize is what is reachable, in bytes.
func heapSize() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
