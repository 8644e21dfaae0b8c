package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"amkc/app/front"
	"amkc/compiler"
	"amkc/ir/diag"
	"amkc/runtime/driver"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/text/sampling"
)

// isBuild reports whether a directory is the output of amkc, rather than a model.
func isBuild(dir string) bool {
	_, noManifest := os.Lstat(filepath.Join(dir, host.ManifestFile)) // a link to nothing is reported where it is read
	_, noWork := os.Lstat(filepath.Join(dir, host.WorkDir))
	return noManifest == nil || noWork == nil
}

// openModelCUDA builds a model for a GPU, unless the cache has the build, and opens it there.
func openModelCUDA(ctx context.Context, c *call, dir string, p place, m *modelFlags) (*opened, error) {
	if err := m.needGPU(c, dir, p.gpu, runsOnCPU); err != nil {
		return nil, err
	}
	opts, err := m.optionsForGPU(c, dir, p.gpu)
	if err != nil {
		return nil, err
	}
	if opts.Passes, err = p.passes(c); err != nil {
		return nil, err
	}
	line := c.progress()
	b, err := compiler.Cached(ctx, opts, line.Show)
	line.Clear()
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
	o, err := openCUDA(ctx, c, b.Dir, p.gpu)
	if err != nil {
		return nil, err
	}
	o.build = b.Dir
	return o, nil
}

// runsOnCPU is what there is instead of a GPU, for what decodes.
const runsOnCPU = "--device ref runs on the CPU"

// needGPU refuses to go on where the GPU is not there that a model is to be built for, before anything is built. What
// is wrong with the model comes first. instead says what needs no GPU.
func (m *modelFlags) needGPU(c *call, model string, gpu int, instead string) error {
	count, err := driver.Count()
	var missing *diag.Diagnostic
	switch {
	case err != nil:
		missing = diag.Errorf(codeDevice, "--device cuda", "%v", infile.Reason(err)).With(instead)
	case gpu >= count:
		missing = diag.Errorf(codeDevice, "--gpu", "%d; this machine has GPUs 0 to %d", gpu, count-1)
	default:
		return nil
	}
	of := *m
	of.config, of.gpu = "", gpu
	opts, err := of.options(c, model)
	if err != nil {
		return err
	}
	return modelFirst(opts, missing)
}

// openCUDA opens a build directory on a GPU.
func openCUDA(ctx context.Context, c *call, dir string, gpu int) (*opened, error) {
	s, err := openSession(ctx, c, dir, gpu, runsOnCPU)
	if err != nil {
		return nil, err
	}
	facts := s.Facts()
	return &opened{engine: cudaEngine{front.Watched{Session: s, Line: c.progress()}, dir}, device: deviceCUDA,
		name:  facts.Model.Name,
		vocab: facts.Model.Vocab, maxSeq: facts.Model.MaxSeq, hidden: facts.Model.Hidden,
		chunk: facts.PromptPart()}, nil
}

// openSession opens a build directory on a GPU; callers need not want an engine. instead says what needs no GPU.
func openSession(ctx context.Context, c *call, dir string, gpu int, instead string) (*host.Session, error) {
	line := c.progress()
	defer line.Clear()
	s, err := host.Open(ctx, dir, host.Options{GPU: gpu, Progress: line.ReportBytes})
	return s, withoutGPU(dir, err, instead)
}

// withoutGPU is hostError for what opens a GPU; where there is none, instead says what needs none.
func withoutGPU(dir string, err error, instead string) error {
	diagnosed := hostError(dir, err)
	var d *diag.Diagnostic
	if (errors.Is(err, driver.ErrNoDriver) || errors.Is(err, driver.ErrNoDevice)) && errors.As(diagnosed, &d) {
		d.With(instead)
	}
	return diagnosed
}

// A cudaEngine is a session on a GPU whose errors are diagnostics, and which shows how far it is with a long prompt.
type cudaEngine struct {
	front.Watched
	dir string
}

func (e cudaEngine) Feed(ctx context.Context, ids []int, onLogits func(int, []float32) error) (int, error) {
	next, err := e.Watched.Feed(ctx, ids, onLogits)
	return next, hostError(e.dir, err)
}

func (e cudaEngine) State(ctx context.Context, id int) ([]float32, error) {
	state, err := e.Session.State(ctx, id)
	return state, hostError(e.dir, err)
}

func (e cudaEngine) Complete(ctx context.Context, prompt []int, n int, stops []int,
	emit func(int) error) (host.Completion, error) {
	done, err := e.Watched.Complete(ctx, prompt, n, stops, emit)
	return done, hostError(e.dir, err)
}

// hostError gives the plain errors of the host packages a code: the directory is not a build, the request does not fit
// it, or the machine is at fault.
func hostError(dir string, err error) error {
	var d *diag.Diagnostic
	var list diag.List
	var build *host.BuildError
	var several *host.SeveralError
	var position *host.PositionError
	var token *host.TokenError
	var logits *sampling.LogitsError
	switch {
	case err == nil, errors.As(err, &d), errors.As(err, &logits), errors.As(err, &list),
		errors.Is(err, context.Canceled), errors.Is(err, front.ErrStop):
		return err
	case errors.As(err, &build):
		return diag.Errorf(codeNeedsBuild, dir, "%v", infile.Reason(err))
	case errors.As(err, &several):
		return diag.Errorf(codeSeveral, dir, "%v", several)
	case errors.As(err, &position), errors.As(err, &token):
		return diag.Errorf(codePrompt, dir, "%v", infile.Reason(err))
	}
	return diag.Errorf(codeDevice, dir, "%v", infile.Reason(err))
}
