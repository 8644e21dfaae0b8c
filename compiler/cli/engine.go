package cli

import (
	"context"

	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/compiler"
	"amkc/importers/checkpoint"
	"amkc/ir/diag"
	"amkc/refvm"
	"amkc/runtime/driver"
	"amkc/runtime/host"
	"amkc/text/sampling"
)

// An engine decodes. Both devices number positions from 0 and choose greedily, the lowest id among equal logits.
type engine interface {
	// Feed decodes ids, and gives the logits [vocab] after each to onLogits; the slice is valid during the call.
	Feed(ctx context.Context, ids []int, onLogits func(position int, logits []float32) error) (next int, err error)
	// Complete decodes a prompt and up to n tokens after it, until one of stops, and gives each to emit.
	Complete(ctx context.Context, prompt []int, n int, stops []int, emit func(id int) error) (host.Completion, error)
	// State decodes an id, and returns the last hidden state after it, valid until the next call.
	State(ctx context.Context, id int) ([]float32, error)
	// Position is that of the next token; the cache holds the rows before it.
	Position() int
	// Reset starts a new sequence at position 0.
	Reset()
	// Rewind makes an earlier position the next, and keeps what has been decoded before it.
	Rewind(position int) error
	sampling.Chooser
	Close() error
}

// The devices, as --device names them.
const (
	deviceRef  = "ref"
	deviceCUDA = "cuda"
)

// A place is where something is decoded: what --device and --gpu say.
type place struct {
	device    string // empty: the one of defaultDevice
	gpu       int
	round     refvm.Rounding // of the reference VM, for those who want what the kernel makes of a model; no flag
	passFlags                // of a model that is built
}

// newGPU is the value of --gpu.
func newGPU(gpu *int) *front.Count { return front.NewCount(gpu, 0, 0, 1023) }

func (p *place) define(f *pflag.FlagSet) {
	f.Var(newChoice(&p.device, "", deviceRef, deviceCUDA), "device",
		"where to run: ref is the reference VM on the CPU; default: cuda where there is a GPU and, for a model, "+
			"nvcc; else ref")
	f.Var(newGPU(&p.gpu), "gpu", "use GPU number `N`, for --device cuda")
	p.defineRows(f)
}

// note says which device was chosen where the command line names none.
func (p *place) note(c *call) {
	if p.device == deviceRef {
		c.note("device: %s, the reference VM on the CPU", p.device)
		return
	}
	c.note("device: %s", p.device)
}

// opened is an engine with what a caller needs to know about its model.
type opened struct {
	engine
	device string
	build  string // in the cache, if a model was built to be opened
	name   string // of the model
	vocab  int
	maxSeq int
	hidden int // elements of a hidden state
	chunk  int // tokens of a prompt that Feed takes in a short time
}

// open opens a model or a build directory at a place.
func open(ctx context.Context, c *call, p place, dir string, m *modelFlags) (*opened, error) {
	if p.device == "" {
		p.device = defaultDevice(c, p.gpu, dir, m)
		defer func() { p.note(c) }()
	}
	switch flag := p.set(); {
	case flag != "" && isBuild(dir):
		return nil, c.builtAlready(flag, dir)
	case p.device == deviceCUDA && isBuild(dir):
		return openCUDA(ctx, c, dir, p.gpu)
	case p.device == deviceCUDA:
		return openModelCUDA(ctx, c, dir, p, m)
	case flag == "rows":
		return nil, c.usage("passes of several rows (--rows, --draft) go with --device cuda")
	case flag != "":
		return nil, c.usage("passes of several sequences (--sequences) go with --device cuda")
	case p.gpu != 0:
		return nil, c.usage("--gpu %d goes with --device cuda", p.gpu)
	}
	return openRef(ctx, c, p.round, dir, m)
}

// defaultDevice is the GPU, if there is one and it can run what is named: a build, or a model that can be built here
// for it. A program for some other target is for the reference VM.
func defaultDevice(c *call, gpu int, dir string, m *modelFlags) string {
	if isBuild(dir) {
		if _, err := driver.Count(); err == nil {
			return deviceCUDA
		}
	} else if m.forThisGPU(c) && compiler.CanCompileCUDA() {
		if _, err := liveTarget(0, gpu); err == nil {
			return deviceCUDA
		}
	}
	return deviceRef
}

// checkDirectory refuses what is neither a build nor a model, before anything is looked for in it.
func (m *modelFlags) checkDirectory(dir string) error {
	if isBuild(dir) {
		return nil
	}
	adapters, err := m.adapterDirs()
	if err == nil {
		_, err = checkpoint.OpenConfig(dir, adapters...)
	}
	return err
}

// notBuild refuses what only a build will do for.
func notBuild(dir string) error {
	return diag.Errorf(codeNeedsBuild, dir,
		"this is not a build of amkc: it has no %s; compile the model first, amkc %s -o build/", host.ManifestFile, dir)
}
