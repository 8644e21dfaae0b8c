package host_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
)

// gives is how many tokens each of some steps gives of a sequence.
func gives(t *testing.T, b *host.Batch, id, steps int) (all []int) {
	t.Helper()
	for range steps {
		tokens, err := b.Step(t.Context())
		require.NoError(t, err)
		n := 0
		for _, got := range tokens {
			if got.Sequence == id {
				n++
			}
		}
		all = append(all, n)
	}
	return all
}

// Where others wait for the end of a launch, the first token of a sequence comes on its own, and launches become longer
// as far as there is time, also while a prompt is read. Where each token is asked for, they have one step.
func TestLaunchesThatEndSoon(t *testing.T) {
	for _, sequences := range []int{1, 2} {
		s := open(t, "")
		if sequences > 1 {
			s = openSequences(t, "", sequences)
		}
		begin := func(within time.Duration) (*host.Batch, int) {
			b := s.NewBatch(host.BatchOptions{Steps: 8, Within: within, Prompt: 2})
			id, _, err := b.Admit([]int{5, 6}, host.SequenceOptions{})
			require.NoError(t, err)
			return b, id
		}
		b, id := begin(0)
		require.Equal(t, []int{8, 8}, gives(t, b, id, 2))
		b, id = begin(time.Hour)
		require.Equal(t, []int{1, 1, 2, 4, 8, 8}, gives(t, b, id, 6))
		if sequences > 1 {
			late, _, err := b.Admit([]int{7, 8, 9, 1, 2, 3}, host.SequenceOptions{})
			require.NoError(t, err)
			require.Equal(t, []int{8, 8, 1, 1, 2, 4}, gives(t, b, id, 6), "two read, and then the late one begins")
			b.Retire(late)
			_, _, err = b.Admit([]int{4}, host.SequenceOptions{Masked: true})
			require.NoError(t, err)
			require.Equal(t, []int{1, 1}, gives(t, b, id, 2))
		}
		if sequences > 1 { // and with hardly any pause
			b = s.NewBatch(host.BatchOptions{Steps: 8, Within: time.Hour, Prompt: 2, Pause: time.Nanosecond})
			id, _, err := b.Admit([]int{5, 6}, host.SequenceOptions{})
			require.NoError(t, err)
			require.Equal(t, []int{1, 1, 2, 4}, gives(t, b, id, 4))
			_, _, err = b.Admit([]int{7, 8, 9, 1, 2, 3}, host.SequenceOptions{})
			require.NoError(t, err)
			require.Equal(t, []int{1, 1, 1, 1, 2, 4}, gives(t, b, id, 6))
		}
		b, id = begin(time.Nanosecond)
		require.Equal(t, []int{1, 1, 1, 1, 1}, gives(t, b, id, 5))
	}
}
