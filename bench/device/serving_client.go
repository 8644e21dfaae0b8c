package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"amkc/app/serve"
)

// withServer runs a server on a free port of this machine while f asks it, and waits for its end.
func withServer(ctx context.Context, config serve.Config, f func(ctx context.Context, url string) error) error {
	l, err := serve.Listen(serve.DefaultHost, 0, config.Log)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	s := serve.New(config)
	s.Take(l)
	go func() { ended <- s.Serve(serving, serve.DefaultGrace) }()
	err = f(ctx, "http://"+l.Addr().String())
	stop()
	return errors.Join(err, <-ended)
}

// askServer sends a request of each of n clients at the same time.
func (r *servingResult) askServer(ctx context.Context, url string, clients int, prompts *prompter) ([]answerTime,
	error) {
	var wait sync.WaitGroup
	answers, errs := make([]answerTime, clients), make([]error, clients)
	for i := range clients {
		prompt := prompts.next()
		wait.Go(func() { answers[i], errs[i] = r.stream(ctx, url, prompt) })
	}
	wait.Wait()
	return answers, errors.Join(errs...)
}

// stream asks for one answer, event by event. What an event says is looked at when all are there, so that reading JSON,
// which is the client's work, delays none.
func (r *servingResult) stream(ctx context.Context, url string, prompt []int) (at answerTime, err error) {
	body, err := json.Marshal(map[string]any{"prompt": prompt, "max_tokens": r.Tokens, "temperature": 0,
		"ignore_eos": true, "stream": true, "stream_options": map[string]any{"include_usage": true}})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	begun := time.Now()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers with status %s", answer.Status)
	}
	var events []string
	var came answerTime
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if data, is := strings.CutPrefix(lines.Text(), "data: "); is && data != "[DONE]" {
			events, came = append(events, data), append(came, time.Since(begun))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	tokens := 0
	for i, data := range events {
		var event struct {
			Choices []struct{ Text string }
			Usage   *struct {
				Tokens int `json:"completion_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return nil, err
		}
		if event.Usage != nil {
			tokens = event.Usage.Tokens
		}
		if len(event.Choices) > 0 && event.Choices[0].Text != "" {
			at = append(at, came[i])
		}
	}
	if tokens != r.Tokens || len(at) < 2 {
		return nil, fmt.Errorf("an answer has %d tokens in %d events; want %d tokens in several", tokens, len(at),
			r.Tokens)
	}
	return at, nil
}

// percentilesOf sorts values, at least one.
func percentilesOf(v []float64) percentiles {
	slices.Sort(v)
	rank := func(p int) float64 { return v[(len(v)*p+99)/100-1] }
	return percentiles{rank(50), rank(99)}
}
