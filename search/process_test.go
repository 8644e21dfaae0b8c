//go:build unix

package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
	"amkc/knobs"
)

func workerOf(c *Campaign, script string, args ...string) *Worker {
	return &Worker{Campaign: c, Key: toyKey, Limit: time.Minute,
		Command: func(*Job, bool) ([]string, func(), error) {
			return append([]string{"/bin/sh", "-c", script, "sh"}, args...), func() {}, nil
		}}
}

func finalJob() *Job {
	return &Job{Role: RoleCandidate, Rung: Final, Settings: knobs.Settings{"tiling.ring.pace": "600"},
		Against: knobs.Settings{}}
}

func TestVerdictsOfProcesses(t *testing.T) {
	c, j := toyCampaign(knobs.Settings{}), finalJob()
	want := toyVerdict(c, j)
	text, err := json.Marshal(map[string]any{"schema": "amkc.eval/1", "verdict": want})
	require.NoError(t, err)
	got, err := workerOf(c, `printf %s "$1"`, string(text)).Evaluate(t.Context(), j)
	require.NoError(t, err)
	require.Equal(t, marshalled(t, want), marshalled(t, got))
	got, err = workerOf(c, `printf %s "$1"; exit 1`, string(text)).Evaluate(t.Context(), j)
	require.NoError(t, err, "what is not PASS ends with 1")
	require.Equal(t, Pass, got.Class)

	forged := strings.Replace(string(text), `"rung":"final"`, `"rung":"screen"`, 1)
	_, err = workerOf(c, `printf %s "$1"`, forged).Evaluate(t.Context(), j)
	require.ErrorContains(t, err, "something in it was changed")
	_, err = workerOf(c,
		`echo '{"errors":[{"code":"AMK5905","severity":"error","pos":"x","message":"no GPU"}]}'; exit 2`).
		Evaluate(t.Context(), j)
	require.ErrorContains(t, err, "no GPU", "what no configuration is to blame for ends the search")
}

// The last thing that a process says is what counts, however much it has said before.
func TestTheLastWordsAreKept(t *testing.T) {
	c, j := toyCampaign(knobs.Settings{}), finalJob()
	v, err := workerOf(c, `i=0; while [ $i -lt 3000 ]; do echo "line $i of a story that nobody reads to its end" >&2
i=$((i+1)); done; echo 'CUDA error 719' >&2; exit 3`).Evaluate(t.Context(), j)
	require.NoError(t, err)
	require.Equal(t, Crash, v.Class)
	require.Contains(t, v.Reason.Msg, "CUDA error 719")

	kept := &trailing{most: 10}
	for _, p := range []string{"", "one", "a line longer than what is kept", "two", "three", "4567"} {
		n, err := kept.Write([]byte(p))
		require.NoError(t, err)
		require.Len(t, p, n)
	}
	require.Equal(t, "othree4567"[len("othree4567")-10:], kept.String())
}

// A process that crashes or says something else is a verdict, and so is one that hangs.
func TestProcessesThatFail(t *testing.T) {
	c, j := toyCampaign(knobs.Settings{}), finalJob()
	for script, want := range map[string]string{
		"echo first >&2; echo 'CUDA error 700' >&2; exit 3": "exit status 3: CUDA error 700",
		"kill -SEGV $$": "segmentation fault",
		"echo hello":    "printed no verdict",
		`echo '{"verdict":{"schema":"amkc.verdict/1"}}'`: "printed no verdict",
		"echo '\033[2J' >&2; exit 1":                     `\x1b[2J`,
		"head -c 40000000 /dev/zero; exit 1":             "exit status 1",
	} {
		v, err := workerOf(c, script).Evaluate(t.Context(), j)
		require.NoError(t, err, script)
		require.Equal(t, Crash, v.Class, script)
		require.Equal(t, "AMK6011", v.Reason.Code)
		require.NotContains(t, v.Reason.Msg, "\x1b")
		if !strings.Contains(script, "2J") {
			require.Contains(t, v.Reason.Msg, want)
		}
		require.NoError(t, toyPublic.Check(v))
		require.NoError(t, c.verdictFor(j, v))
	}
}

// What hangs is killed with all that it has started, and does not hold up the next.
func TestProcessesThatHang(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	script := `trap '' TERM; sleep 1000 & echo $! > "$1"; echo $$ >> "$1"; while :; do sleep 1000; done`
	var text []byte
	for limit := 200 * time.Millisecond; bytes.Count(text, []byte("\n")) < 2; limit *= 2 { // until both begin in it
		p := Process{Args: []string{"/bin/sh", "-c", script, "sh", pids}, Limit: limit, Grace: 200 * time.Millisecond}
		_, _, err := p.Run(t.Context())
		require.ErrorIs(t, err, ErrKilled)
		text, _ = os.ReadFile(pids)
	}
	for line := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(line)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return !alive(pid) }, time.Minute, 10*time.Millisecond, "%d is alive",
			pid)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("enough")) })
	_, _, err := (&Process{Args: []string{"sleep", "1000"}, Limit: time.Minute, Grace: time.Second}).Run(ctx)
	require.EqualError(t, err, "enough")
}

// alive reports whether a process runs: one that is dead and not yet waited for does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || !strings.Contains(string(text), ") Z ")
}

func TestHungTrialsAreTrials(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	w := workerOf(c, "sleep 1000")
	w.Limit = -9900 * time.Millisecond // of the ten seconds that a process is given to end on its own
	v, err := w.Evaluate(t.Context(), finalJob())
	require.NoError(t, err)
	require.Equal(t, Timeout, v.Class)
	require.Equal(t, "AMK6012", v.Reason.Code)
}

// Where a machine is taken away, the process on it ends without a word and is begun again, so often and no more.
func TestMachinesThatAreTakenAway(t *testing.T) {
	c, j := toyCampaign(knobs.Settings{}), finalJob()
	text, err := json.Marshal(map[string]any{"verdict": toyVerdict(c, j)})
	require.NoError(t, err)
	calls := filepath.Join(t.TempDir(), "calls")
	w := workerOf(c, `echo >> "$2"; [ "$(wc -l < "$2")" -eq 3 ] && printf %s "$1"`, string(text), calls)
	for attempts, want := range map[int]Class{3: Pass, 2: Crash} {
		require.NoError(t, os.WriteFile(calls, nil, 0o644))
		w.Attempts = attempts
		v, err := w.Evaluate(t.Context(), j)
		require.NoError(t, err)
		require.Equal(t, want, v.Class)
	}
	w = workerOf(c, `echo >> "$1"; printf %s "$2"; exit 2`, calls,
		`{"errors":[{"code":"AMK5905","severity":"error","message":"no GPU"}]}`)
	w.Attempts = 3
	require.NoError(t, os.WriteFile(calls, nil, 0o644))
	_, err = w.Evaluate(t.Context(), j)
	require.ErrorContains(t, err, "no GPU")
	said, err := os.ReadFile(calls)
	require.NoError(t, err)
	require.Len(t, said, 1, "what says why it fails is not asked again")
}

// A verdict that was written and read is the one that was signed, whatever a process has said.
func TestSignaturesOfWhateverWasSaid(t *testing.T) {
	c, j := toyCampaign(knobs.Settings{}), finalJob()
	for _, script := range []string{
		`i=0; while [ $i -lt 300 ]; do printf 'é' >&2; i=$((i+1)); done; exit 1`, // cut at 500 bytes
		`printf 'x' >&2; i=0; while [ $i -lt 300 ]; do printf 'é' >&2; i=$((i+1)); done; exit 1`,
		`printf 'a\377b' >&2; exit 1`,
	} {
		v, err := workerOf(c, script).Evaluate(t.Context(), j)
		require.NoError(t, err)
		require.True(t, utf8.ValidString(v.Reason.Msg), script)
		text, err := json.Marshal(v)
		require.NoError(t, err)
		again, err := ParseVerdict(text, "v")
		require.NoError(t, err)
		require.NoError(t, toyPublic.Check(again), script)
	}
	v := toyVerdict(c, j)
	v.Why = "half of a character: \xc3"
	toyKey.Sign(v)
	text, err := json.Marshal(v)
	require.NoError(t, err)
	again, err := ParseVerdict(text, "v")
	require.NoError(t, err)
	require.NoError(t, toyPublic.Check(again))
}

// A build that takes too long says nothing of its configuration, no matter who ends it.
func TestSlowBuildsAreRefused(t *testing.T) {
	c, j := toyCampaign(knobs.Settings{}), finalJob()
	w := workerOf(c, "sleep 1000")
	w.Builds = -9900 * time.Millisecond // of the ten seconds that a process is given to end on its own
	v, err := w.Build(t.Context(), j)
	require.NoError(t, err)
	require.Equal(t, Rejected, v.Class)
	require.Equal(t, "AMK6017", v.Reason.Code)

	late := toyVerdict(c, j)
	late.Class, late.Timing, late.At, late.Ratio = Timeout, nil, nil, Interval{}
	late.Reason = diag.Errorf(codeKilled, "eval", "it took too long")
	c.Rules.Decide(late)
	toyKey.Sign(late)
	text, err := json.Marshal(map[string]any{"verdict": late})
	require.NoError(t, err)
	w = workerOf(c, `printf %s "$1"; exit 1`, string(text))
	v, err = w.Build(t.Context(), j)
	require.NoError(t, err)
	require.Equal(t, "AMK6017", v.Reason.Code)
	require.NoError(t, toyPublic.Check(v))
	v, err = w.Evaluate(t.Context(), j)
	require.NoError(t, err)
	require.Equal(t, Timeout, v.Class, "an evaluation that takes too long is another matter")
}

// A value of which builds take too long is left after three, and not if it was ever built in time. A build that was
// refused before it began took no time, and retires nothing, neither what it was refused for nor what was alongside
// that.
func TestSlowBuildsRetireValues(t *testing.T) {
	c := toyCampaign(knobs.Settings{})
	ended := diag.Errorf(codeSlowBuild, "eval", "it took too long")
	slow := func(value, other knobs.Value, reason *diag.Diagnostic) *Trial {
		j := &Job{Role: RoleCandidate, Rung: Screen, Against: c.Start,
			Settings: knobs.Settings{"tiling.ring.pace": value, "pipelining_depth": other}}
		v := toyVerdict(c, j)
		v.Class, v.Timing, v.At, v.Ratio = Rejected, nil, nil, Interval{}
		v.Reason = reason
		c.Rules.Decide(v)
		return &Trial{Job: *j, Verdict: v}
	}
	s := NewState(c)
	for _, other := range []knobs.Value{"4", "5", "6"} {
		s.Apply(slow("200", other, ended))
	}
	require.Equal(t, "REJECTED AMK6017", s.retired["tiling.ring.pace=200"])
	require.Len(t, s.retired, 1)

	s = NewState(c)
	j := &Job{Role: RoleCandidate, Rung: Screen, Against: c.Start,
		Settings: knobs.Settings{"tiling.ring.pace": "200"}}
	for _, other := range []knobs.Value{"4", "5", "6"} {
		s.Apply(slow("200", other, ended))
	}
	s.Apply(&Trial{Job: *j, Verdict: toyVerdict(c, j)})
	require.Empty(t, s.retired)
	for _, other := range []knobs.Value{"1", "2", "8"} {
		s.Apply(slow("200", other, ended))
	}
	require.Empty(t, s.retired)

	s = NewState(c)
	refused := &diag.Diagnostic{Code: "AMK5115", Severity: diag.Error, Msg: "nvcc would take minutes"}
	for _, other := range []knobs.Value{"4", "5", "6"} {
		s.Apply(slow("200", other, refused))
	}
	require.Empty(t, s.retired)
	require.Empty(t, s.crashes)
}
