package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"amkc/app/engine"
	"amkc/app/serve"
	"amkc/runtime/host"
)

// loadResult is what load prints: what a long prompt costs the others, a mixed load, and the second turn of a
// conversation. Times are those of the engine of a server, without HTTP.
type loadResult struct {
	Sequences int     `json:"sequences"` // of a pass of the build
	Others    int     `json:"others"`    // that decode when the prompt arrives
	Context   int     `json:"context"`   // tokens of the prompt of each
	Prompt    int     `json:"prompt"`    // tokens of the one that arrives
	Pause     float64 `json:"pause_ms"`
	Part      int     `json:"part,omitempty"` // of a prompt in a step, instead of as many as fit into the pause
	Rounds    int     `json:"rounds"`

	Before loadPhase   `json:"before"`
	During loadPhase   `json:"during"` // from the arrival of the prompt to its first token
	After  loadPhase   `json:"after"`
	Parts  float64     `json:"parts"`                // that read the prompt, in the mean
	First  percentiles `json:"first_token_ms"`       // of the prompt
	Alone  percentiles `json:"alone_first_token_ms"` // with nobody else
	Mixed  mixedLoad   `json:"mixed"`
	Turn   secondTurn  `json:"second_turn"`

	Differing []string `json:"differing"` // texts that are not what they are alone
	Passed    bool     `json:"passed"`
}

// A loadPhase has the times of the others' tokens.
type loadPhase struct {
	Tokens    int         `json:"tokens"`
	PerSecond float64     `json:"tokens_per_second"`
	Between   percentiles `json:"between_ms"` // tokens of a sequence; those of a launch come together
	Pause     percentiles `json:"pause_ms"`   // between tokens that do not come together
	Longest   float64     `json:"longest_ms"`

	between []float64
	took    time.Duration
}

// A mixedLoad is requests with short and long prompts, as many at a time as there is room for.
type mixedLoad struct {
	Requests      int         `json:"requests"`
	PromptTokens  int         `json:"prompt_tokens"`
	Tokens        int         `json:"tokens"`
	Seconds       float64     `json:"seconds"`
	PerSecond     float64     `json:"tokens_per_second"`
	ReadPerSecond float64     `json:"prompt_tokens_per_second"`
	First         percentiles `json:"first_token_ms"` // from admission on
	Pause         percentiles `json:"pause_ms"`
}

// A secondTurn is how long it takes to the first token after a conversation and a new message.
type secondTurn struct {
	Conversation int         `json:"conversation"` // tokens that have been decoded
	Message      int         `json:"message"`      // tokens after them
	Cached       int         `json:"cached"`       // tokens that were not decoded again
	First        percentiles `json:"first_token_ms"`
	Without      percentiles `json:"without_reuse_ms"` // of a conversation that begins differently
}

const loadUsage = "usage: device DIR load [--others N] [--context N] [--prompt N] [--tokens N] [--conversation N] " +
	"[--requests N] [--rounds N] [--pause MS] [--part N] [--gpu N]"

// A loadPlan is what load measures with.
type loadPlan struct {
	others, context, prompt, tokens, conversation, requests, rounds int
	batch                                                           host.BatchOptions
}

// messageTokens is how many tokens a message of the second turn has.
const messageTokens = 64

// load measures what long prompts cost the sequences that decode alongside. Exit code 1: a text is not what it is
// alone.
func load(dir string, args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("load", flag.ContinueOnError)
	set.SetOutput(stderr)
	p := loadPlan{batch: engine.Served()}
	set.IntVar(&p.others, "others", 7, "`N` sequences decode when the prompt arrives")
	set.IntVar(&p.context, "context", 128, "`N` tokens of their prompts")
	set.IntVar(&p.prompt, "prompt", 8192, "`N` tokens of the prompt that arrives")
	set.IntVar(&p.tokens, "tokens", 128, "`N` tokens of each before and after")
	set.IntVar(&p.conversation, "conversation", 6000, "`N` tokens of the first turn")
	set.IntVar(&p.requests, "requests", 32, "`N` requests of the mixed load")
	set.IntVar(&p.rounds, "rounds", 3, "`N` rounds of each measurement but the mixed load")
	pause := set.Float64("pause", float64(host.DefaultPause.Milliseconds()), "`MS` that others may wait")
	set.IntVar(&p.batch.Prompt, "part", 0, "read `N` tokens of prompts in a step, however long that takes")
	gpu := set.Int("gpu", 0, "`N`umber of the GPU, from 0")
	if err := set.Parse(args); err != nil || set.NArg() > 0 || *pause <= 0 || p.batch.Prompt < 0 ||
		slices.Min([]int{p.others, p.context, p.tokens, p.requests, p.rounds}) < 1 || p.prompt < 2 ||
		p.conversation < 2 {
		fmt.Fprintln(stderr, loadUsage)
		return 2
	}
	p.batch.Pause = time.Duration(*pause * float64(time.Millisecond))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	r, err := p.measure(ctx, dir, *gpu)
	return report(r, r != nil && r.Passed, err, stdout, stderr)
}

func (p *loadPlan) measure(ctx context.Context, dir string, gpu int) (r *loadResult, err error) {
	s, err := host.Open(ctx, dir, host.Options{GPU: gpu})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	l := &loader{p: p, s: s, rng: rand.New(rand.NewPCG(5, 2))}
	l.begin()
	limits := l.engine.Limits()
	if needs := max(p.prompt+alike, p.conversation+messageTokens+alike, p.context+3*p.tokens); p.others >=
		limits.Sequences || needs > limits.MaxSeq {
		return nil, fmt.Errorf("the build has %d sequences of %d positions; this needs %d of %d", limits.Sequences,
			limits.MaxSeq, p.others+1, needs)
	}
	r = &loadResult{Sequences: limits.Sequences, Others: p.others, Context: p.context, Prompt: p.prompt,
		Pause: p.batch.Pause.Seconds() * 1e3, Part: p.batch.Prompt, Rounds: p.rounds, Differing: []string{}}
	if err := l.arrivals(ctx, r); err != nil {
		return nil, err
	}
	if err := l.turns(ctx, r); err != nil {
		return nil, err
	}
	if err := l.mixed(ctx, r); err != nil {
		return nil, err
	}
	r.Passed = len(r.Differing) == 0
	return r, nil
}

// alike is how many tokens of a text are compared with those that it gives alone.
const alike = 8

// A loader decodes sequences, and takes the times of their tokens.
type loader struct {
	p      *loadPlan
	s      *host.Session
	engine serve.Engine
	rng    *rand.Rand
	texts  map[serve.Sequence]*loadText
}

type loadText struct {
	begun  time.Time
	times  []time.Time
	tokens []int
	most   int // tokens; 0: until it is retired
}

// begin begins with an engine whose cache has nothing that is known.
func (l *loader) begin() {
	l.engine, l.texts = engine.New(l.s, l.p.batch), map[serve.Sequence]*loadText{}
}

func (l *loader) ids(n int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = l.rng.IntN(l.s.Facts().Model.Vocab)
	}
	return ids
}

func (l *loader) admit(prompt []int, most int) (serve.Sequence, int, error) {
	begun := time.Now()
	s, cached, err := l.engine.Admit(prompt, serve.Options{Most: most})
	if err == nil {
		l.texts[s] = &loadText{begun: begun, most: most}
	}
	return s, cached, err
}

func (l *loader) retire(s serve.Sequence) {
	l.engine.Retire(s)
	delete(l.texts, s)
}

// step decodes, and retires what has ended; the texts that did.
func (l *loader) step(ctx context.Context) (ended []*loadText, err error) {
	events, err := l.engine.Step(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for _, e := range events {
		t := l.texts[e.Sequence]
		if t == nil {
			continue
		}
		if e.Err != nil {
			return nil, e.Err
		}
		t.times, t.tokens = append(t.times, now), append(t.tokens, e.Token)
		if t.most == 0 && l.p.context+len(t.tokens) > l.engine.Limits().MaxSeq {
			return nil, fmt.Errorf("a sequence has reached the last of %d positions; want fewer --tokens, or a build "+
				"with more", l.engine.Limits().MaxSeq)
		}
		if t.most > 0 && len(t.tokens) == t.most {
			ended = append(ended, t)
			l.retire(e.Sequence)
		}
	}
	return ended, nil
}

// alone is what a prompt gives with nobody else, and when its first token comes.
func (l *loader) alone(ctx context.Context, prompt []int) (*loadText, int, error) {
	_, cached, err := l.admit(prompt, alike)
	for err == nil {
		var ended []*loadText
		if ended, err = l.step(ctx); len(ended) > 0 {
			return ended[0], cached, nil
		}
	}
	return nil, 0, err
}

func (t *loadText) first() float64 { return millis(t.times[0].Sub(t.begun)) }

func millis(d time.Duration) float64 { return micros(d) / 1000 }

// differs notes a text that is not what it is alone.
func (r *loadResult) differs(what string, got, want []int) {
	if !slices.Equal(got, want) {
		r.Differing = append(r.Differing, fmt.Sprintf("%s: %v, alone %v", what, got, want))
	}
}

// arrivals measures the others while a prompt arrives. The first round is to warm up.
func (l *loader) arrivals(ctx context.Context, r *loadResult) error {
	var first, alone []float64
	for round := range l.p.rounds + 1 {
		l.begin()
		if round == 1 {
			r.Before, r.During, r.After, r.Parts = loadPhase{}, loadPhase{}, loadPhase{}, 0
			first, alone = nil, nil
		}
		prompt := l.ids(l.p.prompt)
		want, _, err := l.alone(ctx, prompt)
		if err != nil {
			return err
		}
		alone = append(alone, want.first())
		l.begin() // a new batch knows nothing of the rows
		for range l.p.others {
			if _, _, err := l.admit(l.ids(l.p.context), 0); err != nil {
				return err
			}
		}
		for l.least() < 1 {
			if _, err := l.step(ctx); err != nil {
				return err
			}
		}
		if err := l.phase(ctx, &r.Before); err != nil {
			return err
		}
		s, _, err := l.admit(prompt, alike)
		if err != nil {
			return err
		}
		arrived, steps := l.texts[s], 0
		during := l.watch()
		for len(arrived.times) == 0 {
			if _, err := l.step(ctx); err != nil {
				return err
			}
			steps++
		}
		during(&r.During)
		first, r.Parts = append(first, arrived.first()), r.Parts+float64(steps)/float64(l.p.rounds)
		for len(arrived.tokens) < alike {
			if _, err := l.step(ctx); err != nil {
				return err
			}
		}
		r.differs("the prompt that arrives", arrived.tokens, want.tokens)
		if err := l.phase(ctx, &r.After); err != nil {
			return err
		}
	}
	r.First, r.Alone = percentilesOf(first), percentilesOf(alone)
	for _, phase := range []*loadPhase{&r.Before, &r.During, &r.After} {
		phase.sum()
	}
	return nil
}

// least is how many tokens each of the texts has at least.
func (l *loader) least() int {
	n := -1
	for _, t := range l.texts {
		if n < 0 || len(t.times) < n {
			n = len(t.times)
		}
	}
	return n
}

// phase decodes some tokens of each text.
func (l *loader) phase(ctx context.Context, into *loadPhase) error {
	done := l.watch()
	for end := l.least() + l.p.tokens; l.least() < end; {
		if _, err := l.step(ctx); err != nil {
			return err
		}
	}
	done(into)
	return nil
}

// watch takes the times of the tokens from now on, of texts that have some.
func (l *loader) watch() (done func(*loadPhase)) {
	begun, had := time.Now(), map[*loadText]int{}
	for _, t := range l.texts {
		if len(t.times) > 0 {
			had[t] = len(t.times)
		}
	}
	return func(into *loadPhase) {
		into.took += time.Since(begun)
		for t, n := range had {
			for i := n; i < len(t.times); i++ {
				into.between = append(into.between, millis(t.times[i].Sub(t.times[i-1])))
			}
		}
	}
}

func (p *loadPhase) sum() {
	p.Tokens, p.PerSecond = len(p.between), float64(len(p.between))/p.took.Seconds()
	p.Between, p.Pause, p.Longest = percentilesOf(p.between), pauses(p.between), slices.Max(p.between)
}

// pauses are percentiles of the times between tokens that do not come together.
func pauses(between []float64) percentiles {
	apart := slices.DeleteFunc(slices.Clone(between), func(ms float64) bool { return ms == 0 })
	if len(apart) == 0 {
		return percentiles{}
	}
	return percentilesOf(apart)
}

// turns measures the second turn of a conversation, with its rows in the cache and without.
func (l *loader) turns(ctx context.Context, r *loadResult) error {
	var with, without []float64
	r.Turn.Message = messageTokens
	for round := range l.p.rounds + 1 { // the first is to warm up
		l.begin()
		conversation := l.ids(l.p.conversation - alike)
		said, _, err := l.alone(ctx, conversation)
		if err != nil {
			return err
		}
		turn := slices.Concat(conversation, said.tokens, l.ids(messageTokens))
		reused, cached, err := l.alone(ctx, turn)
		if err != nil {
			return err
		}
		l.begin()
		anew, none, err := l.alone(ctx, turn)
		if err != nil {
			return err
		}
		if none != 0 {
			return fmt.Errorf("%d tokens were reused of no conversation", none)
		}
		r.differs("the second turn", reused.tokens, anew.tokens)
		if r.Turn.Conversation, r.Turn.Cached = len(turn)-messageTokens, cached; round > 0 {
			with, without = append(with, reused.first()), append(without, anew.first())
		}
	}
	r.Turn.First, r.Turn.Without = percentilesOf(with), percentilesOf(without)
	return nil
}

// mixed decodes requests in their order: half of the prompts are short, some are long.
func (l *loader) mixed(ctx context.Context, r *loadResult) error {
	l.begin()
	m, begun := &r.Mixed, time.Now()
	var first, between []float64
	for ended := 0; ended < l.p.requests; {
		for m.Requests < l.p.requests && len(l.texts) < l.engine.Limits().Sequences {
			n := max(2, l.p.prompt*[]int{1, 2, 32, 96}[l.rng.IntN(4)]/128)
			if _, _, err := l.admit(l.ids(n), max(2, l.p.tokens/2+l.rng.IntN(l.p.tokens))); err != nil {
				return err
			}
			m.Requests, m.PromptTokens = m.Requests+1, m.PromptTokens+n
		}
		texts, err := l.step(ctx)
		if err != nil {
			return err
		}
		for _, t := range texts {
			ended++
			m.Tokens += len(t.tokens)
			first = append(first, t.first())
			for i := range t.times[1:] {
				between = append(between, millis(t.times[i+1].Sub(t.times[i])))
			}
		}
	}
	m.Seconds = time.Since(begun).Seconds()
	m.PerSecond, m.ReadPerSecond = float64(m.Tokens)/m.Seconds, float64(m.PromptTokens)/m.Seconds
	m.First, m.Pause = percentilesOf(first), pauses(between)
	return nil
}
