package compiler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"time"

	"amkc/codegen"
	"amkc/compiler/builddir"
	"amkc/compiler/version"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/progress"
)

// CacheVariable is the environment variable with the path of the cache of builds.
const CacheVariable = "AMKC_CACHE"

// CacheDir is the directory in which [Cached] keeps builds: the value of CacheVariable, or else amkc in the user's
// cache directory.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheVariable); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", diag.Errorf(builddir.CodeUnusable, "cache",
			"there is no cache directory to build into (%v); name one in %s", infile.Reason(err), CacheVariable)
	}
	return filepath.Join(dir, "amkc"), nil
}

// A CachedBuild is a build in the cache, with its kernels and without the executable.
type CachedBuild struct {
	Dir      string
	Reused   bool // an earlier call has made it
	Warnings diag.List
}

// Cached makes a build of a model in the cache, or finds the one that an earlier call has made from the same inputs:
// the generated sources, which contain the program and the runtime, the files of the model, its weights, and the
// version of amkc. Finding a build needs no tools. Making one needs nvcc, but not Go.
//
// Nothing is ever removed: the cache is a directory of builds, each of which may be deleted. Builds with the same
// weights share one file through links (weights).
func Cached(ctx context.Context, o Options, report progress.Func) (*CachedBuild, error) {
	l, err := RunPasses(o)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return CachedOf(ctx, l, AllKernels, 0, report)
}

// CachedOf is Cached for a program that is already lowered, with its weights, and for these kernels. limit is the time
// for nvcc, or 0: a build that certainly takes longer is not started. Only ctx stops a running build.
func CachedOf(ctx context.Context, l *Scheduled, kernels Kernels, limit time.Duration, report progress.Func) (
	*CachedBuild, error) {
	o := l.options
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	b := BuildOptions{Options: o, NoLauncher: true, Progress: report, kernels: kernels,
		shared: sharedWeights(filepath.Join(cache, "weights"))}
	report.Report(progress.Step{Activity: "looking for a build"})
	key, err := buildKey(l, &b)
	if err != nil {
		return nil, err
	}
	b.OutDir = filepath.Join(cache, key)
	found := &CachedBuild{Dir: b.OutDir, Warnings: l.Warnings}
	if found.Reused = isComplete(b.OutDir, report); found.Reused {
		return found, nil
	}
	if err := canCompileCUDA(o.Model); err != nil {
		return nil, err
	}
	if err := tooSlow(limit, append(slices.Clone(l.Passes), l.Program)...); err != nil {
		return nil, err
	}
	made, err := build(ctx, l, b, func() (*builddir.Dir, error) { return beginCached(ctx, b.OutDir, report) })
	switch {
	case err == nil:
		found.Warnings = append(made.Warnings, made.Proof.Diags.Warnings()...)
	case errors.Is(err, errMade):
		found.Reused = true
	default:
		return nil, err
	}
	return found, nil
}

// errMade says that another process has made the build in the meantime.
var errMade = errors.New("the build is there")

// beginCached waits for other processes that make the same build.
func beginCached(ctx context.Context, dir string, report progress.Func) (*builddir.Dir, error) {
	wait := func() { report.Report(progress.Step{Activity: "waiting for another amkc that makes this build"}) }
	d, err := builddir.Begin(ctx, dir, wait)
	if err == nil && isComplete(dir, report) {
		d.Close()
		return nil, errMade
	}
	return d, err
}

// buildKey digests what determines a build.
func buildKey(l *Scheduled, o *BuildOptions) (string, error) {
	weights, err := l.weightsKey(o.RandomSeed, o.Progress)
	if err != nil {
		return "", err
	}
	files, err := projectFiles(l, o)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "amkc build 1\n%s\nweights %s\n", version.Get().Version, weights.key)
	if flags := o.kernels.flags(); len(flags) > 0 {
		fmt.Fprintln(h, flags)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%s %s\n", codegen.Digest(files[name]), name)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// isComplete reports whether a build of the cache can be run: one that was interrupted, or for which nvcc failed, has
// its sources and no kernels, and one that was damaged has other digests.
func isComplete(dir string, report progress.Func) bool {
	m, err := readManifest(dir)
	if err != nil {
		return false
	}
	kernels := []string{host.FatbinFile, host.ReferenceFile}
	for _, p := range m.Facts.Passes {
		kernels = append(kernels, path.Join(p.Dir(), host.FatbinFile))
	}
	if m.Facts.Prompt > 0 {
		kernels = append(kernels, host.PromptFile)
	}
	for _, name := range kernels {
		if m.Built[name] == "" {
			return false
		}
	}
	complete := true
	eachFile(m, func(name, digest string, size int64) bool {
		complete = mismatch(dir, name, digest, size, report) == ""
		return complete
	})
	return complete
}

// CanCompileCUDA reports whether nvcc and its host compiler are installed.
func CanCompileCUDA() bool { return canCompileCUDA("") == nil }

func canCompileCUDA(model string) error {
	missing := ""
	if FindNVCC() == "" {
		missing = "nvcc"
	} else if _, err := exec.LookPath("g++"); err != nil {
		missing = "g++"
	}
	if missing == "" {
		return nil
	}
	return diag.Errorf(codeCacheTools, model,
		"there is no %s here, and the GPU runs kernels that it compiles; want nvcc on PATH, in CUDA_HOME "+
			"or in .cuda next to amkc (make cuda fetches one), with g++ as its host compiler", missing).
		With("on a machine that has them: amkc "+model+" -o DIR; a build runs without any tool: amkc run DIR",
			"--device ref runs the model on the CPU")
}
