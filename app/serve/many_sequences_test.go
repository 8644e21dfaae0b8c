package serve

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/refvm"
	"amkc/text/sampling"
)

// A vmBatch is an engine of several sequences on the reference VM: a pass has a token of each. It keeps no prefix.
type vmBatch struct {
	vm    *refvm.Session
	slots []vmSlot
}

// A vmSlot is a sequence, and its region of the cache.
type vmSlot struct {
	taken bool
	held  bool
	Options
	done int   // tokens that have been decoded
	rest []int // to be decoded: what is left of the prompt, or the last token
}

// newBatch compiles the fixture for passes of n sequences.
func newBatch(t testing.TB, sequences int) *vmBatch {
	l, err := compiler.RunPasses(options(sequences))
	require.NoError(t, err)
	s, err := refvm.NewSession(l.Program, l.Weights, refvm.Options{})
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return &vmBatch{vm: s, slots: make([]vmSlot, sequences)}
}

func (b *vmBatch) Limits() Limits {
	return Limits{Vocab: vocab, MaxSeq: maxSeq, Hidden: limits.Hidden, Sequences: len(b.slots)}
}

func (b *vmBatch) Chooses(o *sampling.Options, masked, _ bool) bool {
	return !masked && !o.NeedLogits()
}

func (b *vmBatch) Hold(s Sequence, held bool) { b.slots[s].held = held }

func (b *vmBatch) Allow(Sequence, sampling.Mask) {}

func (b *vmBatch) Admit(prompt []int, o Options) (Sequence, int, error) {
	i := slices.IndexFunc(b.slots, func(s vmSlot) bool { return !s.taken })
	if i < 0 {
		return 0, 0, errBusy
	}
	b.slots[i] = vmSlot{taken: true, Options: o, rest: slices.Clone(prompt)}
	return Sequence(i), 0, nil
}

func (b *vmBatch) Step(ctx context.Context) (events []Event, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	at, tokens := make([]int, len(b.slots)), make([]int, len(b.slots))
	for i, s := range b.slots {
		if s.taken {
			at[i], tokens[i] = s.done, s.rest[0]
		}
	}
	logits, next, err := b.vm.Pass(at, tokens)
	if err != nil {
		return nil, err
	}
	for i := range b.slots {
		s := &b.slots[i]
		if !s.taken || s.held {
			continue
		}
		s.done++
		if s.rest = s.rest[1:]; len(s.rest) > 0 {
			if s.Echo {
				events = append(events, Event{Sequence: Sequence(i), Token: s.rest[0], Given: true,
					Logits: slices.Clone(logits[i*vocab : (i+1)*vocab])})
			}
			continue
		}
		s.rest = []int{next[i]}
		e := Event{Sequence: Sequence(i), Token: next[i]}
		if s.State {
			e.State = b.vm.Hidden()[i*limits.Hidden:][:limits.Hidden]
		}
		if s.Logits {
			e.Logits = slices.Clone(logits[i*vocab : (i+1)*vocab])
		}
		events = append(events, e)
	}
	return events, nil
}

func (b *vmBatch) Unread(s Sequence) int { return 0 } // progress is not tested here

func (b *vmBatch) Replace(s Sequence, token int) { b.slots[s].rest = []int{token} }

func (b *vmBatch) Retire(s Sequence) { b.slots[s] = vmSlot{} }

// taken is how many regions of the cache have a sequence.
func (b *vmBatch) taken() int {
	n := 0
	for _, s := range b.slots {
		if s.taken {
			n++
		}
	}
	return n
}
