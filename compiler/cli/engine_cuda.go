package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"amkc/compiler"
	"amkc/ir/diag"
	"amkc/runtime/driver"
	"amkc/runtime/host"
)

// isBuild reports whether a directory is the output of amkc, rather than a model.
func isBuild(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, host.ManifestFile))
	return err == nil
}

// openModelCUDA builds a model for a GPU, unless the cache has the build, and opens it there.
func openModelCUDA(ctx context.Context, c *call, dir string, gpu int, m *modelFlags) (*opened, error) {
	if _, err := driver.Count(); err != nil {
		return nil, hostError("--device cuda", err)
	}
	opts, err := m.optionsForGPU(c, dir, gpu)
	if err != nil {
		return nil, err
	}
	line := c.progress()
	b, err := compiler.Cached(ctx, opts, line.report)
	line.clear()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	}
	c.report(b.Warnings)
	how := "compiled"
	if b.Reused {
		how = "reused"
	}
	c.note("build: %s (%s)", b.Dir, how)
	o, err := openCUDA(ctx, c, b.Dir, gpu)
	if err != nil {
		return nil, err
	}
	o.build = b.Dir
	return o, nil
}

// openCUDA opens a build directory on a GPU.
func openCUDA(ctx context.Context, c *call, dir string, gpu int) (*opened, error) {
	s, err := openSession(ctx, c, dir, gpu)
	if err != nil {
		return nil, err
	}
	facts := s.Facts()
	return &opened{engine: cudaEngine{s, dir}, device: deviceCUDA, vocab: facts.Model.Vocab, maxSeq: facts.Model.MaxSeq}, nil
}

// openSession opens a build directory on a GPU, for what is no engine too.
func openSession(ctx context.Context, c *call, dir string, gpu int) (*host.Session, error) {
	line := c.progress()
	defer line.clear()
	s, err := host.Open(ctx, dir, host.Options{GPU: gpu, Progress: line.report})
	return s, hostError(dir, err)
}

// A cudaEngine is a session on a GPU whose errors are diagnostics.
type cudaEngine struct {
	*host.Session
	dir string
}

func (e cudaEngine) Feed(ctx context.Context, ids []int, onLogits func(int, []float32) error) (int, error) {
	next, err := e.Session.Feed(ctx, ids, onLogits)
	return next, hostError(e.dir, err)
}

func (e cudaEngine) Complete(ctx context.Context, prompt []int, n int, stops []int, emit func(int) error) (host.Completion, error) {
	done, err := e.Session.Complete(ctx, prompt, n, stops, emit)
	return done, hostError(e.dir, err)
}

// hostError gives the plain errors of the host packages a code: the directory is no build, the request does not fit it, or
// the machine is at fault.
func hostError(dir string, err error) error {
	var d *diag.Diagnostic
	var build *host.BuildError
	var position *host.PositionError
	var token *host.TokenError
	switch {
	case err == nil, errors.As(err, &d), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &build):
		return diag.Errorf(codeNeedsBuild, dir, "%v", err)
	case errors.As(err, &position), errors.As(err, &token):
		return diag.Errorf(codePrompt, dir, "%v", err)
	}
	diagnosed := diag.Errorf(codeDevice, dir, "%v", err)
	if errors.Is(err, driver.ErrNoDriver) || errors.Is(err, driver.ErrNoDevice) {
		diagnosed.With("--device ref runs on the CPU")
	}
	return diagnosed
}
