package mutant_test

// The fault that was in programs and not in device code: a word is overwritten that nobody has read. Two stores of one
// word become visible in either order unless a reader has seen the first, and a later reader of the word then waits for
// ever. passes/copies.go gives an exchange copies only where every word is polled in each; without that, words of qkv
// have copies that nobody reads.

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/explore"
	"amkc/ir"
	"amkc/validate"
)

func TestOverwrittenWordsThatNobodyHasRead(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles kernels and runs them")
	}
	of := small{name: "copies of qkv", arch: 90, sms: 4}
	build := of.compile(t)
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
	proof := of.emit(t, build.Dir)
	require.Contains(t, fmt.Sprint(proof.Diags), validate.CodeUnread.ID)
	exe, err := os.Executable()
	require.NoError(t, err)
	r, err := explore.Explore(t.Context(), explore.Options{Build: build.Dir, Cache: cache(t), Schedules: 40, Seed: 1,
		Jobs: []string{"launch"}, Workers: runtime.NumCPU(), Command: []string{exe}})
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(r.Findings, func(f *explore.Found) bool { return f.Kind == "stall" }),
		"%v", r.Findings)
}
