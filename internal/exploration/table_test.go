package exploration

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/explore"
)

var (
	schedules = flag.Int("schedules", 0, "run each job of builds under `N` schedules; 0: none, and 2 in the gate")
	all       = flag.Bool("all-jobs", false, "run all jobs of each build, and not those of the table alone")
	product   = flag.Bool("product", false, "builds of each model, for each architecture, in each dtype")
	only      = flag.String("build", "", "the build of this name alone")
	piece     = flag.String("piece", "", "explore piece `K/N` of the builds alone")
	report    = flag.String("report", "", "directory to write explore.md and explore.json to")
)

// inGate is the value of a flag, or another in make explore if the flag is not given. make explore sets a variable and
// gives no flags: then go test reuses the results of tests for which nothing has changed.
func inGate(flag *int, otherwise int) int {
	if *flag == 0 && os.Getenv("AMKC_EXPLORE") != "" {
		return otherwise
	}
	return *flag
}

func TestMain(m *testing.M) {
	if explore.IsWorker() {
		os.Exit(explore.Work(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// selection says which numbers are in a piece: in "2/8" every eighth, from the second on.
func selection(t *testing.T, piece string) func(i int) bool {
	t.Helper()
	if piece == "" {
		return func(int) bool { return true }
	}
	var k, n int
	_, err := fmt.Sscanf(piece, "%d/%d", &k, &n)
	require.NoError(t, err, "-piece %q; want K/N", piece)
	require.True(t, 1 <= k && k <= n, "-piece %q; want K/N with K from 1 to N", piece)
	return func(i int) bool { return i%n == k-1 }
}

// Pieces are apart, and together they are all builds.
func TestSelection(t *testing.T) {
	for i := range 20 {
		in := 0
		for _, piece := range []string{"1/3", "2/3", "3/3"} {
			if selection(t, piece)(i) {
				in++
			}
		}
		require.Equal(t, 1, in)
		require.True(t, selection(t, "")(i))
	}
}

// Nothing goes wrong with a build under any schedule.
func TestTable(t *testing.T) {
	perJob := inGate(schedules, 2)
	if perJob == 0 {
		t.Skip("make explore runs it")
	}
	cache, err := compiler.CacheDir()
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "amkc-exploration-")
	require.NoError(t, err)
	builds := Builds()
	if *product {
		builds = Product()
	}
	if slices.ContainsFunc(ExactBuilds(), func(e Exact) bool { return e.Name() == *only }) {
		t.Skip("TestExact runs it")
	}
	which := selection(t, *piece)
	wanted := func(i int, b Build) bool { return which(i) && (*only == "" || b.Name() == *only) }
	before := children(t)
	fmt.Print(heading)
	rows, err := Run(t.Context(), Options{Root: root, Cache: cache, Dir: dir, Schedules: perJob, All: *all,
		Wanted: wanted, Command: []string{exe}, Done: func(r *Row) {
			fmt.Print(r.line())
			for _, f := range r.Findings {
				fmt.Printf("%s\n", f.Diagnostic())
			}
		}}, builds)
	require.NoError(t, err)
	require.NotEmpty(t, rows, "no build is called %q, or is in piece %q", *only, *piece)
	sum := total(rows)
	fmt.Printf("%d builds: %d schedules, %d launches, %d steps, %d choices, %d objects compiled, %d findings, %.0f s "+
		"of processor time\n", len(rows), sum.Schedules, sum.Launches, sum.Steps, sum.Choices, sum.Compiled,
		len(sum.Findings), children(t)-before)
	if len(sum.Findings) > 0 { // the directory of temporary files may be removed
		kept := filepath.Join(root, "dist", "exploration")
		require.NoError(t, os.RemoveAll(kept))
		require.NoError(t, os.CopyFS(kept, os.DirFS(dir)))
		require.NoError(t, os.RemoveAll(dir))
		dir = kept
	}
	require.Empty(t, sum.Findings, "builds and scripts are in %s: amkc explore BUILD --replay SCRIPT shows each again",
		dir)
	require.NoError(t, os.RemoveAll(dir))
	if *report != "" { // of a run that passes, and no other
		writeReport(t, rows, children(t)-before)
	}
}

func writeReport(t *testing.T, rows []*Row, seconds float64) {
	t.Helper()
	r := &Report{Command: "make explore REPORT=1", Host: processor(t), Compiler: rows[0].Compiler,
		Processor: seconds, Schedule: scheduleSeconds(t), Rows: rows}
	text, err := json.MarshalIndent(r, "", " ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(*report, "explore.json"), append(text, '\n'), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(*report, "explore.md"), []byte(r.Markdown()), 0o644))
}

// scheduleSeconds is the processor time of one schedule of job launch of the first build of the table: of the 20 that a
// second run has more than the first.
func scheduleSeconds(t *testing.T) float64 {
	t.Helper()
	o := exactOptions(t)
	dir, err := Builds()[0].Compile(t.Context(), root, t.TempDir())
	require.NoError(t, err)
	var took [2]float64
	for i, n := range []int{1, 21} {
		before := children(t)
		o.Schedules = n
		_, _, err := o.explore(t.Context(), dir, []string{"launch"}, 0)
		require.NoError(t, err)
		took[i] = children(t) - before
	}
	return (took[1] - took[0]) / 20
}

// children is the processor time of compilers and workers until now.
func children(t *testing.T) float64 {
	t.Helper()
	var of syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &of))
	seconds := func(v syscall.Timeval) float64 { return time.Duration(v.Nano()).Seconds() }
	return seconds(of.Utime) + seconds(of.Stime)
}

// processor is what this machine says of its processor.
func processor(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/cpuinfo")
	require.NoError(t, err)
	for _, line := range strings.Split(string(text), "\n") {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "a processor without a name"
}
