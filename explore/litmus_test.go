package explore_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A litmusProgram is a source of cpu/litmus, and macros that it is compiled with.
type litmusProgram struct {
	source string
	macros []string
}

// The forms of the ring: bulk copies, cp.async, and plain loads.
var (
	litmusAsync = []string{"-DAMK_BULK_COPY=0"}
	litmusPlain = []string{"-DAMK_BULK_COPY=0", "-DAMK_ASYNC_COPY=0"}
)

var litmusPrograms = map[string]litmusProgram{
	"exchange":       {"exchange.cc", nil},
	"counter":        {"counter.cc", nil},
	"ring":           {"ring.cc", nil},
	"ring-ahead":     {"ring.cc", []string{"-DLITMUS_RUN_AHEAD=2"}},
	"ring-async":     {"ring.cc", litmusAsync},
	"ring-plain":     {"ring.cc", litmusPlain},
	"steps":          {"steps.cc", nil},
	"steps-plain":    {"steps.cc", litmusPlain},
	"barrier":        {"barrier.cc", nil},
	"rounds":         {"rounds.cc", nil},
	"choice":         {"choice.cc", nil},
	"choice-tokens":  {"choice.cc", []string{"-DLITMUS_TOKENS=2", "-DAMK_COMPACT_SCRATCH=1"}},
	"ranks":          {"ranks.cc", nil},
	"prompt":         {"prompt.cc", nil},
	"prompt-ring":    {"prompt_ring.cc", nil},
	"prompt-experts": {"prompt_experts.cc", nil},
	"ending":         {"ending.cc", nil},
}

// The orders that docs/memory-model.md argues for, as small kernels on the headers of the device runtime: each holds
// under all schedules with a few deviations, and each of its weakened forms fails under one. For every assumption of
// the memory model there is a test that holds with it and fails without. With AMKC_LONG schedules have one deviation
// more.
func TestLitmus(t *testing.T) {
	t.Parallel()
	dir := buildLitmus(t)
	var args []string
	if os.Getenv("AMKC_LONG") != "" {
		args = []string{"--deeper", "1"}
	}
	document, err := os.ReadFile("../docs/memory-model.md")
	require.NoError(t, err)
	var mu sync.Mutex
	assumed, without := map[string]bool{}, map[string]bool{}
	t.Run("programs", func(t *testing.T) {
		for name := range litmusPrograms {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				out, err := exec.Command(filepath.Join(dir, name), args...).CombinedOutput()
				require.NoError(t, err, "%s", out)
				require.Regexp(t, `(?m)^[a-z-]+: [1-9][0-9]* tests, 0 failed$`, string(out))
				require.NotContains(t, string(out), "FAIL")
				require.Contains(t, string(document), "`"+name+"`", "the document names each program")
				t.Logf("%s", out)
				mu.Lock()
				defer mu.Unlock()
				for _, a := range strings.Fields(string(regexp.MustCompile(`(?m)^assumptions:.*$`).Find(out)))[1:] {
					assumed[a] = true
				}
				for _, found := range regexp.MustCompile(`(?m), without (\S+): found`).FindAllSubmatch(out, -1) {
					without[string(found[1])] = true
				}
			})
		}
	})
	require.NotEmpty(t, assumed)
	require.Equal(t, assumed, without, "each assumption is needed by a test")
	for name := range assumed {
		require.Contains(t, string(document), "`"+name+"`", "the document names each assumption")
	}
}

// buildLitmus compiles the programs and returns the directory that has them. A warning in a source of the machine is an
// error.
func buildLitmus(t *testing.T) string {
	t.Helper()
	common := strings.Fields("-std=c++17 -g1 -ffp-contract=off -fno-strict-aliasing")
	machine := slices.Concat(common, strings.Fields("-O2 -Wall -Wextra -Werror -Wno-psabi"))
	// Plain accesses of kernels call hooks of the machine, as those of builds do.
	version, err := exec.Command(cxx(t), "--version").Output()
	require.NoError(t, err)
	hooks := "--param tsan-instrument-func-entry-exit=0 --param tsan-distinguish-volatile=1 "
	if strings.Contains(string(version), "clang") {
		hooks = "-mllvm -tsan-instrument-func-entry-exit=0 -mllvm -tsan-distinguish-volatile=1 "
	}
	kernel := slices.Concat(common, strings.Fields("-O1 -w -fsanitize=thread -fno-threadsafe-statics "+hooks+
		"-Icpu -Icpu/litmus -I../runtime/cuda"))
	names := slices.Sorted(maps.Keys(litmusPrograms))
	var sources []source
	for _, name := range names {
		p := litmusPrograms[name]
		sources = append(sources, source{filepath.Join("cpu/litmus", p.source), slices.Concat(kernel, p.macros)})
	}
	ofMachine, err := filepath.Glob("cpu/machine/*.cc")
	require.NoError(t, err)
	require.NotEmpty(t, ofMachine)
	for _, name := range append(ofMachine, "cpu/litmus/litmus.cc") {
		sources = append(sources, source{name, machine})
	}
	all, dir := compileAll(t, sources), t.TempDir()
	for i, name := range names {
		linked(t, filepath.Join(dir, name), append([]string{all[i]}, all[len(names):]...))
	}
	return dir
}
