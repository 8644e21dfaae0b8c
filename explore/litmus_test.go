package explore_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/compiler/objects"
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
	"exchange":    {"exchange.cc", nil},
	"counter":     {"counter.cc", nil},
	"ring":        {"ring.cc", nil},
	"ring-ahead":  {"ring.cc", []string{"-DLITMUS_RUN_AHEAD=2"}},
	"ring-async":  {"ring.cc", litmusAsync},
	"ring-plain":  {"ring.cc", litmusPlain},
	"steps":       {"steps.cc", nil},
	"steps-plain": {"steps.cc", litmusPlain},
	"barrier":     {"barrier.cc", nil},
	"rounds":      {"rounds.cc", nil},
	"prompt":      {"prompt.cc", nil},
	"ending":      {"ending.cc", nil},
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
				require.Regexp(t, `(?m)^[a-z]+: [1-9][0-9]* tests, 0 failed$`, string(out))
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

// buildLitmus compiles the programs and returns the directory that has them. It is in amkc's cache, by a digest of
// sources, flags and compiler. A warning in a source of the machine is an error.
func buildLitmus(t *testing.T) string {
	t.Helper()
	cxx := os.Getenv("CXX")
	if cxx == "" {
		var err error
		if cxx, err = exec.LookPath("c++"); err != nil {
			t.Skip("no C++ compiler")
		}
	}
	common := strings.Fields("-std=c++17 -g1 -ffp-contract=off -fno-strict-aliasing")
	machine := slices.Concat(common, strings.Fields("-O2 -Wall -Wextra -Werror -Wno-psabi"))
	// Plain accesses of kernels call hooks of the machine, as those of builds do.
	version, err := exec.Command(cxx, "--version").Output()
	require.NoError(t, err)
	hooks := "--param tsan-instrument-func-entry-exit=0 --param tsan-distinguish-volatile=1 "
	if strings.Contains(string(version), "clang") {
		hooks = "-mllvm -tsan-instrument-func-entry-exit=0 -mllvm -tsan-distinguish-volatile=1 "
	}
	kernel := slices.Concat(common, strings.Fields("-O1 -w -fsanitize=thread -fno-threadsafe-statics "+hooks+
		"-Icpu -Icpu/litmus -I../runtime/cuda"))
	digest := sha256.New()
	for _, word := range slices.Concat([]string{cxx, string(version), objects.Environment()}, machine, kernel) {
		digest.Write([]byte(word + "\n"))
	}
	for _, root := range []string{"cpu/machine", "cpu/amk_cpu", "cpu/litmus", "../runtime/cuda/amk"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			digest.Write([]byte(path + "\n"))
			digest.Write(text)
			return err
		}))
	}
	for _, name := range sortedKeys(litmusPrograms) {
		p := litmusPrograms[name]
		digest.Write([]byte(name + " " + p.source + " " + strings.Join(p.macros, " ") + "\n"))
	}
	cache, err := compiler.CacheDir()
	require.NoError(t, err)
	dir := filepath.Join(cache, "explore", "litmus-"+hex.EncodeToString(digest.Sum(nil))[:32])
	if _, err := os.Stat(dir); err == nil {
		return dir
	}

	require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o777))
	work, err := os.MkdirTemp(filepath.Dir(dir), ".litmus-*")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(work) })
	var jobs [][]string
	var machineObjects []string
	sources, err := filepath.Glob("cpu/machine/*.cc")
	require.NoError(t, err)
	for _, source := range append(sources, "cpu/litmus/litmus.cc") {
		object := filepath.Join(work, filepath.Base(source)+".o")
		machineObjects = append(machineObjects, object)
		jobs = append(jobs, slices.Concat(machine, []string{"-c", source, "-o", object}))
	}
	for name, p := range litmusPrograms {
		object := filepath.Join(work, name+".o")
		jobs = append(jobs, slices.Concat(kernel, p.macros, []string{"-c", filepath.Join("cpu/litmus", p.source), "-o",
			object}))
	}
	inPairs(t, cxx, jobs)
	bin := filepath.Join(work, "bin")
	require.NoError(t, os.Mkdir(bin, 0o777))
	jobs = nil
	for name := range litmusPrograms {
		jobs = append(jobs, slices.Concat([]string{filepath.Join(work, name+".o")}, machineObjects,
			[]string{"-o", filepath.Join(bin, name), "-ldl"}))
	}
	inPairs(t, cxx, jobs)
	if err := os.Rename(bin, dir); err != nil { // another process may have been first
		_, other := os.Stat(dir)
		require.NoError(t, other, "%v", err)
	}
	return dir
}

// inPairs runs a compiler once for each list of arguments, two at a time.
func inPairs(t *testing.T, cxx string, jobs [][]string) {
	t.Helper()
	next := make(chan []string)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed bytes.Buffer
	for range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for args := range next {
				if out, err := exec.Command(cxx, args...).CombinedOutput(); err != nil {
					mu.Lock()
					failed.WriteString(strings.Join(args, " ") + "\n" + string(out))
					mu.Unlock()
				}
			}
		}()
	}
	for _, args := range jobs {
		next <- args
	}
	close(next)
	wg.Wait()
	require.Empty(t, failed.String())
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
