package progress

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clock is a time that a test moves on.
type clock struct{ t time.Time }

func (c *clock) now() time.Time       { return c.t }
func (c *clock) pass(d time.Duration) { c.t = c.t.Add(d) }
func onScreen(b *strings.Builder) string {
	return b.String()[strings.LastIndex(b.String(), "\x1b[K")+3:]
}

func watched(width int) (*Line, *strings.Builder, *clock) {
	b, c := &strings.Builder{}, &clock{time.Unix(1000, 0)}
	return &Line{w: b, width: func() int { return width }, now: c.now}, b, c
}

func TestLine(t *testing.T) {
	l, b, c := watched(80)
	step := Step{Activity: "packing weights", Total: 8 << 30, Unit: Bytes}
	l.Show(step)
	require.Equal(t, "packing weights: 0 %", onScreen(b))
	c.pass(500 * time.Millisecond)
	step.Done = 1 << 30
	l.Show(step)
	require.Equal(t, "packing weights: 12 %", onScreen(b), "too early for a rate")
	c.pass(50 * time.Millisecond)
	l.Show(Step{Activity: "packing weights", Done: 3 << 30, Total: 8 << 30, Unit: Bytes})
	require.Equal(t, "packing weights: 12 %", onScreen(b), "just written")
	c.pass(1450 * time.Millisecond)
	l.ReportBytes("packing weights", 2<<30, 8<<30)
	require.Equal(t, "packing weights: 25 %, 1 GiB/s, 6 s left", onScreen(b))
	step = Step{Activity: "decoding", Done: 3, Total: 64, Unit: "tokens"}
	l.Show(step)
	require.Equal(t, "decoding: 3 of 64 tokens", onScreen(b),
		"another activity is shown at once, with a rate of its own")
	c.pass(4 * time.Second)
	step.Done = 4
	l.Show(step)
	require.Equal(t, "decoding: 4 of 64 tokens, 0.25 tokens/s, 4 min 00 s left", onScreen(b))
	l.Report("nvcc", 0, 0)
	require.Equal(t, "nvcc", onScreen(b))
	l.Clear()
	require.True(t, strings.HasSuffix(b.String(), "\r\x1b[K"))
	written := b.Len()
	l.Clear()
	require.Equal(t, written, b.Len(), "nothing is left to clear")
	require.NotContains(t, b.String(), "\n")
}

// A line never wraps, and a name cannot move the cursor.
func TestLineStaysOneLine(t *testing.T) {
	l, b, _ := watched(20)
	l.Report("verifying \x1b[2J\na/long/directory", 1, 2)
	require.Equal(t, `verifying \u001b[2J`, onScreen(b))
	for _, width := range []int{0, 1, 2} {
		l, b, _ := watched(width)
		l.Report("verifying", 0, 0)
		require.LessOrEqual(t, len(onScreen(b)), max(0, width-1))
	}
}

func TestNothingIsShownElsewhere(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/f")
	require.NoError(t, err)
	defer f.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	for _, l := range []*Line{New(f), New(null), New(&strings.Builder{}), {}} {
		l.Report("packing", 1, 2)
		l.Clear()
		require.Nil(t, l.w)
	}
	require.False(t, Colourful(f))
	info, err := f.Stat()
	require.NoError(t, err)
	require.Zero(t, info.Size())
	Func(nil).Report(Step{})
}

func TestDurations(t *testing.T) {
	for seconds, want := range map[float64]string{0.1: "1 s", 59.5: "1 min 00 s", 61: "1 min 01 s",
		3599.5: "1 h 00 min", 7321: "2 h 02 min", 1e300: "277777 h 46 min"} {
		require.Equal(t, want, duration(seconds))
	}
}
