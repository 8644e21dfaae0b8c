package explore

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/runtime/shape"
)

func TestMain(m *testing.M) {
	if IsWorker() {
		os.Exit(Work(os.Stdin, os.Stdout))
	}
	if args := os.Getenv(recordVariable); args != "" {
		os.Exit(recordHere(args))
	}
	os.Exit(m.Run())
}

// fakeMachine is testdata/fakemachine.c, compiled once.
func fakeMachine(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the machine is a shared library of Linux")
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	library := filepath.Join(t.TempDir(), libraryName)
	out, err := exec.Command(cc, "-x", "c", "-std=gnu11", "-O1", "-w", "-shared", "-fPIC", "-ffp-contract=off", "-o",
		library, filepath.Join("testdata", "fakemachine.c"), "-lm").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return library
}

// A fakeBuild is a build of the fake driver, with objects that nobody compiles.
type fakeBuild struct {
	dir     string
	objects *Objects
	o       Options
}

func newFakeBuild(t *testing.T, settings string, edit func(*host.Facts)) *fakeBuild {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	dir := hosttest.Build(t, settings, edit)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, form := range forms {
		require.NoError(t, os.Mkdir(filepath.Join(dir, form), 0o700))
		for _, e := range entries {
			require.NoError(t, os.Symlink(filepath.Join(dir, e.Name()), filepath.Join(dir, form, e.Name())))
		}
	}
	return &fakeBuild{dir, &Objects{Library: fakeMachine(t), Machine: "machine", Sources: "sources"},
		Options{Build: dir, Schedules: 1, Seed: 1, Workers: 2, Command: []string{exe},
			Jobs: []string{"text", "steps"}}}
}

func (b *fakeBuild) explore(t *testing.T) *Report {
	t.Helper()
	r, err := explored(t.Context(), b.o, b.objects, b.dir, (*explorer).explore)
	require.NoError(t, err)
	return r
}

func (b *fakeBuild) repeat(t *testing.T, s *Script) (*Report, error) {
	return explored(t.Context(), b.o, b.objects, b.dir, func(e *explorer) error { return e.repeat("script.json", s) })
}

// Every job that the fake kernels have agrees with what it is compared with, and leaves something to compare.
func TestJobsAgree(t *testing.T) {
	b := newFakeBuild(t, "eager=1", func(f *host.Facts) {
		hosttest.AddPasses(f, shape.Pass{Rows: 2}, shape.Pass{Rows: 4}, shape.Pass{Sequences: 2},
			shape.Pass{Rows: 2, Sequences: 2})
		f.Prompt = 64
	})
	facts, err := host.ReadFacts(b.dir)
	require.NoError(t, err)
	b.o.Jobs = nil
	for _, j := range Jobs(facts) {
		if j.Name == "reference" || j.Name == "late-epochs" { // no program, and no epochs of this kind
			continue
		}
		b.o.Jobs = append(b.o.Jobs, j.Name)
	}
	b.o.Schedules = 3
	b.o.Seed = seedOf(t, []uint64{3}, []uint64{7, 13, 55}) - 1 // with deviations that do no harm
	r := b.explore(t)
	for _, f := range r.Findings {
		t.Error(f.Job, f.Kind, f.Message)
	}
	require.False(t, r.Stopped)
	require.Len(t, r.Jobs, len(b.o.Jobs))
	for _, j := range r.Jobs {
		want := 3
		if j.Name == "text" {
			want = 1
		}
		require.Equal(t, want, j.Schedules, j.Name)
		require.NotZero(t, j.Choices, j.Name)
		require.Equal(t, 2*j.Choices, j.Counts.Loads)
		if j.Name != "ends" {
			require.NotZero(t, j.Values, j.Name)
		}
	}
	require.Equal(t, []Assumption{{"l2-single-copy", "loads at gpu scope are served by L2", true}}, r.Assumptions)
}

// Each kind of wrong kernel is found by the job that is for it.
func TestWrongKernelsAreFound(t *testing.T) {
	for _, c := range []struct {
		job, settings, kind, text string
		passes                    []shape.Pass
		prompt                    string
	}{
		{job: "steps", settings: "flaky=1", kind: "difference", text: "other bits than in job text"},
		{job: "rows2", settings: "pass_off=1", kind: "difference", text: "other bits than in job text",
			passes: []shape.Pass{{Rows: 2}}},
		{job: "sequences2", settings: "batch_off=1", kind: "difference", text: "other bits than in job text",
			passes: []shape.Pass{{Rows: 1, Sequences: 2}}},
		{job: "sequences2rows2", settings: "mixed_picks=1", kind: "difference", text: "after",
			passes: []shape.Pass{{Rows: 1, Sequences: 2}, {Rows: 2, Sequences: 2}}},
		{job: "prompt-20", prompt: " prompt_lost=4", kind: "difference", text: "token at position 20"},
		{job: "ends", settings: "nan_at=0", kind: "bound", text: "against the plain kernels: position 0"},
		{job: "ends", settings: "nan_at=127", kind: "bound", text: "against the plain kernels: position 127"},
		{job: "steps", settings: "stall_at=2", kind: "stall", text: "waited in vain for an element"},
		{job: "abort", kind: "difference", text: "the host ended a launch at step 100 of the machine, and it went on"},
	} {
		t.Run(c.job+" "+c.kind, func(t *testing.T) {
			b := newFakeBuild(t, c.settings, func(f *host.Facts) {
				hosttest.AddPasses(f, c.passes...)
				if c.prompt != "" {
					f.Prompt = 64
				}
			})
			if c.prompt != "" {
				hosttest.Write(t, b.dir, host.PromptFile, []byte("FAKE prompt=64"+c.prompt+" \x00"))
			}
			b.o.Jobs = []string{"text", c.job}
			if c.kind == "stall" {
				b.o.Jobs = b.o.Jobs[1:]
			}
			if c.job == abortJob {
				b.o.Schedules = 2
			}
			r := b.explore(t)
			require.NotEmpty(t, r.Findings)
			f := r.Findings[len(r.Findings)-1]
			require.Equal(t, c.job, f.Job)
			require.Equal(t, c.kind, f.Kind)
			require.Contains(t, f.Message, c.text)
			require.Equal(t, codeFound.ID, f.Diagnostic().Code)
		})
	}
}

// seedOf is a seed of a random schedule of the fake machine whose deviations have some choices, and lack others.
func seedOf(t *testing.T, with, without []uint64) uint64 {
	t.Helper()
	for seed := uint64(2); seed < 500; seed += 2 {
		good := true
		for _, i := range with {
			good = good && takes(seed, i)
		}
		for _, i := range without {
			good = good && !takes(seed, i)
		}
		if good {
			return seed
		}
	}
	t.Fatal("no seed is like that")
	return 0
}

// takes is what the fake machine draws.
func takes(seed, index uint64) bool {
	x := seed*0x9E3779B97F4A7C15 + index*0xBF58476D1CE4E5B9
	x = (x ^ x>>29) * 0x94D049BB133111EB
	return (x^x>>32)%4 == 0
}

// A race that two deviations out of many cause is cut down to these two, and its script repeats it.
func TestScriptOfARace(t *testing.T) {
	b := newFakeBuild(t, "", nil)
	b.o.Jobs = []string{"steps"}
	b.o.Schedules, b.o.Seed = 2, seedOf(t, []uint64{7, 31}, []uint64{13, 55})-1 // the second schedule has it
	r := b.explore(t)
	require.Len(t, r.Findings, 1)
	f := r.Findings[0]
	require.Equal(t, "race", f.Kind)
	require.Equal(t, 1, f.Runs)
	require.True(t, f.Repeats)
	require.Equal(t, Replay, f.Script.Schedule.Strategy)
	require.Equal(t, [][2]uint64{{7, 1}, {31, 1}}, f.Script.Schedule.Deviations)
	require.Equal(t, 1, r.Jobs[0].Findings)
	d := f.Diagnostic()
	require.Contains(t, d.Related, "amk/exchange.cuh:70: SM 1, thread 3")
	require.Contains(t, d.Related, "megakernel.fatbin+0x10: SM 2, thread 5")

	file := filepath.Join(t.TempDir(), "script.json")
	require.NoError(t, f.Script.Write(file))
	s, err := ReadScript(file)
	require.NoError(t, err)
	require.Equal(t, f.Script, s)
	again, err := b.repeat(t, s)
	require.NoError(t, err)
	require.Len(t, again.Findings, 1)
	require.Equal(t, f.key(), again.Findings[0].key())
	require.Nil(t, again.Findings[0].Script)

	other := *s
	other.Build = "another"
	_, err = b.repeat(t, &other)
	require.ErrorContains(t, err, "is of another build")
	other = *s
	other.Machine = "another"
	_, err = b.repeat(t, &other)
	require.ErrorContains(t, err, "another C++ compiler")
	other = *s
	other.Job = "dance"
	_, err = b.repeat(t, &other)
	require.ErrorContains(t, err, `job "dance"`)
}

// Results that one deviation changes are a difference from the first schedule, also when the script is replayed.
func TestScriptOfADifference(t *testing.T) {
	b := newFakeBuild(t, "", nil)
	b.o.Schedules, b.o.Seed = 2, seedOf(t, []uint64{13}, []uint64{7, 55})-1
	r := b.explore(t)
	require.Len(t, r.Findings, 1)
	f := r.Findings[0]
	require.Equal(t, "difference", f.Kind)
	require.Equal(t, [][2]uint64{{13, 1}}, f.Script.Schedule.Deviations)
	again, err := b.repeat(t, f.Script)
	require.NoError(t, err)
	require.Len(t, again.Findings, 1)
	require.Equal(t, f.key(), again.Findings[0].key())
}

// A stall is told in the words of its records.
func TestScriptOfAStall(t *testing.T) {
	b := newFakeBuild(t, "", nil)
	b.o.Jobs = []string{"steps"}
	b.o.Schedules, b.o.Seed = 2, seedOf(t, []uint64{55}, []uint64{7, 13})-1
	r := b.explore(t)
	require.Len(t, r.Findings, 1)
	require.Equal(t, "stall", r.Findings[0].Kind)
	require.Contains(t, r.Findings[0].Message, "waited in vain for an element of the vector it reads")
	require.Equal(t, [][2]uint64{{55, 1}}, r.Findings[0].Script.Schedule.Deviations)
}

// A kernel that takes its process down is a finding, with what the process said; its seed repeats it, and what comes
// after it is run all the same.
func TestCrashIsAFinding(t *testing.T) {
	b := newFakeBuild(t, "", nil)
	b.o.Jobs = []string{"steps"}
	b.o.Schedules, b.o.Seed = 3, 665
	r := b.explore(t)
	require.Len(t, r.Findings, 1)
	f := r.Findings[0]
	require.Equal(t, "crash", f.Kind)
	require.True(t, f.Repeats)
	require.Equal(t, Random, f.Script.Schedule.Strategy)
	require.Equal(t, uint64(666), f.Script.Schedule.Seed)
	require.NotEmpty(t, f.Output)
	require.Contains(t, f.Output[0], "on fire")
	require.Equal(t, 3, r.Jobs[0].Schedules)
	list := diag.List{f.Diagnostic()}
	require.NotContains(t, list.Error(), "\x1b")
}

// A kernel that neither ends nor waits is killed, and so is one that is running when the time is over.
func TestHangIsAFinding(t *testing.T) {
	b := newFakeBuild(t, "", nil)
	p, err := startProcess(t.Context(), b.o.Command, "{}", setup{Library: b.objects.Library, Dir: b.dir, Build: b.dir})
	require.NoError(t, err)
	hangs := &order{Job: "steps", Schedule: Schedule{Strategy: Random, Seed: 667}}
	outcome, alive, err := p.carryOut(t.Context(), hangs, 50*time.Millisecond, time.Time{})
	require.NoError(t, err)
	require.False(t, alive)
	require.Len(t, outcome.Findings, 1)
	require.Equal(t, "hang", outcome.Findings[0].Kind)

	p, err = startProcess(t.Context(), b.o.Command, "{}", setup{Library: b.objects.Library, Dir: b.dir, Build: b.dir})
	require.NoError(t, err)
	_, alive, err = p.carryOut(t.Context(), hangs, time.Hour, time.Now().Add(50*time.Millisecond))
	require.ErrorIs(t, err, errCut)
	require.False(t, alive)
}

// A loop that has used its processor time is a hang, however slow the machine is; processes have a time.
func TestProcessorTime(t *testing.T) {
	begin := processorTime(os.Getpid())
	for processorTime(os.Getpid()) < begin+20*time.Millisecond {
	}
	require.Zero(t, processorTime(-1))
}

func TestExploreRefuses(t *testing.T) {
	b := newFakeBuild(t, "", nil)
	for text, edit := range map[string]func(o *Options){
		`"stepss" is not one of this build; did you mean steps?`: func(o *Options) { o.Jobs = []string{"stepss"} },
		`"magic" is not known`:  func(o *Options) { o.Assume = map[string]bool{"magic": false} },
		"there is no such seed": func(o *Options) { o.Schedules, o.Seed = 2, 98 },
		"cannot be started":     func(o *Options) { o.Command = []string{filepath.Join(b.dir, "none")} },
		"it ended at once":      func(o *Options) { o.Command = []string{"/bin/false"} },
	} {
		o := b.o
		edit(&o)
		_, err := explored(t.Context(), o, b.objects, b.dir, (*explorer).explore)
		require.ErrorContains(t, err, text)
	}
	broken := *b.objects
	broken.Library = filepath.Join(b.dir, "none.so")
	_, err := explored(t.Context(), b.o, &broken, b.dir, (*explorer).explore)
	require.ErrorContains(t, err, "cannot be used")
}

// A time that is over ends exploring, between runs and in the middle of one, and the report says so.
func TestTimeEndsExploring(t *testing.T) {
	b := newFakeBuild(t, "", nil)
	b.o.Time = 1
	r := b.explore(t)
	require.True(t, r.Stopped)
	require.Empty(t, r.Findings)
	for _, j := range r.Jobs {
		require.Zero(t, j.Schedules+j.Cut, j.Name)
	}

	b.o.Time = time.Second
	r, err := b.repeat(t, &Script{Build: r.Build, Machine: r.Machine, Job: "steps",
		Schedule: Schedule{Strategy: Random, Seed: 667}})
	require.NoError(t, err)
	require.True(t, r.Stopped)
	require.Empty(t, r.Findings)
	require.Len(t, r.Jobs, 1)
	require.Zero(t, r.Jobs[0].Schedules)
	require.Equal(t, 1, r.Jobs[0].Cut)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = explored(ctx, b.o, b.objects, b.dir, (*explorer).explore)
	require.ErrorIs(t, err, context.Canceled)
}

func TestReadScriptRefuses(t *testing.T) {
	good := Script{Format: 1, Build: "b", Machine: "m", Job: "steps",
		Schedule: Schedule{Strategy: Replay, Deviations: [][2]uint64{{3, 1}, {9, 2}}}}
	file := filepath.Join(t.TempDir(), "script.json")
	_, err := ReadScript(file)
	require.ErrorContains(t, err, "cannot be read")
	for text, edit := range map[string]func(s *Script){
		"has format 2":       func(s *Script) { s.Format = 2 },
		"has strategy \"x\"": func(s *Script) { s.Schedule.Strategy = "x" },
		"lists deviations":   func(s *Script) { s.Schedule.Strategy = PCT },
		"ascending order":    func(s *Script) { s.Schedule.Deviations = [][2]uint64{{9, 1}, {9, 1}} },
		"another value than": func(s *Script) { s.Schedule.Deviations = [][2]uint64{{9, 0}} },
		"abort word":         func(s *Script) { s.Schedule.HostStores = []HostStore{{PointerAt: 8}} },
	} {
		s := good
		edit(&s)
		require.NoError(t, s.Write(file))
		_, err := ReadScript(file)
		require.ErrorContains(t, err, text)
		var d *diag.Diagnostic
		require.ErrorAs(t, err, &d)
		require.Equal(t, codeScript.ID, d.Code)
	}
	for _, text := range []string{"", "{", `{"format":"x"}`, `[1]`, strings.Repeat("[", 1000)} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := ReadScript(file)
		var d *diag.Diagnostic
		require.ErrorAs(t, err, &d, text)
		require.Equal(t, codeScript.ID, d.Code)
	}
}
