package serve

import (
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/bench/clients"
)

// 32 clients at a time, some of which go away or send invalid requests, of an engine of one sequence and of one of
// four: every answer is the one that the request has alone, nothing is lost, and nothing is left over. The queue of the
// first is full now and then. AMKC_LONG sends two thousand requests, with longer prompts.
func TestManyClients(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	plan := clients.Plan{Requests: 48, Clients: 32, Seed: 9, Prompt: 7, Tokens: 7}
	if os.Getenv("AMKC_LONG") != "" {
		plan.Requests, plan.Prompt = 2000, 60
	}
	want, err := clients.Alone(t.Context(), serve(t, NewSingle(newVM(t), limits, 4)).url, plan)
	require.NoError(t, err)
	t.Run("one sequence", func(t *testing.T) { manyClients(t, NewSingle(newVM(t), limits, 4), 24, plan, want) })
	batch := newBatch(t, 4)
	t.Run("four sequences", func(t *testing.T) { manyClients(t, batch, 128, plan, want) })
	require.Zero(t, batch.taken(), "regions of the cache")
}

func manyClients(t *testing.T, e Engine, queue int, plan clients.Plan, want []clients.Answer) {
	s := newTest(e, func(c *Config) {
		c.Queue = queue
		c.Log = slog.New(slog.DiscardHandler) // a line for each refusal would be kept
	}).start(t)
	few := plan
	few.Requests, few.Clients = 4, 2
	_, err := clients.Ask(t.Context(), s.url, few, want) // what is made once is there
	require.NoError(t, err)
	held := clients.Hold()
	r, err := clients.Ask(t.Context(), s.url, plan, want)
	require.NoError(t, err)
	require.Empty(t, r.Findings)
	now, left := held.Left()
	require.Empty(t, left)
	t.Logf("%+v; %+v, and before %+v", *r, now, held)
}

// An answer that differs is found, and so are requests that the server has lost.
func TestManyClientsFindWhatIsWrong(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	s := serve(t, newScripted(hashed))
	plan := clients.Plan{Requests: 60, Clients: 3, Seed: 1, Prompt: 7, Tokens: 7}
	want, err := clients.Alone(t.Context(), s.url, plan)
	require.NoError(t, err)
	r, err := clients.Ask(t.Context(), s.url, plan, want)
	require.NoError(t, err)
	require.Empty(t, r.Findings)
	for i := range want {
		want[i].Text += "!"
	}
	r, err = clients.Ask(t.Context(), s.url, plan, want)
	require.NoError(t, err)
	require.Len(t, r.Findings, 1)
	require.Contains(t, r.Findings[0], "answers are not those of the request alone")
	require.Equal(t, r.Answered, r.Differing)

	held := clients.Hold()
	kept := make([]byte, 8<<20)
	_, left := held.Left()
	require.Contains(t, left, "the heap has grown")
	require.Len(t, kept, 8<<20)
}
