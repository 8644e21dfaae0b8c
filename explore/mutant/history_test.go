package mutant_test

// Faults that this project has had, or that need a store or an SM to be late at the right place. One was in programs
// and not in device code: a word is overwritten that nobody has read. Two stores of one word become visible in either
// order unless a reader has seen the first, and a later reader of the word then waits forever. passes/copies.go gives
// an exchange copies only where every word is polled in each; without that, words of qkv have copies that nobody reads.
// Such programs are emitted here all the same, although the proof refuses them.

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/explore"
	"amkc/explore/mutant"
	"amkc/ir"
	"amkc/validate"
)

// stalls are the findings that a launch of a build stalls, in a few schedules.
func stalls(t *testing.T, dir string) (all []*explore.Found) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	r, err := explore.Explore(t.Context(), explore.Options{Build: dir, Cache: cache(t), Schedules: 3, Seed: 1,
		Jobs: []string{"launch"}, Shrink: 1, Workers: runtime.NumCPU(), Called: true, Command: []string{exe}})
	require.NoError(t, err)
	for _, f := range r.Findings {
		t.Log(f.Diagnostic())
		if f.Kind == "stall" {
			all = append(all, f)
		}
	}
	if len(all) == 0 {
		require.Empty(t, r.Findings, "nothing else is wrong with these programs")
	}
	return all
}

// expectStall wants the explorer to find a stall, and its script to repeat it.
func expectStall(t *testing.T, proof validate.Report, dir string) {
	t.Helper()
	require.Contains(t, fmt.Sprint(proof.Diags), validate.CodeUnread.ID)
	found := stalls(t, dir)
	require.NotEmpty(t, found)
	require.Contains(t, found[0].Message, "waited in vain for an element of the vector it reads")
	require.True(t, found[0].Repeats)
}

func TestOverwrittenWordsThatNobodyHasRead(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles kernels and runs them")
	}
	// attention of a head, and what makes its words, are on other SMs in the next layer
	of := small{name: "copies of qkv", arch: 90, sms: 4, policy: "round_robin"}
	build := of.compile(t)
	require.Empty(t, stalls(t, build.Dir))
	of.program = func(p *ir.Program) {
		for i := range p.Buffers {
			b := &p.Buffers[i]
			if !strings.HasSuffix(b.Name, ".qkv") {
				continue
			}
			b.Layout.Copies = 2
			for k := range p.Pages {
				if page := &p.Pages[k]; slices.Contains(b.Pages, page.Name) {
					page.Layout.Copies = 2
				}
			}
		}
	}
	expectStall(t, of.emit(t, build.Dir), build.Dir)
}

// testdata/copies_of_qkv.amk is what amkc made of pycoder-5m for 4 SMs at commit 5028d430: qkv has two copies on the
// page that the MLP uses too, and most of its words have one reader. It takes most of a minute of a processor, for
// which AMKC_LONG asks; TestOverwrittenWordsThatNobodyHasRead has the same fault in a smaller build.
func TestCopiesOfQKV(t *testing.T) {
	if os.Getenv("AMKC_LONG") == "" {
		t.Skip("AMKC_LONG is not set")
	}
	const fixture = "testdata/copies_of_qkv.amk"
	text, err := os.ReadFile(fixture)
	require.NoError(t, err)
	program, err := ir.Load(text, fixture)
	require.NoError(t, err)

	o := compiler.BuildOptions{OutDir: filepath.Join(t.TempDir(), "build"), NoBuild: true, NoLauncher: true,
		Options: compiler.Options{Model: "../../testdata/models/pycoder-5m", Name: "pycoder-5m",
			Target: ir.ArchTarget(90, 4)}}
	_, err = compiler.Compile(t.Context(), o)
	require.NoError(t, err)
	require.Empty(t, stalls(t, o.OutDir))
	proof := emit(t, o.Options, o.OutDir, func(p *ir.Program) { *p = *program })
	expectStall(t, proof, o.OutDir)
}

// needLateness are mutants that show only where an SM is late, or by a job that reads what another SM has written in
// the step before, with the build in which each shows.
var needLateness = map[string]string{
	"amk/attention_mma.cuh attend_token words polled again after publishing 1: historical fault": "norms of branches",
	"amk/gemv_fma.cuh gemv_fma an empty task that does not read 1: historical fault":             "an empty task",
	"amk/ending.cuh join_step add_release_ranks 1: weaker, relaxed":                              "bulk copies",
	"amk/step.cuh wait_joined load_acquire_ranks 1: weaker, relaxed":                             "bulk copies",
}

func TestFaultsThatNeedLateness(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles kernels and runs them")
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	o := explore.MutantOptions{Cache: cache(t), Schedules: 7, Jobs: 2, Workers: runtime.NumCPU(),
		Command: []string{exe}, Only: func(m *mutant.Mutant) bool { return needLateness[m.ID()] != "" }}
	for _, b := range builds {
		if b.name == "bulk copies" {
			b.jobs = []string{"drawings"}
		}
		if slices.Contains(slices.Collect(maps.Values(needLateness)), b.name) {
			o.Builds = append(o.Builds, b.compile(t))
		}
	}
	r, err := explore.RunMutants(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, r.Results, len(needLateness))
	for _, m := range r.Results {
		t.Logf("%s: %s by %s in build %s, job %s, schedule %s", m.ID, m.Fate, m.By, m.Build, m.Job, m.Schedule)
		if m.Fate != explore.Killed || m.Build != needLateness[m.ID] {
			t.Errorf("%s: it is %s in build %q after %d runs; want it to be killed in build %q", m.ID, m.Fate, m.Build,
				m.Runs, needLateness[m.ID])
		}
	}
}
