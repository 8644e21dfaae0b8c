// Package gputest tests what the command line does on a GPU, on a machine without one: with the fake driver of
// hosttest, and with an nvcc that writes its kernels. It is a package of its own because the scripts of package cli
// must not find that driver.
package gputest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/compiler/cli"
	"amkc/ir"
	"amkc/knobs"
	"amkc/runtime/host/hosttest"
)

const onCPU = "device: ref, the reference VM on the CPU\n"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	hosttest.Main(m)
}

// asCommand is the environment variable with which the test binary is amkc: what search starts for each evaluation.
const asCommand = "AMKC_TEST_AS_COMMAND"

const pycoder = "../../../testdata/models/pycoder-5m"

// amkc runs the command line and returns the exit code and what it printed.
func amkc(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = cli.Main(args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// smallSeq keeps pycoder's cache and schedule small, where no split variant is wanted.
const smallSeq = 64

// fakeTools puts an nvcc on PATH whose output is the fake kernels, as pycoder needs them for a number of positions, and
// with more settings of fakeimages.h. As a search compiles them, they are fewer. The cache of builds is empty.
func fakeTools(t *testing.T, maxSeq int, settings string) {
	t.Helper()
	hosttest.NeedDriver(t)
	l, err := compiler.RunPasses(compiler.Options{Model: pycoder, Name: "pycoder-5m", MaxSeq: maxSeq,
		Target: ir.FindTarget("h200"), ConfigOnly: true})
	require.NoError(t, err)
	defer l.Close()
	_, weights := ir.WeightArena(l.Program)
	m := l.Program.Model
	kernels := fmt.Sprintf("FAKE any_weights=1 sms=132 vocab=%d max_seq=%d layers=%d hidden=%d element=2 weights=%d "+
		"per_step=64 trace=5000 variants=%d",
		m.Vocab, m.MaxSeq, m.Layers, m.Hidden, weights, len(l.Program.Variants))
	for i := range l.Program.Variants {
		kernels += fmt.Sprintf(" end%d=%d", i, l.Program.Variants[i].Hi+1)
	}
	bin := t.TempDir()
	script := fmt.Sprintf(`#!/bin/sh
[ "$1" = --version ] && exit
case "$*" in *-DAMK_LEAN=1*) lean=lean=1 ;; esac
while [ "$1" != -o ]; do shift; done
case $2 in
reference*) printf 'FAKE REFERENCE layers=%d embed=%d qkv=%d attn=%d exchanges=5 \0' > "$2" ;;
prompt*) printf 'FAKE prompt=%d \0' > "$2" ;;
*) printf '%s %s %%s \0' "$lean" > "$2" ;;
esac
`, m.Layers, m.Hidden, (m.Heads+2*m.KVHeads)*m.HeadDim, m.Heads*m.HeadDim,
		knobs.PromptTokens.Of(&l.Program.Config), kernels, settings)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "nvcc"), []byte(script), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "g++"), []byte("#!/bin/sh\n"), 0o755))
	t.Setenv("PATH", bin)
	t.Setenv(compiler.CacheVariable, filepath.Join(t.TempDir(), "cache"))
}

// completion is the result of run.
type completion struct {
	Device, Build string
	IDs           []int
}

// A model is built into the cache for the GPU that is there, and found there the next time.
func TestRunModel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	fakeTools(t, smallSeq, "")
	args := []string{"run", pycoder, "--ids", "5,6", "--max-tokens", "3", "--ignore-eos", "--max-seq",
		strconv.Itoa(smallSeq)}
	prompt, want := []int{5, 6}, []string{}
	for range 3 {
		_, next := hosttest.Mirror(prompt)
		prompt, want = append(prompt, next), append(want, strconv.Itoa(next))
	}

	code, stdout, stderr := amkc(args...)
	require.Equal(t, 0, code, stderr)
	require.Equal(t, strings.Join(want, ",")+"\n", stdout)
	require.Regexp(t, `^build: `+os.Getenv(compiler.CacheVariable)+`/[0-9a-f]{32} \(compiled\)\ndevice: cuda\n$`,
		stderr)

	code, stdout, stderr = amkc(append(args, "--device", "cuda")...)
	require.Equal(t, 0, code, stderr)
	require.Equal(t, strings.Join(want, ",")+"\n", stdout)
	require.Regexp(t, `^build: .* \(reused\)\n$`, stderr)

	code, stdout, stderr = amkc(append(args, "--json")...)
	require.Equal(t, 0, code, stderr)
	var got completion
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, "cuda", got.Device)
	builds, err := os.ReadDir(os.Getenv(compiler.CacheVariable))
	require.NoError(t, err)
	builds = slices.DeleteFunc(builds, func(e os.DirEntry) bool { return e.Name() == "weights" }) // which builds share
	require.Len(t, builds, 1)
	require.Equal(t, builds[0].Name(), filepath.Base(got.Build))
	code, _, stderr = amkc("verify", got.Build)
	require.Equal(t, 0, code, stderr)
	require.NoFileExists(t, filepath.Join(got.Build, "pycoder-5m"), "run needs no launcher")

	out := filepath.Join(t.TempDir(), "out.npy")
	code, _, stderr = amkc("logits", pycoder, "--ids", "5,6", "-o", out, "--max-seq", strconv.Itoa(smallSeq))
	require.Equal(t, 0, code, stderr)
	require.Regexp(t, `^build: .* \(reused\)\ndevice: cuda\n$`, stderr)
	require.FileExists(t, out)

	long := strings.TrimSuffix(strings.Repeat("5,", 40), ",")
	code, _, stderr = amkc("logits", pycoder, "--ids", long, "-o", out, "--max-seq", strconv.Itoa(smallSeq),
		"--progress", "json")
	require.Equal(t, 0, code, stderr)
	for _, done := range []int{0, 40} {
		require.Contains(t, stderr, fmt.Sprintf(
			`{"progress":{"activity":"reading tokens","done":%d,"total":40,"unit":"tokens"}}`, done))
	}
}

// What the GPU cannot run goes to the reference VM, unless the GPU was asked for.
func TestRunModelElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	fakeTools(t, smallSeq, "")
	args := []string{"run", pycoder, "--ids", "5", "--max-tokens", "1", "--max-seq", strconv.Itoa(smallSeq)}
	code, _, stderr := amkc(append(args, "--target", "t4")...)
	require.Equal(t, 0, code, stderr)
	require.Equal(t, onCPU, stderr, "a program for another GPU")

	code, _, stderr = amkc(append(args, "--gpu", "7", "--device", "cuda")...)
	require.Equal(t, 2, code, stderr)
	require.Contains(t, stderr, "--gpu: error: 7; this machine has GPUs 0 to ")

	// The flags of compiling say nothing about a build.
	code, _, _ = amkc(args...)
	require.Equal(t, 0, code)
	builds, err := filepath.Glob(os.Getenv(compiler.CacheVariable) + "/*/amkc.manifest.json")
	require.NoError(t, err)
	require.Len(t, builds, 1)
	builds[0] = filepath.Dir(builds[0])
	code, _, stderr = amkc("run", builds[0], "--ids", "5", "--max-seq", "8", "--device", "cuda")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "--max-seq says how to compile a model")

	require.NoError(t, os.Remove(filepath.Join(os.Getenv("PATH"), "g++")))
	t.Setenv(compiler.CacheVariable, t.TempDir())
	code, _, stderr = amkc(args...)
	require.Equal(t, 0, code, stderr)
	require.Equal(t, onCPU, stderr, "nothing to compile kernels with")
	code, _, stderr = amkc(append(args, "--device", "cuda")...)
	require.Equal(t, 2, code)
	require.Regexp(t, `there is no g\+\+ here.*\[AMK5113\]`, stderr)
}

// Both sides of quality are sessions on one GPU, side by side: a model is built for it, a build is opened.
func TestQuality(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	fakeTools(t, smallSeq, "")
	args := []string{"quality", pycoder, "--ids", "5,6,7,8,9", "--window", "3", "--greedy", "4", "--max-seq",
		strconv.Itoa(smallSeq)}
	code, stdout, stderr := amkc(append(args, "--against", pycoder, "--json")...)
	require.Equal(t, 0, code, stderr)
	var got struct {
		Device, Build string
		AgainstBuild  string `json:"against_build"`
		Tokens        int
		KL            struct{ Max float64 }
		Greedy        struct{ Prompts, Min int }
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, "cuda", got.Device)
	require.Equal(t, got.Build, got.AgainstBuild, "one build for both")
	require.Equal(t, 3, got.Tokens)
	require.Zero(t, got.KL.Max)
	require.Equal(t, 1, got.Greedy.Prompts)
	require.Equal(t, 4, got.Greedy.Min)

	code, _, stderr = amkc(append(args, "--against", got.Build)...)
	require.Equal(t, 0, code, stderr)
	require.Regexp(t, `^device: cuda\nbuild: .* \(reused\)\n$`, stderr)

	// Where one side can only run on the reference VM, both do.
	code, _, stderr = amkc(append(args, "--against", got.Build, "--target", "t4")...)
	require.Equal(t, 0, code, stderr)
	require.Equal(t, onCPU, stderr)
}
