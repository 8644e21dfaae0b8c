package explore

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/runtime/host"
)

// recordVariable has a process of the tests record on the machine, instead of a GPU: the directory that layOut has
// made, the machine, the file and the build, in JSON.
const recordVariable = "AMKC_EXPLORE_TEST_RECORD"

func recordHere(args string) int {
	var of []string
	err := json.Unmarshal([]byte(args), &of)
	if err == nil {
		err = func() error {
			machine, err := startMachine(of[1])
			if err != nil {
				return err
			}
			if err := machine.begin(&Schedule{Strategy: Replay}); err != nil {
				return err
			}
			s, err := host.Open(context.Background(), of[0], host.Options{})
			if err != nil {
				return err
			}
			r, err := Record(context.Background(), of[3], s)
			if err != nil {
				return err
			}
			return r.Write(of[2])
		}()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// recordOn records what a machine made of some sources does with a build.
func recordOn(t *testing.T, build string, cpu map[string][]byte) string {
	t.Helper()
	c := needCompiler(t)
	c.called = true
	cache, err := compiler.CacheDir()
	require.NoError(t, err)
	objects, err := c.compile(t.Context(), build, cache, cpu, []string{gpuJob}, nil)
	require.NoError(t, err)
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "trace.json")
	require.NoError(t, layOut(dir, build, objects))
	facts, err := host.ReadFacts(dir)
	require.NoError(t, err)
	device, err := deviceOf(facts)
	require.NoError(t, err)
	args, err := json.Marshal([]string{filepath.Join(dir, tracedDir), objects.Library, file, build})
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), recordVariable+"="+string(args), deviceVariable+"="+device)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return file
}

func compareWith(t *testing.T, build, file string) *Report {
	t.Helper()
	cache, err := compiler.CacheDir()
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	r, err := Explore(t.Context(), Options{Build: build, Cache: cache, Schedules: 1, Jobs: []string{gpuJob},
		Recording: file, Workers: 1, Called: true, Command: []string{exe}})
	require.NoError(t, err)
	return r
}

// edited are the sources of the machine with a change.
func edited(t *testing.T, file, from, to string) map[string][]byte {
	t.Helper()
	cpu, err := cpuSources()
	require.NoError(t, err)
	text := strings.Replace(string(cpu[file]), from, to, 1)
	require.NotEqual(t, string(cpu[file]), text)
	cpu[file] = []byte(text)
	return cpu
}

// otherApproximations have errors of the same size elsewhere.
func otherApproximations(t *testing.T) map[string][]byte {
	return edited(t, "amk_cpu/math.h", "(bits ^ bits >> 16) * 0x7feb352d", "(bits ^ bits >> 15) * 0x2c1b3c6d")
}

func named(t *testing.T, name string) *fixture {
	t.Helper()
	for _, f := range readFixtures(t) {
		if f.Name == name {
			return &f
		}
	}
	t.Fatal("there is no fixture", name)
	return nil
}

// What the machine has recorded itself is the same bits. What one has whose approximations err elsewhere is within what
// is stated, and other bits where functions are approximate alone.
func TestGPUWithOtherApproximations(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it: it compiles each build twice")
	}
	for _, f := range readFixtures(t) {
		if os.Getenv("AMKC_LONG") == "" && f.Name != "window-fp16" && f.Name != "head-norms-int4" {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			build := f.compile(t)
			cpu, err := cpuSources()
			require.NoError(t, err)
			r := compareWith(t, build, recordOn(t, build, cpu))
			require.Empty(t, r.Findings)
			require.NotEmpty(t, r.Stages)
			for _, s := range r.Stages {
				require.Zero(t, s.Different, s.Stage)
			}
			r = compareWith(t, build, recordOn(t, build, otherApproximations(t)))
			for _, f := range r.Findings {
				t.Error(f.Kind, f.Message)
			}
			different, exact := 0, map[string]bool{}
			for _, s := range r.Stages {
				t.Logf("%+v", s)
				different += s.Different
				exact[s.Stage] = s.Exact == s.Elements
			}
			require.NotZero(t, different)
			require.True(t, exact["embed"])
			require.Equal(t, f.Weights == "", exact["o"], "products of fixed point are not")
			require.Equal(t, f.Weights == "", exact["down"])
			require.False(t, exact["attn"])
			require.False(t, exact["lm_head"])
		})
	}
}

// A GPU whose bits are others than they should be is found out, at the stage that is wrong.
func TestWrongGPUs(t *testing.T) {
	build := named(t, "window-fp16").compile(t)
	cpu, err := cpuSources()
	require.NoError(t, err)
	file := recordOn(t, build, cpu)
	facts, err := host.ReadFacts(build)
	require.NoError(t, err)
	found := func(t *testing.T, r *Report) (all []string) {
		t.Helper()
		for _, f := range r.Findings {
			require.Equal(t, gpuJob, f.Job)
			all = append(all, f.Kind+": "+f.Message)
		}
		return all
	}
	rewritten := func(t *testing.T, edit func(r *Recording)) string {
		t.Helper()
		r, err := readRecording(file, build, facts)
		require.NoError(t, err)
		edit(r)
		to := filepath.Join(t.TempDir(), "trace.json")
		require.NoError(t, r.Write(to))
		return to
	}
	stride := 240 // of the vector that is longest
	t.Run("a bit of a product", func(t *testing.T) {
		all := found(t, compareWith(t, build, rewritten(t, func(r *Recording) {
			r.Steps[2].Values[4*(3*stride+7)+1] ^= 0x20 // of L00.o: the last bit of an fp16
		})))
		require.Contains(t, all[0], "difference: stage o, ")
		require.Contains(t, all[0], "first in L00.o, position 62: element 7 is")
	})
	t.Run("a logit", func(t *testing.T) {
		all := found(t, compareWith(t, build, rewritten(t, func(r *Recording) { r.Steps[0].Logits[4*20+1] ^= 1 })))
		require.Len(t, all, 1)
		require.Contains(t, all[0], "bound: stage lm_head, ")
	})
	t.Run("a byte of the cache", func(t *testing.T) {
		all := found(t, compareWith(t, build, rewritten(t, func(r *Recording) { r.Steps[3].Cache[5] ^= 1 })))
		require.Equal(t, []string{"difference: cache after position 63: bytes that are others than on the GPU: 1, " +
			"the first is byte 5"}, all)
	})
	t.Run("a token", func(t *testing.T) {
		all := found(t, compareWith(t, build, rewritten(t, func(r *Recording) { r.Steps[1].Chosen[0] ^= 1 })))
		require.Len(t, all, 1)
		require.Contains(t, all[0], "difference: position 1: token ")
	})
	t.Run("other tensor cores", func(t *testing.T) {
		all := found(t, compareWith(t, build, recordOn(t, build, edited(t, "machine/mma.cc", "multiply<F, 16, 25>",
			"multiply<F, 16, 16>"))))
		require.NotEmpty(t, all)
		require.Contains(t, strings.Join(all, "\n"), "difference: stage ")
	})
	t.Run("a root that is further off", func(t *testing.T) {
		if testing.Short() {
			t.Skip("kernels are compiled for it")
		}
		all := found(t, compareWith(t, build, recordOn(t, build, edited(t, "amk_cpu/math.h",
			"cpu::near<1>(1.0 / std::sqrt(double(x))", "cpu::near<1>((1 + 0x1p-20) / std::sqrt(double(x))"))))
		require.NotEmpty(t, all)
		require.Contains(t, strings.Join(all, "\n"), "bound: stage lm_head")
	})
	for name, edit := range map[string]func(r *Recording){
		"is of another build than":  func(r *Recording) { r.Build = "0" },
		`has format "amkc.trace/0"`: func(r *Recording) { r.Format = "amkc.trace/0" },
		"has no steps":              func(r *Recording) { r.Steps = nil },
		"step 1 of 3 rows": func(r *Recording) {
			r.Steps[0].IDs, r.Steps[0].Chosen = make([]int, 3), make([]int, 3)
		},
		"step 1 at position 64": func(r *Recording) { r.Steps[0].Position = 64 },
		"step 3 at position 62": func(r *Recording) { r.Steps[2].IDs[0] = 1 << 40 },
		"step 2 that is cut":    func(r *Recording) { r.Steps[1].Values = r.Steps[1].Values[1:] },
	} {
		_, err := readRecording(rewritten(t, edit), build, facts)
		require.ErrorContains(t, err, name)
	}
	_, err = readRecording(filepath.Join(build, host.ManifestFile), build, facts)
	require.ErrorContains(t, err, "AMK4926")
}
