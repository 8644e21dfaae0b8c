package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"syscall"

	"amkc/app/engine"
	"amkc/app/library"
	"amkc/app/serve"
	"amkc/bench/clients"
	"amkc/runtime/host"
	"amkc/text/chat"
	"amkc/text/draft"
	"amkc/text/jinja"
	"amkc/text/sampling"
)

// clientsResult is what clients prints.
type clientsResult struct {
	*clients.Report
	Sequences int          `json:"sequences"` // that the server decodes at a time
	Before    clients.Held `json:"before"`
	After     clients.Held `json:"after"`
	Passed    bool         `json:"passed"`
}

// plainTemplate makes a prompt of what messages say, and of the names of tools, for builds of any model.
const plainTemplate = "{% for t in tools or [] %}{{ t.function.name }} {% endfor %}{% for m in messages %}" +
	"{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}" +
	"{% endfor %}"

// leastIDs are those that the requests of a plan name.
const leastIDs = 1024

// manyClients serves a build to many clients at a time, some of whom go away or send what is not a request. Each answer
// must be the one that the request has alone, each request be counted, and nothing remain. Exit code 1: it is not
// so.
func manyClients(dir string, args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("clients", flag.ContinueOnError)
	set.SetOutput(stderr)
	var plan clients.Plan
	set.IntVar(&plan.Requests, "requests", 1000, "requests, all together: `N`")
	set.IntVar(&plan.Clients, "clients", 32, "clients at a time: `N`")
	set.IntVar(&plan.Prompt, "prompt", 64, "tokens of a prompt at most: `N`")
	set.IntVar(&plan.Tokens, "tokens", 61, "tokens of an answer at most: `N`")
	set.Uint64Var(&plan.Seed, "seed", 1, "of what is random")
	gpu := set.Int("gpu", 0, "`N`umber of the GPU, from 0")
	guess := set.String("draft", "", "ngram: guess ahead, and verify several tokens of each answer at a time")
	if err := set.Parse(args); err != nil || set.NArg() > 0 || *guess != "" && *guess != draft.NGram ||
		plan.Clients < 1 || plan.Requests < plan.Clients || plan.Prompt < 4 || plan.Tokens < 7 {
		fmt.Fprintln(stderr, "usage: device DIR clients [--requests N] [--clients N] [--prompt N] [--tokens N] "+
			"[--seed N] [--gpu N] [--draft ngram]; a client sends a request at least, a prompt has 4 tokens and an "+
			"answer 7")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	r, err := askMany(ctx, dir, *gpu, plan, *guess != "")
	return report(r, r != nil && r.Passed, err, stdout, stderr)
}

func askMany(ctx context.Context, dir string, gpu int, plan clients.Plan, drafts bool) (r *clientsResult, err error) {
	tokenizer, err := library.ReadTokenizer(dir)
	if err != nil {
		return nil, err
	}
	s, err := host.Open(ctx, dir, host.Options{GPU: gpu})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	o := engine.Served()
	if facts := s.Facts(); drafts && !facts.VerifiesDrafts(true) {
		return nil, errors.New("the build verifies no drafts of several sequences; compile it with --sequence-rows")
	} else if drafts {
		o.Drafter = draft.NGrams{}
	}
	e := engine.New(s, o)
	limits := e.Limits()
	if limits.Vocab < leastIDs || plan.Prompt+plan.Tokens-1 > limits.MaxSeq {
		return nil, fmt.Errorf("the model has %d ids and %d positions; requests need %d and %d", limits.Vocab,
			limits.MaxSeq, leastIDs, plan.Prompt+plan.Tokens-1)
	}
	r = &clientsResult{Sequences: limits.Sequences}
	config := serve.Config{Model: s.Facts().Model.Name, Engine: e, Tokenizer: tokenizer, Sampling: sampling.Greedy(),
		Chat:  chat.New(map[string]string{"default": plainTemplate}, &jinja.Dict{}),
		Queue: max(clients.MostAnswers, 3*plan.Clients/4), // so that it is full now and then
		Log:   slog.New(slog.DiscardHandler)}
	err = withServer(ctx, config, func(ctx context.Context, url string) error {
		want, err := clients.Alone(ctx, url, plan)
		if err != nil {
			return err
		}
		few := plan
		few.Requests = plan.Clients
		if _, err := clients.Ask(ctx, url, few, want); err != nil { // what is made once is there
			return err
		}
		r.Before = clients.Hold()
		if r.Report, err = clients.Ask(ctx, url, plan, want); err != nil {
			return err
		}
		var left string
		if r.After, left = r.Before.Left(); left != "" {
			r.Findings = append(r.Findings, left)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := allFree(e); err != nil {
		r.Findings = append(r.Findings, err.Error())
	}
	r.Passed = len(r.Findings) == 0
	return r, nil
}

// allFree checks that an engine whose server has ended has a region of its cache for as many sequences as it takes.
func allFree(e serve.Engine) error {
	for i := range e.Limits().Sequences {
		s, _, err := e.Admit([]int{1}, serve.Options{})
		if err != nil {
			return fmt.Errorf("the engine takes %d sequences when all have gone, and %d before: %w", i,
				e.Limits().Sequences, err)
		}
		defer e.Retire(s)
	}
	return nil
}
