package exploration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/compiler/objects"
	"amkc/explore"
	"amkc/runtime/host"
)

// inCI are the exact builds that are run with the table: each way to multiply, and each format; one with matrices for
// wgmma; and one with columns in parts.
var inCI = []int{0, 1, 2, 7, 14}

// The products of all bodies are to the bit what the reference VM makes, where they add up exactly: those of single
// tokens stage by stage, and those of passes and prompts by what the same text leads to, in which each row counts.
func TestExact(t *testing.T) {
	if inGate(schedules, 2) == 0 {
		t.Skip("make explore runs it")
	}
	all := ExactBuilds()
	builds := all
	switch {
	case *only != "": // which may be of the table
		builds = slices.DeleteFunc(builds, func(e Exact) bool { return e.Name() != *only })
	case !*product:
		builds = nil
		for _, i := range inCI {
			builds = append(builds, all[i])
		}
	}
	o := exactOptions(t)
	which := selection(t, *piece)
	require.NoError(t, objects.SideBySide(len(builds), atOnce, func(i int) error {
		if !which(i) {
			return nil
		}
		return exact(t, o, builds[i], filepath.Join(t.TempDir(), fmt.Sprint(i)))
	}))
}

func exactOptions(t *testing.T) *Options {
	t.Helper()
	cache, err := compiler.CacheDir()
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	return &Options{Cache: cache, Schedules: 1, Command: []string{exe}}
}

// exact explores one build.
func exact(t *testing.T, o *Options, e Exact, dir string) error {
	build, err := e.Compile(t.Context(), dir)
	if err != nil {
		return err
	}
	facts, err := host.ReadFacts(build)
	if err != nil {
		return err
	}
	jobs := []string{"text", "reference"}
	if e.rows > 1 {
		jobs = append(jobs, fmt.Sprintf("rows%d", e.rows))
	}
	if e.ReadsPrompts() {
		jobs = append(jobs, "prompt-9")
	}
	if have := explore.Jobs(facts); facts.Prompt > 0 != e.ReadsPrompts() {
		return fmt.Errorf("%s: the jobs are %v", e.Name(), have)
	}
	report, _, err := o.explore(t.Context(), build, jobs, 0)
	if err != nil {
		return err
	}
	for _, f := range report.Findings {
		err = fmt.Errorf("%s: %s", e.Name(), f.Diagnostic())
	}
	if err == nil {
		err = allExact(e, report)
	}
	return err
}

// allExact looks at what a report says of the bodies that multiply: all outputs of all stages have been compared, and
// to the bit. Rows that are rotated have the errors of sines at all positions but the first.
func allExact(e Exact, r *explore.Report) error {
	exact, outputs, positions := 0, 0, 3
	if e.ReadsPrompts() {
		positions = 22 // the text of prompts
	}
	for _, j := range r.Jobs {
		if j.Values == 0 {
			return fmt.Errorf("%s: job %s has no results", e.Name(), j.Name)
		}
		for _, b := range j.Bodies {
			if !strings.Contains(b.Body, "gemv_") {
				continue
			}
			least := b.Outputs
			if strings.HasSuffix(b.Body, " ROPE") {
				least /= positions
			}
			if b.Outputs == 0 || b.Exact < least {
				return fmt.Errorf("%s: of %d outputs of %s %d were compared to the bit", e.Name(), b.Outputs, b.Body,
					b.Exact)
			}
			exact, outputs = exact+b.Exact, outputs+b.Outputs
		}
	}
	heads := e.heads + 2*e.kvHeads
	if all := positions * (heads*e.dim + e.hidden + e.middle + e.hidden + e.vocab); outputs != all {
		return fmt.Errorf("%s: %d outputs of products were compared, want %d", e.Name(), outputs, all)
	}
	fmt.Printf("%s: %d of %d outputs of products equal to the bit\n", e.Name(), exact, outputs)
	return nil
}

// A body that leaves a product out is found.
func TestExactFindsChangedBody(t *testing.T) {
	if inGate(schedules, 2) == 0 {
		t.Skip("make explore runs it")
	}
	e := ExactBuilds()[2]
	require.Equal(t, "fp32", e.DType)
	build, err := e.Compile(t.Context(), t.TempDir())
	require.NoError(t, err)
	header := filepath.Join(build, "amk", "gemv_fma.cuh")
	text, err := os.ReadFile(header)
	require.NoError(t, err)
	const last = "return fmaf(of[7], y.w, fmaf(of[6], y.z, sum));"
	require.Equal(t, 1, strings.Count(string(text), last))
	changed := strings.Replace(string(text), last, "return fmaf(of[6], y.z, sum);", 1)
	require.NoError(t, os.WriteFile(header, []byte(changed), 0o666))
	report, _, err := exactOptions(t).explore(t.Context(), build, []string{"reference"}, 0)
	require.NoError(t, err)
	require.Len(t, report.Findings, 1)
	require.Equal(t, "bound", report.Findings[0].Kind)
	require.Contains(t, report.Findings[0].Message, "stage lm_head, by RMSNORM gemv_fma(F32, F32) SAMPLE: element ")
	require.Contains(t, report.Findings[0].Message, "and the body's bound is 0; 96 of 96 elements are beyond theirs")
}
