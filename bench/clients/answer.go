package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"amkc/runtime/infile"
)

// An Answer is what has to be the same.
type Answer struct {
	Text     string // of a completion; of an embedding its numbers
	Finish   string
	LogProbs string // of the tokens, if they were asked for
}

// readAll reads the body of an answer, which is short.
func readAll(body io.Reader) ([]byte, error) {
	return infile.ReadStream(body, "answer", infile.Kind{Name: "an answer", Max: 64 << 20})
}

// choices are those of a whole completion, or of an event of a stream.
type choices struct {
	Choices []struct {
		Text     string
		Finish   *string `json:"finish_reason"`
		LogProbs *struct {
			Tokens []json.Number `json:"token_logprobs"`
		} `json:"logprobs"`
	}
}

// add puts the next choice of an answer behind the ones before it.
func (a *Answer) add(c choices) error {
	for _, choice := range c.Choices {
		if a.Finish != "" {
			return errors.New("something follows the end")
		}
		a.Text += choice.Text
		if choice.Finish != nil {
			a.Finish = *choice.Finish
		}
		if choice.LogProbs != nil {
			for _, p := range choice.LogProbs.Tokens {
				a.LogProbs += p.String() + " "
			}
		}
	}
	return nil
}

// read reads the body of an answer.
func read(body io.Reader, path string, stream bool) (a Answer, err error) {
	text, err := readAll(body)
	if err != nil {
		return a, err
	}
	switch {
	case stream:
		return ReadStream(string(text))
	case path == embeddings:
		var whole struct {
			Data []struct{ Embedding json.RawMessage }
		}
		if err := json.Unmarshal(text, &whole); err != nil || len(whole.Data) != 1 {
			return a, fmt.Errorf("%q is no answer with one embedding: %w", text, err)
		}
		return Answer{Text: string(whole.Data[0].Embedding)}, nil
	}
	var whole choices
	if err := json.Unmarshal(text, &whole); err != nil || len(whole.Choices) != 1 || whole.Choices[0].Finish == nil {
		return a, fmt.Errorf("%q is no answer with one choice: %w", text, err)
	}
	return a, a.add(whole)
}

// ReadStream joins the texts of a stream of completions.
func ReadStream(stream string) (a Answer, err error) {
	events := strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n")
	if last := events[len(events)-1]; last != "data: [DONE]" {
		return a, fmt.Errorf("the last event is %q", last)
	}
	for _, event := range events[:len(events)-1] {
		if event == ": ping" {
			continue
		}
		var chunk choices
		if err := json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &chunk); err != nil {
			return a, fmt.Errorf("%q: %w", event, err)
		}
		if err := a.add(chunk); err != nil {
			return a, fmt.Errorf("%q: %w", event, err)
		}
	}
	return a, nil
}

// counts are what a server says of itself.
type counts struct {
	statuses map[string]int // requests for answers, by status
	busy     int            // requests that are being decoded or wait
}

var (
	answered = regexp.MustCompile(`amkc_http_requests_total\{path="(\S+)",status="(\d+)"\} (\d+)`)
	busy     = regexp.MustCompile(`amkc_requests_(?:running|waiting) (\d+)`)
)

// counted reads the metrics of a server.
func counted(ctx context.Context, url string) (c counts, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return c, err
	}
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return c, err
	}
	defer answer.Body.Close()
	text, err := readAll(answer.Body)
	if err != nil {
		return c, err
	}
	c.statuses = map[string]int{}
	for _, m := range answered.FindAllSubmatch(text, -1) {
		if path := string(m[1]); path == completions || path == embeddings {
			n, _ := strconv.Atoi(string(m[3]))
			c.statuses[string(m[2])] += n
		}
	}
	gauges := busy.FindAllSubmatch(text, -1)
	if len(gauges) != 2 {
		return c, fmt.Errorf("%s/metrics does not say what runs and what waits", url)
	}
	for _, m := range gauges {
		n, _ := strconv.Atoi(string(m[1]))
		c.busy += n
	}
	return c, nil
}

// Held is what a process holds, with a server in it.
type Held struct {
	Goroutines int   `json:"goroutines"`
	Heap       int64 `json:"heap"` // bytes that are reachable
}

// Hold takes stock.
func Hold() Held {
	runtime.GC()
	runtime.GC() // what pools have let go at the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Held{runtime.NumGoroutine(), int64(m.HeapAlloc)}
}

// mostGrowth is by how much the heap may differ, in bytes: a kB for each of a thousand requests, or what is made late.
const mostGrowth = 1 << 20

// Left says what has stayed behind since the process held less, or nothing. What ends by itself a little later is not
// counted.
func (since Held) Left() (now Held, left string) {
	for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		now, left = Hold(), ""
		switch {
		case now.Goroutines > since.Goroutines:
			left = fmt.Sprintf("there are %d goroutines, and were %d", now.Goroutines, since.Goroutines)
		case now.Heap > since.Heap+mostGrowth:
			left = fmt.Sprintf("the heap has grown from %d to %d bytes", since.Heap, now.Heap)
		}
		if left == "" || time.Now().After(until) {
			return now, left
		}
	}
}
