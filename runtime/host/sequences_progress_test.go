package host_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

// Each step does something for a sequence that is not held, and none waits forever: whatever prompts begin with in
// common, however much of them a step reads, and though sequences are held or retired while their prompts are read.
// Tokens are those that a text has alone.
func TestPromptsMakeProgress(t *testing.T) {
	type sequence struct {
		text       []int
		given      int
		held, echo bool
		idle       int // steps since it was read or gave a token
	}
	const most, patience = 3, 2500
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			s := openReaders(t, 0, []int{0, 512}[seed%2])
			o := host.BatchOptions{Pause: []time.Duration{time.Nanosecond, time.Millisecond, time.Hour}[seed%3]}
			if seed == 0 {
				o.Prompt = 33
			}
			b, common, live, retired := s.NewBatch(o), make([]int, 900), map[int]*sequence{}, 0
			for i := range common {
				common[i] = rng.IntN(4096)
			}
			retire := func(id int) {
				b.Retire(id)
				delete(live, id)
				retired++
			}
			for retired < 40 {
				for len(live) < 4 && rng.IntN(3) > 0 {
					text := slices.Clone(common[:1+rng.IntN(900)])
					for range rng.IntN(3) * rng.IntN(40) {
						text = append(text, rng.IntN(4096))
					}
					echo := rng.IntN(4) == 0
					id, _, err := b.Admit(text, host.SequenceOptions{Most: most, Echo: echo, Logits: echo})
					require.NoError(t, err)
					live[id] = &sequence{text: text, echo: echo}
				}
				before, active := map[int]int{}, false
				for id := range 4 {
					x := live[id]
					if x != nil && rng.IntN(60) == 0 {
						retire(id)
					} else if x != nil {
						x.held = x.held != (rng.IntN(10) == 0)
						b.Hold(id, x.held)
						before[id], active = b.Unread(id), active || !x.held
					}
				}
				tokens, err := b.Step(t.Context())
				require.NoError(t, err)
				progress := len(tokens) > 0
				for id, x := range live {
					if x.idle++; x.held || b.Unread(id) != before[id] {
						x.idle = 0
					}
					progress = progress || b.Unread(id) != before[id]
					require.Less(t, x.idle, patience, "sequence %d", id)
				}
				require.True(t, progress || !active)
				for _, got := range tokens {
					if got.Given {
						continue
					}
					x := live[got.Sequence]
					_, want := hosttest.Mirror(x.text)
					require.Equal(t, want, got.ID)
					if x.echo {
						require.NoError(t, b.Replace(got.Sequence, got.ID))
					}
					x.text, x.idle = append(x.text, got.ID), 0
					if x.given++; x.given == most {
						retire(got.Sequence)
					}
				}
			}
		})
	}
}
