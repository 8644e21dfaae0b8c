package cli

import (
	"context"

	"amkc/compiler"
	"amkc/ir/diag"
	"amkc/passes/checkpoint"
	"amkc/runtime/driver"
	"amkc/runtime/host"
)

// An engine decodes. Both devices number positions from 0 and choose greedily, the lowest id among equal logits.
type engine interface {
	// Feed decodes ids, and gives the logits [vocab] after each to onLogits; the slice is valid during the call.
	Feed(ctx context.Context, ids []int, onLogits func(position int, logits []float32) error) (next int, err error)
	// Complete decodes a prompt and up to n tokens after it, until one of stops, and gives each to emit.
	Complete(ctx context.Context, prompt []int, n int, stops []int, emit func(id int) error) (host.Completion, error)
	Close() error
}

// The devices, as --device names them.
const (
	deviceRef  = "ref"
	deviceCUDA = "cuda"
)

// opened is an engine with what a caller needs to know about the model behind it.
type opened struct {
	engine
	device string
	build  string // in the cache, if a model was built to be opened
	vocab  int
	maxSeq int
}

// open opens a model or a build directory on a device: the one that was asked for, or else the one of defaultDevice.
func open(ctx context.Context, c *call, device string, gpu int, dir string, m *modelFlags) (*opened, error) {
	if flag := m.changed(c); flag != "" && isBuild(dir) {
		return nil, c.usage("--%s says how to compile a model, and %s is a build already", flag, dir)
	}
	if device == "" {
		device = defaultDevice(c, gpu, dir, m)
		defer func() { c.note("device: %s", device) }()
	}
	switch {
	case device == deviceCUDA && isBuild(dir):
		return openCUDA(ctx, c, dir, gpu)
	case device == deviceCUDA:
		return openModelCUDA(ctx, c, dir, gpu, m)
	case gpu != 0:
		return nil, c.usage("--gpu %d goes with --device cuda", gpu)
	}
	return openRef(c, dir, m)
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
func checkDirectory(dir string) error {
	if isBuild(dir) {
		return nil
	}
	_, err := checkpoint.OpenConfig(dir)
	return err
}

// notBuild refuses what only a build will do for.
func notBuild(dir string) error {
	return diag.Errorf(codeNeedsBuild, dir,
		"this is no build of amkc: it has no %s; compile the model first, amkc %s -o build/", host.ManifestFile, dir)
}
