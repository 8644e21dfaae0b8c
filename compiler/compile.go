package compiler

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"amkc/codegen"
	"amkc/compiler/version"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes"
	"amkc/runtime/host"
	"amkc/validate"
)

// Progress is told how far a long activity is. Total 0 means unknown. A nil Progress is not told anything.
type Progress func(activity string, done, total int64)

func (p Progress) report(activity string, done, total int64) {
	if p != nil {
		p(activity, done, total)
	}
}

// BuildOptions say what to compile and where the build goes.
type BuildOptions struct {
	Options
	OutDir     string
	NoBuild    bool // emit and pack only: neither nvcc nor go is run
	NoLauncher bool // do not run go: who opens the build with package host needs no executable in it
	Progress   Progress
}

func (o *BuildOptions) progress(activity string, done, total int64) {
	o.Progress.report(activity, done, total)
}

// Build is what Compile has made.
type Build struct {
	Dir           string
	Program       *ir.Program
	Files         []string // of the build, sorted
	Pages         passes.PageReport
	Proof         validate.Report
	WeightBytes   int64
	WeightsReused bool
	Toolchain     codegen.Toolchain
	Built         bool      // the kernels are there, and the launcher if it was asked for
	Warnings      diag.List // of import, and of tools that are missing
}

// Compile makes a build: import, passes, proof, emission, packed weights and, unless told otherwise, the kernels and the
// launcher. The directory appears complete or not at all. Errors are diagnostics.
func Compile(ctx context.Context, o BuildOptions) (*Build, error) {
	out, err := openOutput(o.OutDir)
	if err != nil {
		return nil, err
	}
	l, err := Lower(o.Options)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return build(ctx, l, o, out)
}

// build makes a build of a lowered program.
func build(ctx context.Context, l *Lowered, o BuildOptions, out *output) (*Build, error) {
	b := &Build{Dir: o.OutDir, Program: l.Program, Pages: l.Pages, Warnings: l.Warnings}
	if b.Proof = validate.ProgramFor(validate.Kernel, l.Program); !b.Proof.OK {
		notes := make([]string, 0, len(b.Proof.Diags))
		for _, d := range b.Proof.Diags.Errors() {
			notes = append(notes, d.Error())
		}
		return nil, diag.Errorf(codeProof, o.Model, "the schedule is not proved safe, so nothing is emitted").With(notes...)
	}
	files, err := projectFiles(l, &o)
	if err != nil {
		return nil, err
	}
	m, err := newManifest(l, &o, files)
	if err != nil {
		return nil, err
	}
	stage, err := out.stage()
	if err != nil {
		return nil, err
	}
	defer stage.abort()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := stage.write(name, files[name]); err != nil {
			return nil, err
		}
	}
	if err := supplyWeights(ctx, l, &o, out, stage, m, b); err != nil {
		return nil, err
	}
	var broken error
	if !o.NoBuild {
		broken = b.runTools(ctx, &o, stage, l.Program.Target.Arch, files)
	}
	if broken != nil && ctx.Err() != nil {
		return nil, broken // interrupted: an earlier build stays as it was
	}
	m.Toolchain = b.Toolchain
	if !o.NoBuild {
		if m.Built, err = madeByTools(stage.dir, o.Name, files); err != nil {
			return nil, err
		}
	}
	m.Facts.CUDA = cudaVersion(b.Toolchain.NVCC)
	text, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	if err := stage.write(host.ManifestFile, text); err != nil {
		return nil, err
	}
	kept, err := stage.commit(m)
	if err != nil {
		return nil, err
	}
	b.Warnings.Add(kept...)
	b.Files, err = listFiles(o.OutDir)
	if broken != nil {
		return nil, broken // the emitted project stays, so that it can be looked at
	}
	return b, err
}

// runTools runs nvcc and go in the staged build.
func (b *Build) runTools(ctx context.Context, o *BuildOptions, s *stage, arch string, files map[string][]byte) error {
	var sources []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".cu") {
			sources = append(sources, name)
		}
	}
	tools, missing, err := toolBuild(ctx, s.dir, o, arch, sources)
	b.Toolchain = tools
	b.Warnings.Add(missing...)
	b.Built = err == nil && len(missing) == 0
	return err
}

// madeByTools digests the kernels and the launcher, those that are there.
func madeByTools(dir, launcher string, files map[string][]byte) (map[string]string, error) {
	names := []string{launcher}
	for name := range files {
		if base, ok := strings.CutSuffix(name, ".cu"); ok {
			names = append(names, base+".fatbin")
		}
	}
	made := map[string]string{}
	for _, name := range names {
		_, digest, err := fileDigest(filepath.Join(dir, name))
		switch {
		case err == nil:
			made[name] = digest
		case !errors.Is(err, fs.ErrNotExist):
			return nil, diag.Errorf(codeWriteOut, name, "cannot be read back: %v", err)
		}
	}
	return made, nil
}

// copied are the files of the model directory that a build carries along, where they are there.
var copied = []string{host.ConfigFile, host.GenConfigFile, host.TokenizerFile}

// projectFiles renders the generated files and adds the model's own.
func projectFiles(l *Lowered, o *BuildOptions) (map[string][]byte, error) {
	files, err := codegen.Project(l.Program, o.Name)
	if err != nil {
		return nil, err
	}
	for _, name := range copied {
		text, err := os.ReadFile(filepath.Join(o.Model, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, diag.Errorf(codeWriteOut, filepath.Join(o.Model, name), "cannot read: %v", err)
		}
		files[name] = text
	}
	return files, nil
}

func newManifest(l *Lowered, o *BuildOptions, files map[string][]byte) (*codegen.Manifest, error) {
	facts, err := codegen.Facts(l.Program)
	if err != nil {
		return nil, err
	}
	m := &codegen.Manifest{
		Format:   codegen.ManifestFormat,
		Compiler: codegen.Compiler{Version: version.Get().Version, IR: ir.Version, RuntimeABI: codegen.RuntimeABI},
		Source:   codegen.Source{RandomSeed: o.RandomSeed, AssumeInert: o.AssumeInert},
		Facts:    facts,
		Files:    map[string]string{},
	}
	for name, text := range files {
		m.Files[name] = codegen.Digest(text)
	}
	m.Weights.Key, err = l.weightsKey(o.RandomSeed)
	return m, err
}

// supplyWeights puts weights.safetensors into the stage: that of the earlier build, if it is made of the same, or a new one.
func supplyWeights(ctx context.Context, l *Lowered, o *BuildOptions, out *output, s *stage, m *codegen.Manifest, b *Build) error {
	if old := out.manifest; old != nil && old.Weights.Key == m.Weights.Key {
		if s.reuse(host.WeightsFile, old.Weights.Bytes) {
			m.Weights = old.Weights
			b.WeightBytes, b.WeightsReused = old.Weights.Bytes, true
			return nil
		}
	}
	var err error
	m.Weights.Bytes, m.Weights.SHA256, err = Pack(ctx, l, filepath.Join(s.dir, host.WeightsFile), o.Progress)
	b.WeightBytes = m.Weights.Bytes
	return err
}

// cudaVersion turns nvcc's release into the driver's form: "13.0" -> 13000.
func cudaVersion(release string) int {
	major, minor, ok := strings.Cut(release, ".")
	if !ok {
		return 0
	}
	number := func(s string) int {
		n := 0
		for _, r := range s {
			n = n*10 + int(r-'0')
		}
		return n
	}
	return number(major)*1000 + number(minor)*10
}
