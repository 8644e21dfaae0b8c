package mutant_test

// The fault that was in programs and not in device code: a word is overwritten that nobody has read. Two stores of one
// word become visible in either order unless a reader has seen the first, and a later reader of the word then waits for
// ever. passes/copies.go gives an exchange copies only where every word is polled in each; without that, words of qkv
// have copies that nobody reads.

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

	"amkc/codegen"
	"amkc/compiler"
	"amkc/explore"
	"amkc/validate"
)

func TestOverwrittenWordsThatNobodyHasRead(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles kernels and runs them")
	}
	of := small{name: "copies of qkv", arch: 90, sms: 4}
	o := of.options(t)
	l, err := compiler.RunPasses(o)
	require.NoError(t, err)
	defer l.Close()
	given := 0
	for i := range l.Program.Buffers {
		b := &l.Program.Buffers[i]
		if !strings.HasSuffix(b.Name, ".qkv") {
			continue
		}
		given++
		b.Layout.Copies = 2
		for k := range l.Program.Pages {
			if p := &l.Program.Pages[k]; slices.Contains(b.Pages, p.Name) {
				p.Layout.Copies = 2
			}
		}
	}
	require.NotZero(t, given, "the model has no qkv")

	// The proof refuses it,
	problems := validate.Program(l.Program).Diags
	require.Contains(t, fmt.Sprint(problems), validate.CodeUnread.ID)

	// and the kernel stalls in some order.
	build := of.compile(t)
	files, err := codegen.Project(l.Program, l.Graph, "small")
	require.NoError(t, err)
	changed := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at := filepath.Join(build.Dir, filepath.FromSlash(name))
		if before, err := os.ReadFile(at); err != nil || string(before) == string(files[name]) {
			continue
		}
		changed++
		require.NoError(t, os.WriteFile(at, files[name], 0o666))
	}
	require.NotZero(t, changed)
	exe, err := os.Executable()
	require.NoError(t, err)
	r, err := explore.Explore(t.Context(), explore.Options{Build: build.Dir, Cache: cache(t), Schedules: 40, Seed: 1,
		Jobs: []string{"launch"}, Workers: runtime.NumCPU(), Command: []string{exe}})
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(r.Findings, func(f *explore.Found) bool { return f.Kind == "stall" }),
		"%v", r.Findings)
}
