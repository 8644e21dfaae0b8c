package serve

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/ir"
	"amkc/refvm"
)

// vm is a session of the reference VM.
type vm struct {
	*refvm.Session
	fed int
}

func (v *vm) Feed(ctx context.Context, ids []int, onLogits func(int, []float32) error) (next int, err error) {
	var logits []float32
	for _, id := range ids {
		if err := context.Cause(ctx); err != nil {
			return 0, err
		}
		v.fed++
		if logits, next, err = v.Step(id); err != nil {
			return 0, err
		}
		if onLogits != nil {
			if err := onLogits(v.Pos()-1, logits); err != nil {
				return 0, err
			}
		}
	}
	return next, nil
}

func (v *vm) State(ctx context.Context, id int) ([]float32, error) {
	if _, err := v.Feed(ctx, []int{id}, nil); err != nil {
		return nil, err
	}
	return v.Hidden(), nil
}

const maxSeq = 192

var limits = Limits{Vocab: vocab, MaxSeq: maxSeq, Hidden: 256}

// compiled is the fixture after the passes. Its weights may be read again and again.
var compiled = sync.OnceValues(func() (*compiler.Scheduled, error) { return compiler.RunPasses(options(1)) })

// options compile the fixture for passes of a number of sequences. The default number of splits follows from that, and
// logits of programs that differ in it differ in last bits.
func options(sequences int) compiler.Options {
	o := compiler.Options{Model: fixture, Target: ir.FindTarget("h200"), MaxSeq: maxSeq, Config: ir.ScheduleConfig{
		Tiling: map[string]map[string]int{"attention": {"split_from": 0, "max_splits": 4}}}}
	if sequences > 1 {
		o.Pass = ir.PassOf(sequences, 1)
	}
	return o
}

func newVM(t testing.TB) *vm {
	l, err := compiled()
	require.NoError(t, err)
	s, err := refvm.NewSession(l.Program, l.Weights, refvm.Options{})
	require.NoError(t, err)
	return &vm{Session: s}
}

// decode takes a prompt and n tokens, with their logits.
func decode(t testing.TB, e Engine, prompt []int, n int, o Options) (tokens []int, logits [][]float32, cached int) {
	s, cached, err := e.Admit(prompt, o)
	require.NoError(t, err)
	defer e.Retire(s)
	_, _, err = e.Admit(prompt, o)
	require.ErrorIs(t, err, errBusy)
	for len(tokens) < n {
		events, err := e.Step(t.Context())
		require.NoError(t, err)
		for _, event := range events {
			tokens = append(tokens, event.Token)
			require.Equal(t, o.Logits, event.Logits != nil)
			if o.Logits {
				require.Equal(t, slices.Index(event.Logits, slices.Max(event.Logits)), event.Token)
				logits = append(logits, slices.Clone(event.Logits))
			}
		}
	}
	return tokens, logits, cached
}

// What an earlier sequence has left in the cache is used, and no bit of the logits knows.
func TestPrefixesAreKept(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	rng := rand.New(rand.NewPCG(5, 6))
	v := newVM(t)
	e := NewSingle(v, limits, 4)
	var last []int // decoded by the engine
	for _, c := range []struct {
		keep, more int // of the last sequence, and new tokens after it
	}{{0, 13}, {13, 0}, {12, 3}, {1, 4}, {1000, 1}, {1000, 0}} {
		p := slices.Clone(last[:min(c.keep, len(last))])
		for range c.more {
			p = append(p, rng.IntN(vocab))
		}
		before := v.fed
		tokens, logits, cached := decode(t, e, p, 3, Options{Logits: true})
		require.Equal(t, min(len(last), c.keep, len(p)-1), cached)
		require.Equal(t, len(p)-cached+2, v.fed-before, "nothing is decoded twice")
		want, wanted, _ := decode(t, NewSingle(newVM(t), limits, 1), p, 3, Options{Logits: true})
		require.Equal(t, want, tokens)
		require.Equal(t, wanted, logits)
		greedy, _, _ := decode(t, e, p, 3, Options{})
		require.Equal(t, want, greedy)
		last = append(p, tokens[:2]...) // the last token is not decoded
	}
}

// A sequence goes on with the token that it is told.
func TestReplace(t *testing.T) {
	e := NewSingle(newVM(t), limits, 4)
	s, _, err := e.Admit([]int{5, 6, 7}, Options{Logits: true})
	require.NoError(t, err)
	for {
		events, err := e.Step(t.Context())
		require.NoError(t, err)
		if len(events) > 0 {
			break
		}
	}
	e.Replace(s, 99)
	events, err := e.Step(t.Context())
	require.NoError(t, err)
	want, _, _ := decode(t, NewSingle(newVM(t), limits, 4), []int{5, 6, 7, 99}, 1, Options{})
	require.Equal(t, want[0], events[0].Token)
	e.Retire(s)
	_, cached, err := e.Admit([]int{5, 6, 7, 99, 8}, Options{})
	require.NoError(t, err)
	require.Equal(t, 4, cached)
}

// flaky fails in the middle of a feed.
type flaky struct {
	*vm
	left int
}

func (f *flaky) Feed(ctx context.Context, ids []int, onLogits func(int, []float32) error) (int, error) {
	if f.left--; f.left == 0 {
		_, _ = f.vm.Feed(ctx, ids[:1], nil) // so far it came
		return 0, errors.New("the device is at fault")
	}
	return f.vm.Feed(ctx, ids, onLogits)
}

// After a failure nothing of the cache is relied on.
func TestPrefixesAfterFailures(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	prompt := []int{5, 6, 7, 8, 9, 10}
	want, _, _ := decode(t, NewSingle(newVM(t), limits, 2), prompt, 4, Options{})
	for left := 1; left <= 6; left++ {
		e := NewSingle(&flaky{newVM(t), left}, limits, 2)
		s, _, err := e.Admit(prompt, Options{})
		require.NoError(t, err)
		for err == nil {
			_, err = e.Step(t.Context())
		}
		require.ErrorContains(t, err, "at fault")
		e.Retire(s)
		tokens, _, cached := decode(t, e, prompt, 4, Options{})
		require.Zero(t, cached)
		require.Equal(t, want, tokens)
	}
}
