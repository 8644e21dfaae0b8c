package watch

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An execution is allowed each limit, and exceeds it beyond.
func TestExcess(t *testing.T) {
	generous := Limits{Time: time.Hour, Blocked: time.Hour, Memory: 1 << 50}
	e := &execution{time.Now().Add(-time.Minute), processorTime() - 30*time.Second, 0}
	require.Empty(t, e.excess(generous))
	busy, blocked, large := generous, generous, generous
	busy.Time = 20 * time.Second
	require.Contains(t, e.excess(busy), "it runs for 1m0")
	busy.Time = 40 * time.Second
	require.Empty(t, e.excess(busy), "a minute of the clock, but not of the processor")
	blocked.Blocked = 50 * time.Second
	require.Contains(t, e.excess(blocked), "it waits for 1m0")
	large.Memory = 1 << 10
	require.Contains(t, e.excess(large), "MB of memory, and 0 are allowed")
}

// What exceeds a limit ends the process; what has ended is watched no more.
func TestCrash(t *testing.T) {
	if os.Getenv("WATCH_TEST_HANG") != "" {
		limits = Limits{Time: time.Hour, Blocked: 50 * time.Millisecond, Memory: 1 << 40}
		Execution()()
		time.Sleep(200 * time.Millisecond)
		defer Execution()()
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrash$")
	cmd.Env = append(os.Environ(), "WATCH_TEST_HANG=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 2, exit.ExitCode(), "as any panic")
	require.Contains(t, string(out), "panic: input exceeds a limit: it waits for")
	require.Contains(t, string(out), "watch.TestCrash", "the stack of what hangs")
}

// What f waits for is not its own time, and what it works for is.
func TestThread(t *testing.T) {
	require.Less(t, Thread(func() { time.Sleep(300 * time.Millisecond) }), 200*time.Millisecond)
	busy := Thread(func() {
		for start := threadTime(); threadTime()-start < 30*time.Millisecond; {
		}
	})
	require.GreaterOrEqual(t, busy, 30*time.Millisecond)
}
