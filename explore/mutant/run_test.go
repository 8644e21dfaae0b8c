package mutant_test

// Mutants of small builds are run until each is killed: all of them with AMKC_MUTANTS, otherwise some of each kind.

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/explore"
	"amkc/explore/mutant"
)

func TestMain(m *testing.M) {
	if explore.IsWorker() {
		os.Exit(explore.Work(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

var (
	report = flag.String("report", "", "write mutants.md into this directory")
	only   = flag.String("mutants", "", "run the mutants alone whose ids match this expression")
	on     = flag.String("builds", "", "on these builds alone, by name, with commas between")
	record = flag.String("log", "", "append what became of each mutant to this file, and do not run again what it "+
		"says was killed")
	times = flag.Int("schedules", 12, "schedules of each job that runs a mutant")
	most  = flag.Int("jobs", 2, "jobs of a build that run a mutant")
	runs  = flag.Int("runs", 0, "runs of an equivalent mutant at most; 0: under each schedule of each job")
)

// sample are mutants of each kind that the first build has, and that show at once.
var sample = []string{
	"amk/ring.cuh release fence_proxy_async_shared 1: left out",
	"amk/ring.cuh release fence_proxy_async_shared 1: wrong proxy, generic",
	"amk/ring.cuh release warp_sync 1: left out",
	"amk/attention_mma.cuh attend_token consumer_barrier 3: weaker, warp",
	"amk/attention_mma.cuh attend_token consumer_barrier 3: one statement earlier",
	"amk/attention_mma.cuh attend_token wait_full 1: one statement later",
	"amk/attention_mma.cuh attend_token phase 1: phase off by one, other",
	"amk/attention_mma.cuh attend_token wait_full 1: slot given back early, waits for the next one",
	"amk/attention_mma.cuh attend_token advance_slot 1: count off by one, less",
	"amk/context.cuh Context::advance next_epoch 1: epoch off by one, more",
	"amk/ring.cuh Producer::fill copy_bulk 1: copy too short",
	"megakernel.cu consume stage o_stage 1: stages in another order, gate_up_stage first",
}

func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles kernels and runs them")
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	o := explore.MutantOptions{Cache: cache(t), Workers: runtime.NumCPU(), Command: []string{exe}}
	some := *only != "" || *on != ""
	all := os.Getenv("AMKC_MUTANTS") != "" || some
	of := builds
	if all {
		o.Schedules, o.Jobs, o.Runs = *times, *most, *runs
	} else {
		of = []small{builds[0]}
		of[0].jobs = []string{"launch"}
		o.Only = func(m *mutant.Mutant) bool { return slices.Contains(sample, m.ID()) }
	}
	if some {
		wanted, err := regexp.Compile(*only)
		require.NoError(t, err)
		o.Only = func(m *mutant.Mutant) bool { return wanted.MatchString(m.ID()) }
	}
	for i := range of {
		if *on == "" || slices.Contains(strings.Split(*on, ","), of[i].name) {
			o.Builds = append(o.Builds, of[i].compile(t))
		}
	}
	if *record != "" {
		log := openLog(t, *record)
		o.Known, o.Each = log.killed, log.add
	}
	o.Earlier = readKilled(t)
	r, err := explore.RunMutants(t.Context(), o)
	require.NoError(t, err)
	t.Logf("\n%s\n%d mutants of today's sources were not judged before this run (unjudged.txt).", r.Table(),
		len(mutant.Unjudged))
	fates := map[string]explore.Fate{}
	for _, m := range r.Results {
		fates[m.ID] = m.Fate
		switch {
		case m.Fate == explore.Survived:
			t.Errorf("%s: it survived %d runs; want the explorer to find it, or a reason in equivalent.txt", m.ID,
				m.Runs)
		case m.Fate == explore.Killed && mutant.Reason(m.ID) != "":
			t.Errorf("%s: equivalent.txt says that nothing goes wrong with it: %s, in build %s, job %s: %s", m.ID, m.By,
				m.Build, m.Job, m.Message)
		case m.Fate == explore.Killed && mutant.Unjudged[m.ID] != "":
			t.Errorf("%s: it is killed, in build %s, job %s, number %d: want it in %s, and not in unjudged.txt", m.ID,
				m.Build, m.Job, m.Number, killedFile)
		}
	}
	if !all {
		for _, id := range sample {
			if fates[id] != explore.Killed {
				t.Errorf("%s: want it to be killed; it is %s", id, fates[id])
			}
		}
		return
	}
	if some {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(mutant.Equivalent)) {
		if fates[id] == "" || fates[id] == explore.Unreached {
			t.Errorf("%s: equivalent.txt has a reason for it, and no build comes to it", id)
		}
	}
	if *report != "" {
		require.NoError(t, os.WriteFile(filepath.Join(*report, "mutants.md"), []byte(page(r, of)), 0o666))
		writeKilled(t, r)
	}
}

// page is docs/results/mutants.md.
func page(r *explore.MutantReport, of []small) string {
	var b strings.Builder
	b.WriteString("# Mutants of the device code\n\nWritten by `make mutants`. What mutants are is in " +
		"[explore.md](../explore.md#mutants).\n\nBuilds:")
	for i := range of {
		fmt.Fprintf(&b, "%s %s (sm_%d, %d SMs)", map[bool]string{true: ",", false: ""}[i > 0], of[i].name, of[i].arch,
			of[i].sms)
	}
	b.WriteString(".\n\n" + r.Table() + "\nNot moved, because of what is next to the statement:\n\n")
	for _, why := range slices.Sorted(maps.Keys(r.Stays)) {
		fmt.Fprintf(&b, "* %d: %s\n", r.Stays[why], why)
	}
	last := ""
	for _, m := range r.Results {
		site, _, _ := strings.Cut(m.ID, ": ")
		if m.Fate == explore.Unreached && site != last {
			if last == "" {
				b.WriteString("\n## Unreached\n\nNo build reaches these sites:\n\n")
			}
			fmt.Fprintf(&b, "* %s\n", site)
			last = site
		}
	}
	b.WriteString("\n## Equivalent\n\n")
	for _, m := range r.Results {
		if m.Fate == explore.Equivalent {
			fmt.Fprintf(&b, "* %s: %s\n", m.ID, mutant.Reason(m.ID))
		}
	}
	return b.String()
}
