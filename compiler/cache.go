package compiler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"amkc/codegen"
	"amkc/compiler/version"
	"amkc/ir/diag"
	"amkc/runtime/host"
)

// CacheVariable is the environment variable that says where the cache of builds is.
const CacheVariable = "AMKC_CACHE"

// CacheDir is where [Cached] keeps builds: what CacheVariable says, or else amkc in the user's cache directory.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheVariable); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", diag.Errorf(codeOutDir, "cache", "there is no cache directory to build into (%v); name one in %s", err, CacheVariable)
	}
	return filepath.Join(dir, "amkc"), nil
}

// A CachedBuild is a build in the cache, with its kernels and without the executable.
type CachedBuild struct {
	Dir      string
	Reused   bool // an earlier call has made it
	Warnings diag.List
}

// Cached makes a build of a model in the cache, or finds the one that an earlier call has made of the same. What is the
// same is everything that determines a build: the generated sources, which hold the program and the runtime, the files of
// the model, its weights, and the version of amkc. Finding a build needs no tools; making one needs nvcc, and not Go.
//
// Nothing is ever removed: the cache is a directory of builds, each of which may be deleted.
func Cached(ctx context.Context, o Options, progress Progress) (*CachedBuild, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	l, err := Lower(o)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	b := BuildOptions{Options: o, NoLauncher: true, Progress: progress}
	progress.report("looking for a build", 0, 0)
	key, err := buildKey(l, &b)
	if err != nil {
		return nil, err
	}
	b.OutDir = filepath.Join(cache, key)
	found := &CachedBuild{Dir: b.OutDir, Warnings: l.Warnings}
	if found.Reused = isComplete(b.OutDir); found.Reused {
		return found, nil
	}
	if err := canCompileCUDA(o.Model); err != nil {
		return nil, err
	}
	out, err := openOutput(b.OutDir)
	if err != nil {
		return nil, err
	}
	made, err := build(ctx, l, b, out)
	switch {
	case err == nil:
		found.Warnings = append(made.Warnings, made.Proof.Diags.Warnings()...)
	case ctx.Err() == nil && isComplete(b.OutDir):
		found.Reused = true // another process was faster, and this one could not take its place
	default:
		return nil, err
	}
	return found, nil
}

// buildKey digests what determines a build.
func buildKey(l *Lowered, o *BuildOptions) (string, error) {
	weights, err := l.weightsKey(o.RandomSeed)
	if err != nil {
		return "", err
	}
	files, err := projectFiles(l, o)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "amkc build 1\n%s\nweights %s\n", version.Get().Version, weights)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%s %s\n", codegen.Digest(files[name]), name)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// isComplete reports whether a build of the cache can be run: one that was interrupted, or for which nvcc failed, has its
// sources and no kernels.
func isComplete(dir string) bool {
	m, err := readManifest(dir)
	if err != nil {
		return false
	}
	for _, name := range []string{host.FatbinFile, host.ReferenceFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	info, err := os.Stat(filepath.Join(dir, host.WeightsFile))
	return err == nil && info.Size() == m.Weights.Bytes
}

// CanCompileCUDA reports whether nvcc and its host compiler are here.
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
	return diag.Errorf(codeCacheTools, model, "there is no %s here, and the GPU runs kernels that it compiles; want nvcc on PATH, in CUDA_HOME "+
		"or in .cuda (make cuda fetches one), with g++ as its host compiler", missing).
		With("on a machine that has them: amkc "+model+" -o DIR; a build runs without any tool: amkc run DIR",
			"--device ref runs the model on the CPU")
}
