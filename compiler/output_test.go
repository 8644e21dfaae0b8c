package compiler

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/progress"
)

// put writes a file below dir.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func text(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(b)
}

// leftovers are what a build that did not succeed must not leave, in its directory and next to it.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	beside, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*"))
	require.NoError(t, err)
	inside, err := filepath.Glob(filepath.Join(dir, ".*"))
	require.NoError(t, err)
	return append(beside, inside...)
}

func emitted(model, dir string) BuildOptions {
	return BuildOptions{Options: Options{Model: model, Name: "zoo", Target: ir.FindTarget("t4")}, OutDir: dir,
		NoBuild: true}
}

// Packed weights are used again for another schedule, and not for other weights of the same shapes.
func TestWeightsAreReusedWhenTheyAreTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	model, dir := filepath.Join(t.TempDir(), "model"), filepath.Join(t.TempDir(), "out")
	require.NoError(t, os.CopyFS(model, os.DirFS("../testdata/models/zoo/llama-gqa")))
	first, err := Compile(context.Background(), emitted(model, dir))
	require.NoError(t, err)
	require.False(t, first.WeightsReused)
	before := text(t, dir, host.WeightsFile)

	o := emitted(model, dir)
	o.Config = ir.ScheduleConfig{PipeliningDepth: 2}
	second, err := Compile(context.Background(), o)
	require.NoError(t, err)
	require.True(t, second.WeightsReused)
	require.Equal(t, before, text(t, dir, host.WeightsFile))

	files, err := filepath.Glob(filepath.Join(model, "*.safetensors"))
	require.NoError(t, err)
	raw, err := os.ReadFile(files[0])
	require.NoError(t, err)
	raw[len(raw)-2] ^= 1
	require.NoError(t, os.WriteFile(files[0], raw, 0o644))
	third, err := Compile(context.Background(), o)
	require.NoError(t, err)
	require.False(t, third.WeightsReused, "one bit of the checkpoint is another")
	require.NotEqual(t, before, text(t, dir, host.WeightsFile))

	require.NoError(t, os.Truncate(filepath.Join(dir, host.WeightsFile), 100))
	fourth, err := Compile(context.Background(), o)
	require.NoError(t, err)
	require.False(t, fourth.WeightsReused, "the file is not what it was")

	good := text(t, dir, host.WeightsFile)
	flipped := []byte(good)
	flipped[len(flipped)/2] ^= 1
	put(t, dir, host.WeightsFile, string(flipped))
	v, err := Verify(dir, nil)
	require.NoError(t, err)
	require.ErrorContains(t, v.Findings.Err(), "AMK4902")
	fifth, err := Compile(context.Background(), o)
	require.NoError(t, err)
	require.False(t, fifth.WeightsReused, "one bit of the file is another")
	require.Contains(t, fifth.Warnings.Error(), "the weights are packed again [AMK4902]")
	require.Equal(t, good, text(t, dir, host.WeightsFile))
	v, err = Verify(dir, nil)
	require.NoError(t, err)
	require.Empty(t, v.Findings)
}

// What is read is not written over, by whatever way the output leads to it.
func TestOwnInputs(t *testing.T) {
	model := filepath.Join(t.TempDir(), "model")
	require.NoError(t, os.CopyFS(model, os.DirFS("../testdata/models/zoo/llama-sharded-fp16")))
	shards, err := filepath.Glob(filepath.Join(model, "model-*.safetensors"))
	require.NoError(t, err)
	require.NotEmpty(t, shards)
	elsewhere := t.TempDir()
	for i, file := range append(shards, filepath.Join(model, "config.json"),
		filepath.Join(model, "model.safetensors.index.json")) {
		link, hard := filepath.Join(elsewhere, fmt.Sprint("link", i)), filepath.Join(elsewhere, fmt.Sprint("hard", i))
		require.NoError(t, os.Symlink(file, link))
		require.NoError(t, os.Link(file, hard))
		for _, out := range []string{file, link, hard} {
			requireAMK(t, "AMK5123", RefuseInput(out, model))
			requireAMK(t, "AMK5123", RefuseInput(out, file))
		}
	}
	require.NoError(t, RefuseInput(filepath.Join(model, "packed.safetensors"), model))
	put(t, model, "packed.safetensors", "of an earlier run")
	require.NoError(t, RefuseInput(filepath.Join(model, "packed.safetensors"), model))

	before := text(t, model, "config.json")
	link := filepath.Join(elsewhere, "model")
	require.NoError(t, os.Symlink(model, link))
	put(t, model, host.ManifestFile, `{"files": {}}`) // otherwise it is not an output directory to begin with
	for _, out := range []string{model, link} {
		_, err := Compile(t.Context(), emitted(model, out))
		requireAMK(t, "AMK5123", err)
	}
	require.Equal(t, before, text(t, model, "config.json"))

	// A configuration instead of a file of the build.
	dir := filepath.Join(t.TempDir(), "out")
	_, err = Compile(t.Context(), emitted("../testdata/models/zoo/llama-gqa", dir))
	require.NoError(t, err)
	o := emitted("../testdata/models/zoo/llama-gqa", dir)
	o.Inputs = []string{filepath.Join(dir, "program.json")}
	_, err = Compile(t.Context(), o)
	requireAMK(t, "AMK5123", err)
	require.Empty(t, leftovers(t, dir))
}

func requireAMK(t *testing.T, code string, err error) {
	t.Helper()
	var d *diag.Diagnostic
	require.ErrorAs(t, err, &d)
	require.Equal(t, code, d.Code)
}

// An interrupted compile leaves an earlier build as it was.
func TestInterruptedCompileKeepsTheEarlierBuild(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	const model = "../testdata/models/zoo/llama-gqa"
	_, err := Compile(context.Background(), emitted(model, dir))
	require.NoError(t, err)
	before := text(t, dir, host.ManifestFile)

	tools := t.TempDir()
	put(t, tools, "g++", "#!/bin/sh\n")
	put(t, tools, "nvcc", "#!/bin/sh\nexec sleep 60\n")
	for _, name := range []string{"g++", "nvcc"} {
		require.NoError(t, os.Chmod(filepath.Join(tools, name), 0o755))
	}
	t.Setenv("PATH", tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	ctx, cancel := context.WithCancel(context.Background())
	o := emitted(model, dir)
	o.NoBuild, o.Config = false, ir.ScheduleConfig{PipeliningDepth: 2}
	o.Progress = func(s progress.Step) {
		if strings.HasPrefix(s.Activity, "nvcc") {
			cancel()
		}
	}
	_, err = Compile(ctx, o)
	require.ErrorContains(t, err, "interrupted")
	require.Equal(t, before, text(t, dir, host.ManifestFile))
	require.Empty(t, leftovers(t, dir))
}
