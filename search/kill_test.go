//go:build unix

package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The environment of a child that carries a campaign on: its directory, how many trials it is to have, and at which
// event it kills itself; 0: at none, and then it takes a millisecond for an evaluation.
const (
	childDir    = "AMKC_TEST_CAMPAIGN"
	childTrials = "AMKC_TEST_TRIALS"
	childKill   = "AMKC_TEST_KILL"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		carryOn(dir)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// deadline kills the process at an event. Events are the beginning of an evaluation, of a line, its middle, its end
// before it is synced, and after.
type deadline struct{ left int }

func (d *deadline) event() {
	if d.left--; d.left == 0 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// fatal is a file in whose writing a process may be killed.
type fatal struct {
	appender
	*deadline
}

func (f fatal) Write(line []byte) (int, error) {
	f.event()
	half, err := f.appender.Write(line[:len(line)/2])
	if err != nil {
		return half, err
	}
	f.event()
	n, err := f.appender.Write(line[len(line)/2:])
	f.event()
	return half + n, err
}

func (f fatal) Sync() error {
	err := f.appender.Sync()
	f.event()
	return err
}

func carryOn(dir string) {
	number := func(name string) int {
		n, err := strconv.Atoi(os.Getenv(name))
		if err != nil {
			panic(err)
		}
		return n
	}
	j, err := OpenJournal(dir)
	if err != nil {
		panic(err)
	}
	r, at := toyRunner(j, number(childTrials)), &deadline{number(childKill)}
	if at.left > 0 {
		j.out = fatal{j.out, at}
	} else {
		r.Builds, r.Judges = 4, 4 // several at a time come to the same
	}
	r.Evaluate = func(_ context.Context, job *Job) (*Verdict, error) {
		if at.event(); number(childKill) == 0 {
			time.Sleep(time.Millisecond)
		}
		return toyVerdict(j.Campaign, job), nil
	}
	if _, err := r.Run(context.Background(), j); err != nil {
		panic(err)
	}
}

func child(t *testing.T, dir string, trials, kill int) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), childDir+"="+dir, fmt.Sprintf("%s=%d", childTrials, trials),
		fmt.Sprintf("%s=%d", childKill, kill))
	return cmd
}

func trialsOf(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, trialsName))
	require.NoError(t, err)
	return string(text)
}

// A campaign that is killed wherever it may be comes to the same trials as one that runs in one piece: to the byte.
func TestKilledAnywhere(t *testing.T) {
	const trials = 40
	whole := t.TempDir()
	require.NoError(t, Create(whole, toyCampaign(toySpace().Cold())))
	require.NoError(t, child(t, whole, trials, 0).Run())
	want := trialsOf(t, whole)

	// at events of every kind, one child after the other
	killed, kinds := 0, map[int]int{}
	dir := t.TempDir()
	require.NoError(t, Create(dir, toyCampaign(toySpace().Cold())))
	for n := 0; ; n++ {
		require.Less(t, n, 20*trials)
		after := []int{1, 2, 3, 4, 5, 7, 13, 24}[n%8]
		err := child(t, dir, trials, after).Run()
		if err == nil {
			break
		}
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
		killed++
		kinds[after%5]++
	}
	require.Equal(t, want, trialsOf(t, dir))
	require.Greater(t, killed, 20)
	require.Len(t, kinds, 5)

	// from outside, at any time
	dir = t.TempDir()
	require.NoError(t, Create(dir, toyCampaign(toySpace().Cold())))
	r := rand.New(rand.NewPCG(1, 1))
	for killed := 0; ; {
		cmd := child(t, dir, trials, 0)
		require.NoError(t, cmd.Start())
		if killed < 25 {
			time.Sleep(time.Duration(10+r.IntN(60)) * time.Millisecond)
			cmd.Process.Kill()
		}
		if cmd.Wait() == nil {
			break
		}
		killed++
	}
	require.Equal(t, want, trialsOf(t, dir))
	_, err := Verify(dir, toyPublic)
	require.NoError(t, err)
}

func TestOneProcessAtATime(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, Create(dir, toyCampaign(nil)))
	j, err := OpenJournal(dir)
	require.NoError(t, err)
	_, err = OpenJournal(dir)
	require.ErrorContains(t, err, "another process works on this campaign")
	require.NoError(t, j.Close())
	j, err = OpenJournal(dir)
	require.NoError(t, err)
	require.NoError(t, j.Close())
	require.ErrorContains(t, Create(dir, toyCampaign(nil)), "is there already")
}
