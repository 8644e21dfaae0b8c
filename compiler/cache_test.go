package compiler

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/runtime/host"
	"amkc/runtime/progress"
)

// fakeTools puts an nvcc that writes empty fatbins and a g++ on a PATH that has nothing else, go least of all. It
// returns the file that nvcc notes its calls in.
func fakeTools(t *testing.T, nvcc string) (log string) {
	t.Helper()
	bin := t.TempDir()
	log = filepath.Join(bin, "log")
	tool := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	}
	tool("nvcc", strings.ReplaceAll(nvcc, "LOG", log))
	tool("g++", "")
	t.Setenv("PATH", bin)
	t.Setenv(CacheVariable, filepath.Join(t.TempDir(), "cache"))
	return log
}

const goodNVCC = `[ "$1" = --version ] && { echo "Cuda compilation tools, release 13.0, V13.0.88"; exit; }
while [ "$1" != -o ]; do shift; done
echo "$2" >> LOG
echo > "$2"`

func calls(t *testing.T, log string) int {
	t.Helper()
	text, err := os.ReadFile(log)
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	return strings.Count(string(text), "\n")
}

func zooOptions(model string) Options {
	return Options{Model: "../testdata/models/zoo/" + model, Name: model, Target: ir.FindTarget("t4")}
}

func TestCached(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	log := fakeTools(t, goodNVCC)
	o := zooOptions("llama-gqa")
	first, err := Cached(t.Context(), o, nil)
	require.NoError(t, err)
	require.False(t, first.Reused)
	require.Empty(t, first.Warnings, "nobody asked for the launcher, so no tool is missing")
	require.Equal(t, 3, calls(t, log))
	require.Equal(t, os.Getenv(CacheVariable), filepath.Dir(first.Dir))
	v, err := Verify(first.Dir, nil)
	require.NoError(t, err)
	require.Empty(t, v.Findings)

	again, err := Cached(t.Context(), o, nil)
	require.NoError(t, err)
	require.True(t, again.Reused)
	require.Equal(t, first.Dir, again.Dir)
	require.Equal(t, 3, calls(t, log))

	// A build that has lost its kernels is finished in its place.
	require.NoError(t, os.Remove(filepath.Join(first.Dir, host.FatbinFile)))
	repaired, err := Cached(t.Context(), o, nil)
	require.NoError(t, err)
	require.False(t, repaired.Reused)
	require.Equal(t, first.Dir, repaired.Dir)
	require.Equal(t, 6, calls(t, log))

	// So is one that has lost a bit, wherever it was.
	for i, name := range []string{host.WeightsFile, host.ReferenceFile, "megakernel.cu"} {
		damaged := []byte(text(t, first.Dir, name))
		damaged[len(damaged)/2] ^= 1
		put(t, first.Dir, name, string(damaged))
		repaired, err = Cached(t.Context(), o, nil)
		require.NoError(t, err)
		require.False(t, repaired.Reused, name)
		require.Equal(t, 9+3*i, calls(t, log), name)
		v, err = Verify(first.Dir, nil)
		require.NoError(t, err)
		require.NoError(t, v.Findings.Err(), name)
	}

	// Without tools what is there can be had, and nothing else.
	t.Setenv("PATH", t.TempDir())
	again, err = Cached(t.Context(), o, nil)
	require.NoError(t, err)
	require.True(t, again.Reused)
}

// Builds of one model that differ in their kernels share one file of weights. A damaged one is packed again, and
// shared again.
func TestCachedWeightsAreShared(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	fakeTools(t, goodNVCC)
	cached := func(depth string) (*CachedBuild, os.FileInfo) {
		o := zooOptions("llama-gqa")
		var err error
		o.Config, err = knobs.Settings{"pipelining_depth": knobs.Value(depth)}.Config()
		require.NoError(t, err)
		b, err := Cached(t.Context(), o, nil)
		require.NoError(t, err)
		info, err := os.Stat(filepath.Join(b.Dir, host.WeightsFile))
		require.NoError(t, err)
		return b, info
	}
	first, one := cached("2")
	second, two := cached("3")
	require.NotEqual(t, first.Dir, second.Dir)
	require.True(t, os.SameFile(one, two))

	f, err := os.OpenFile(filepath.Join(first.Dir, host.WeightsFile), os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("damage"), one.Size()-6)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	third, three := cached("1")
	require.False(t, os.SameFile(one, three))
	for _, b := range []*CachedBuild{third, first, second} {
		depth := map[*CachedBuild]string{first: "2", second: "3", third: "1"}[b]
		_, info := cached(depth)
		require.True(t, os.SameFile(three, info), depth)
		v, err := Verify(b.Dir, nil)
		require.NoError(t, err)
		require.NoError(t, v.Findings.Err())
	}
}

// Of several processes that want the same build one makes it, and the others wait for it.
func TestCachedAtOnce(t *testing.T) {
	log := fakeTools(t, "sleep 0.2\n"+goodNVCC)
	var made atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			b, err := Cached(t.Context(), zooOptions("llama-gqa"), nil)
			if err != nil {
				t.Error(err)
			} else if !b.Reused {
				made.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, made.Load())
	require.Equal(t, 3, calls(t, log))
}

// Whatever changes the build changes where it is.
func TestCacheKey(t *testing.T) {
	dirs := map[string]string{}
	key := func(what string, edit func(*Options, string)) {
		model := filepath.Join(t.TempDir(), "model")
		require.NoError(t, os.CopyFS(model, os.DirFS("../testdata/models/zoo/llama-gqa")))
		o := zooOptions("llama-gqa")
		o.Model = model
		edit(&o, model)
		l, err := RunPasses(o)
		require.NoError(t, err)
		defer l.Close()
		k, err := buildKey(l, &BuildOptions{Options: o})
		require.NoError(t, err)
		for other, taken := range dirs {
			require.NotEqual(t, taken, k, "%s and %s", what, other)
		}
		dirs[what] = k
	}
	key("nothing", func(*Options, string) {})
	key("max_seq", func(o *Options, _ string) { o.MaxSeq = 16 })
	key("name", func(o *Options, _ string) { o.Name = "other" })
	key("target", func(o *Options, _ string) { o.Target = ir.FindTarget("l4") })
	key("schedule", func(o *Options, _ string) { o.Config.PipeliningDepth = 2 })
	key("seed", func(o *Options, _ string) { o.RandomSeed = new(uint64) })
	key("one weight", func(_ *Options, dir string) {
		path := filepath.Join(dir, "model.safetensors")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		text[len(text)-1] ^= 1
		require.NoError(t, os.WriteFile(path, text, 0o644))
	})

	again := dirs["nothing"]
	delete(dirs, "nothing")
	key("nothing", func(*Options, string) {})
	require.Equal(t, again, dirs["nothing"], "the directory of the model does not matter")
}

func TestCachedWithoutTools(t *testing.T) {
	model, err := filepath.Abs("../testdata/models/zoo/llama-gqa")
	require.NoError(t, err)
	fakeTools(t, goodNVCC)
	for _, tool := range []string{"g++", "nvcc"} {
		require.NoError(t, os.Remove(filepath.Join(os.Getenv("PATH"), tool)))
		if tool == "nvcc" {
			t.Setenv("CUDA_HOME", "")
			if FindNVCC() != "" {
				t.Skip("this machine has an nvcc that is found anywhere")
			}
		}
		o := zooOptions("llama-gqa")
		o.Model = model
		_, err := Cached(t.Context(), o, nil)
		require.ErrorContains(t, err, "there is no "+tool+" here")
		require.ErrorContains(t, err, "amkc run DIR")
		require.ErrorContains(t, err, "AMK5113")
		require.NoDirExists(t, os.Getenv(CacheVariable))
	}
}

func TestCachedCompileFails(t *testing.T) {
	fakeTools(t, `[ "$1" = --version ] && exit
echo "megakernel.cu(7): error: no" ; exit 1`)
	_, err := Cached(t.Context(), zooOptions("llama-gqa"), nil)
	var d *diag.Diagnostic
	require.ErrorAs(t, err, &d)
	require.Equal(t, codeNVCC.ID, d.Code)
	sources, err := filepath.Glob(filepath.Join(os.Getenv(CacheVariable), "*", "megakernel.cu"))
	require.NoError(t, err)
	require.Len(t, sources, 1, "the sources stay, to be looked at")

	cache := os.Getenv(CacheVariable)
	fakeTools(t, goodNVCC)
	t.Setenv(CacheVariable, cache)
	b, err := Cached(t.Context(), zooOptions("llama-gqa"), nil)
	require.NoError(t, err)
	require.False(t, b.Reused, "a build without kernels is not reused")
	require.Equal(t, filepath.Dir(sources[0]), b.Dir)
}

// A build for a search is another one, whose kernels are all compiled otherwise.
func TestCachedForAMeasurement(t *testing.T) {
	log := fakeTools(t, strings.Replace(goodNVCC, "while", `case "$*" in
*AMK_LEAN=1*) echo lean >> LOG ;;
esac
while`, 1))
	l, err := RunPasses(zooOptions("llama-gqa"))
	require.NoError(t, err)
	defer l.Close()
	dirs := map[string]bool{}
	for _, c := range []struct {
		kernels Kernels
		lean    int
	}{{AllKernels, 0}, {SearchKernels, 3}} {
		made, err := CachedOf(t.Context(), l, c.kernels, 0, nil)
		require.NoError(t, err)
		require.False(t, made.Reused)
		require.False(t, dirs[made.Dir])
		dirs[made.Dir] = true
		require.Equal(t, c.lean, strings.Count(text(t, "", log), "lean"))
		again, err := CachedOf(t.Context(), l, c.kernels, 0, nil)
		require.NoError(t, err)
		require.True(t, again.Reused)
	}
}

// nvcc is at work while weights are packed, which is shown first, and ends when that is cancelled.
func TestWeightsArePackedMeanwhile(t *testing.T) {
	log := fakeTools(t, goodNVCC)
	var shown []string
	_, err := Cached(t.Context(), zooOptions("llama-gqa"), func(s progress.Step) {
		activity, _, _ := strings.Cut(s.Activity, " ")
		if shown = append(shown, activity); activity == "packing" {
			require.Eventually(t, func() bool { return calls(t, log) > 0 }, time.Minute, time.Millisecond)
		}
	})
	require.NoError(t, err)
	require.Contains(t, shown, "packing")
	require.Contains(t, shown, "nvcc")
	require.NotContains(t, shown[slices.Index(shown, "nvcc"):], "packing")

	fakeTools(t, `[ "$1" = --version ] && exit
exec /bin/sleep 600`) // which the test does not wait for
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Cached(ctx, zooOptions("llama-gqa"), func(s progress.Step) {
		if strings.HasPrefix(s.Activity, "packing") {
			cancel()
		}
	})
	require.Error(t, err)
}

// What nvcc has started and leaves behind holds its output open, and nobody waits for that.
func TestCachedCompileIsEndedInTime(t *testing.T) {
	begun := filepath.Join(t.TempDir(), "begun")
	fakeTools(t, strings.ReplaceAll(`[ "$1" = --version ] && exit
: > BEGUN
(i=0; while [ -e BEGUN ] && [ $i -lt 600 ]; do /bin/sleep 1; i=$((i + 1)); done; /bin/rm -f BEGUN) & wait`,
		"BEGUN", begun))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := Cached(ctx, zooOptions("llama-gqa"), func(s progress.Step) {
		for strings.HasPrefix(s.Activity, "nvcc") && ctx.Err() == nil { // the weights are packed
			if _, err := os.Stat(begun); err == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	})
	require.ErrorContains(t, err, "interrupted")
	require.FileExists(t, begun, "what nvcc has started has not ended")
}

// A build for whose sources nvcc certainly takes longer than it may is not begun; one that is in the cache is found.
func TestSlowBuildsAreNotBegun(t *testing.T) {
	log := fakeTools(t, goodNVCC)
	lowered := func(roll knobs.Value) *Scheduled {
		o := zooOptions("llama-gqa")
		var err error
		o.Config, err = knobs.Settings{"tiling.loop.roll": roll}.Config()
		require.NoError(t, err)
		l, err := RunPasses(o)
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		return l
	}
	written, looped := lowered("0"), lowered("1")
	short := time.Duration(nvccLeast(3)*float64(time.Second)) - 1
	_, err := CachedOf(t.Context(), written, SearchKernels, short, nil)
	require.ErrorContains(t, err, "code for each of 3 layers")
	require.ErrorContains(t, err, "want code for at most 2, ")
	require.ErrorContains(t, err, "a larger --timeout")
	require.ErrorContains(t, err, CodeTooSlow)
	require.Zero(t, calls(t, log))

	_, err = CachedOf(t.Context(), looped, SearchKernels, short, nil)
	require.NoError(t, err)
	require.NotZero(t, calls(t, log))
	for _, limit := range []time.Duration{short + 2, short, 0} {
		b, err := CachedOf(t.Context(), written, SearchKernels, limit, nil)
		require.NoError(t, err)
		require.Equal(t, limit != short+2, b.Reused)
	}
}

// What is refused is below what nvcc was measured to take, by a quarter and more, and yet all that campaigns have lost
// 90 s with, builds of 16, 28 and 30 layers. Those of 6 were built.
func TestLeastTimesOfNVCC(t *testing.T) {
	for layers, seconds := range map[int]float64{2: 8.4, 4: 17.2, 8: 40.7, 12: 95.7, 16: 150.5} {
		require.Less(t, nvccLeast(layers), 0.76*seconds, "%d layers", layers)
	}
	require.Greater(t, nvccLeast(16), 90.0)
	require.Less(t, nvccLeast(6), 90.0/2)
}
