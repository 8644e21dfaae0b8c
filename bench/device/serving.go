package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os/signal"
	"syscall"
	"time"

	"amkc/app/engine"
	"amkc/app/library"
	"amkc/app/serve"
	"amkc/runtime/host"
	"amkc/text/sampling"
)

// servingResult is what serving prints: the same greedy requests to an engine, and to a server with that engine.
type servingResult struct {
	Prompt  int `json:"prompt"` // ids of each request, no two of which begin alike
	Tokens  int `json:"tokens"` // of each answer
	Rounds  int `json:"rounds"` // of a request each, or of one of each client
	Clients int `json:"clients"`
	// that the server decodes at a time
	Sequences int `json:"sequences"`

	Engine serveTimes `json:"engine"`           // one sequence, without HTTP
	Server serveTimes `json:"server"`           // one client
	Loaded serveTimes `json:"server_clients"`   // all of them at a time
	Cost   float64    `json:"cost_per_token_%"` // of the server, by the medians of us_per_token
}

// serveTimes are of all rounds, in microseconds.
type serveTimes struct {
	First percentiles `json:"first_token_us"` // from the request on
	// Between events, which have a token each from an engine. An event of a server has the text of one, and none where
	// a token completes no character. Events of one launch come together.
	Between percentiles `json:"between_us"`
	Token   percentiles `json:"us_per_token"` // of an answer, after its first token
}

type percentiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// An answerTime is when the parts of one answer came, from the request on.
type answerTime []time.Duration

// serving measures what the server costs. Rounds of the engine alone, of one client and of several are interleaved, so
// that a machine that becomes slower is as slow for all of them.
func serving(dir string, args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("serving", flag.ContinueOnError)
	set.SetOutput(stderr)
	r := &servingResult{}
	set.IntVar(&r.Prompt, "prompt", 32, "ids of a prompt: `N`")
	set.IntVar(&r.Tokens, "tokens", 128, "tokens of an answer: `N`")
	set.IntVar(&r.Rounds, "rounds", 8, "take `N` rounds")
	set.IntVar(&r.Clients, "clients", 8, "clients at a time: `N`")
	gpu := set.Int("gpu", 0, "`N`umber of the GPU, from 0")
	if err := set.Parse(args); err != nil || set.NArg() > 0 || r.Prompt < 1 || r.Tokens < 2 || r.Rounds < 1 ||
		r.Clients < 1 {
		fmt.Fprintln(stderr, "usage: device DIR serving [--prompt N] [--tokens N] [--rounds N] [--clients N] "+
			"[--gpu N]; an answer has 2 tokens at least")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := r.measure(ctx, dir, *gpu)
	return report(r, true, err, stdout, stderr)
}

func (r *servingResult) measure(ctx context.Context, dir string, gpu int) (err error) {
	tokenizer, err := library.ReadTokenizer(dir)
	if err != nil {
		return err
	}
	s, err := host.Open(ctx, dir, host.Options{GPU: gpu})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	limits := engine.New(s, engine.Served()).Limits()
	r.Sequences = limits.Sequences
	if r.Prompt+r.Tokens-1 > limits.MaxSeq {
		return fmt.Errorf("a prompt of %d ids and %d tokens after it do not fit %d positions", r.Prompt, r.Tokens,
			limits.MaxSeq)
	}
	prompts := prompter{rng: rand.New(rand.NewPCG(1, 2)), vocab: limits.Vocab, size: r.Prompt}
	var alone, one, many []answerTime
	for range r.Rounds + 1 { // the first is to warm up
		a, err := r.askEngine(ctx, engine.New(s, engine.Served()), prompts.next())
		if err != nil {
			return err
		}
		alone = append(alone, a)
		config := serve.Config{Model: s.Facts().Model.Name, Engine: engine.New(s, engine.Served()),
			Tokenizer: tokenizer, Sampling: sampling.Greedy(), Queue: r.Clients, Log: slog.New(slog.DiscardHandler)}
		err = withServer(ctx, config, func(ctx context.Context, url string) error {
			answers, err := r.askServer(ctx, url, 1, &prompts)
			if err != nil {
				return err
			}
			one = append(one, answers...)
			answers, err = r.askServer(ctx, url, r.Clients, &prompts)
			many = append(many, answers...)
			return err
		})
		if err != nil {
			return err
		}
	}
	r.Engine, r.Server, r.Loaded = r.times(alone[1:]), r.times(one[1:]), r.times(many[r.Clients:])
	r.Cost = 100 * (r.Server.Token.P50/r.Engine.Token.P50 - 1)
	return nil
}

// A prompter makes prompts of which no two begin alike, so that no request is served from the cache.
type prompter struct {
	rng         *rand.Rand
	vocab, size int
	made        int
}

func (p *prompter) next() []int {
	ids := make([]int, p.size)
	for i := range ids {
		ids[i] = p.rng.IntN(p.vocab)
	}
	ids[0] = p.made % p.vocab
	p.made++
	return ids
}

// askEngine decodes one answer without a server.
func (r *servingResult) askEngine(ctx context.Context, e serve.Engine, prompt []int) (at answerTime, err error) {
	begun := time.Now()
	s, _, err := e.Admit(prompt, serve.Options{Most: r.Tokens})
	if err != nil {
		return nil, err
	}
	defer e.Retire(s)
	for len(at) < r.Tokens {
		events, err := e.Step(ctx)
		if err != nil {
			return nil, err
		}
		for range events {
			at = append(at, time.Since(begun))
		}
	}
	return at, nil
}

// times sums answers up.
func (r *servingResult) times(answers []answerTime) serveTimes {
	var first, between, token []float64
	for _, at := range answers {
		first = append(first, micros(at[0]))
		for i := range at[1:] {
			between = append(between, micros(at[i+1]-at[i]))
		}
		token = append(token, micros(at[len(at)-1]-at[0])/float64(r.Tokens-1))
	}
	return serveTimes{percentilesOf(first), percentilesOf(between), percentilesOf(token)}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
