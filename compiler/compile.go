package compiler

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"amkc/codegen"
	"amkc/compiler/builddir"
	"amkc/compiler/version"
	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/printable"
	"amkc/runtime/progress"
	"amkc/text/chat"
	"amkc/validate"
)

// BuildOptions are the input and the output directory of a build.
type BuildOptions struct {
	Options
	OutDir     string
	NoBuild    bool     // emit and pack only: neither nvcc nor go is run
	NoLauncher bool     // do not run go: who opens the build with package host needs no executable in it
	Inputs     []string // files besides the model that are read and must not be written over
	Stated     []string // options of the command line, for the manifest
	Progress   progress.Func

	shared  sharedWeights // of builds in the cache
	kernels Kernels
}

// Build is the result of Compile.
type Build struct {
	Dir           string
	Program       *ir.Program
	Files         []string // of the build, sorted
	Pages         passes.PageReport
	Passes        []*ir.Program   // for passes of several tokens
	Proof         validate.Report // of Program
	Memory        host.Footprint
	WeightBytes   int64
	WeightsReused bool
	Toolchain     codegen.Toolchain
	Built         bool      // the kernels are there, and the launcher if it was asked for
	Warnings      diag.List // of import, and of tools that are missing
}

// Compile makes a build: import, passes, proof, emission, packed weights and, unless told otherwise, the kernels and
// the launcher. The build appears complete or not at all, and the user's files in the directory stay (package
// builddir). Errors are diagnostics.
func Compile(ctx context.Context, o BuildOptions) (*Build, error) {
	if err := builddir.Check(o.OutDir); err != nil {
		return nil, err
	}
	if err := notInto(o.OutDir, o.Model); err != nil {
		return nil, err
	}
	l, err := RunPasses(o.Options)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	if err := l.checkLeftOut(); err != nil {
		return nil, err
	}
	l.Warnings.Add(checkText(&o.Options, l.Graph.Model.Vocab)...)
	return build(ctx, l, o, func() (*builddir.Dir, error) { return builddir.Begin(ctx, o.OutDir, nil) })
}

// build makes a build of a lowered program, in the directory that begin returns when everything is there to be written.
func build(ctx context.Context, l *Scheduled, o BuildOptions, begin func() (*builddir.Dir, error)) (*Build, error) {
	b := &Build{Dir: o.OutDir, Program: l.Program, Passes: l.Passes, Pages: l.Pages}
	e, err := emit(l, &o)
	if err != nil {
		return nil, err
	}
	b.Proof, b.Memory, b.Warnings = e.Proof, e.Memory, e.Warnings
	files := e.Files
	dir, err := begin()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	b.Warnings.Add(dir.Found...)
	if err := b.write(ctx, l, &o, dir, files); err != nil {
		return nil, withWarnings(dir.Found, err)
	}
	return b, nil
}

// write makes the build in its directory, of rendered files, packed weights and what tools make.
func (b *Build) write(ctx context.Context, l *Scheduled, o *BuildOptions, dir *builddir.Dir,
	files map[string][]byte) error {
	names := slices.Sorted(maps.Keys(files))
	all := slices.Concat(names, builddir.Products(o.Name, names), []string{host.WeightsFile, host.ManifestFile})
	if err := notOver(o.OutDir, all, o.Inputs...); err != nil {
		return err
	}
	if err := dir.Reserve(all); err != nil {
		return err
	}
	m, err := newManifest(l, o, files)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := dir.Write(name, files[name]); err != nil {
			return err
		}
	}
	tools := startTools(ctx, o, dir.Stage(), l.Program.Target.Arch, files)
	if err := supplyWeights(ctx, l, o, dir, m, b); err != nil {
		tools.cancel()
		return err
	}
	broken := tools.wait()
	b.Toolchain, b.Built = tools.used, !o.NoBuild && broken == nil && len(tools.missing) == 0
	b.Warnings.Add(tools.missing...)
	if broken != nil && ctx.Err() != nil {
		return broken // interrupted: an earlier build stays as it was
	}
	m.Toolchain = b.Toolchain
	if !o.NoBuild {
		if m.Built, err = madeByTools(dir.Stage(), builddir.Products(o.Name, names)); err != nil {
			return err
		}
	}
	m.Facts.CUDA = cudaVersion(b.Toolchain.NVCC)
	text, err := m.Marshal()
	if err != nil {
		return err
	}
	if err := dir.Write(host.ManifestFile, text); err != nil {
		return err
	}
	kept, err := dir.Commit()
	if err != nil {
		return err
	}
	b.Warnings.Add(kept...)
	if broken != nil {
		return withWarnings(kept, broken) // the emitted project stays, so that it can be looked at
	}
	b.Files = slices.Concat(names, slices.Collect(maps.Keys(m.Built)), []string{host.WeightsFile, host.ManifestFile})
	slices.Sort(b.Files)
	return nil
}

// withWarnings adds warnings to the diagnostics of an error, which would be lost with the result otherwise.
func withWarnings(warnings diag.List, err error) error {
	var list diag.List
	var one *diag.Diagnostic
	switch {
	case len(warnings) == 0:
		return err
	case errors.As(err, &list):
		return slices.Concat(warnings, list)
	case errors.As(err, &one):
		return slices.Concat(warnings, diag.List{one})
	}
	return err
}

// madeByTools digests the kernels and the launcher, those that are there.
func madeByTools(dir string, names []string) (map[string]string, error) {
	made := map[string]string{}
	for _, name := range names {
		_, digest, err := fileDigest(filepath.Join(dir, name), nil)
		switch {
		case err == nil:
			made[name] = digest
		case !errors.Is(err, fs.ErrNotExist):
			return nil, diag.Errorf(builddir.CodeWrite, name, "cannot be read back: %v", infile.Reason(err))
		}
	}
	return made, nil
}

// A copied file is one of the model directory that a build carries along, where it is there. Each may be a symbolic
// link to anywhere, as in the caches of hubs, where every file of a model is one; at its end there must be a
// regular file.
type copied struct {
	name string // with slashes
	kind infile.Kind
}

// copiedOf lists those of a model.
func copiedOf(model string) []copied {
	all := []copied{{host.ConfigFile, infile.ModelConfig}, {host.GenConfigFile, infile.ModelConfig},
		{checkpoint.QuantisedFile, infile.ModelConfig}, {host.TokenizerFile, infile.Tokenizer}}
	for _, name := range chat.Files(model) {
		kind := infile.ModelConfig
		if path.Ext(name) == ".jinja" {
			kind = infile.ChatTemplate
		}
		all = append(all, copied{name, kind})
	}
	return all
}

// isCopied reports whether a build may have a file from the model's directory.
func isCopied(name string) bool {
	return slices.Contains([]string{host.ConfigFile, host.GenConfigFile, checkpoint.QuantisedFile, host.TokenizerFile},
		name) || chat.IsFile(name)
}

// projectFiles renders the generated files and adds the model's own.
func projectFiles(l *Scheduled, o *BuildOptions) (map[string][]byte, error) {
	files, err := codegen.Project(l.Program, l.Graph, o.Name, l.Passes...)
	if err != nil {
		return nil, err
	}
	for _, c := range copiedOf(o.Model) {
		path := filepath.Join(o.Model, filepath.FromSlash(c.name))
		text, err := infile.Read(path, c.kind)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, diag.Errorf(codeModelFile, path, "cannot be read: %v", infile.Reason(err))
		}
		files[c.name] = text
	}
	return files, nil
}

func newManifest(l *Scheduled, o *BuildOptions, files map[string][]byte) (*codegen.Manifest, error) {
	facts, err := codegen.Facts(l.Program, l.Passes...)
	if err != nil {
		return nil, err
	}
	facts.Invented = l.invented()
	digests, err := l.weightsKey(o.RandomSeed, o.Progress)
	if err != nil {
		return nil, err
	}
	m := &codegen.Manifest{
		Format:   host.ManifestFormat,
		Compiler: thisCompiler(),
		Source: codegen.Source{Checkpoint: digests.checkpoint, Options: o.Stated, RandomSeed: o.RandomSeed,
			AssumeInert: o.AssumeInert, Weights: o.Formats.Texts(), Adapters: digests.adapters},
		Facts:   facts,
		Weights: codegen.WeightsDigest{Key: digests.key},
		Files:   map[string]string{},
	}
	id, revision := checkpoint.Origin(o.Model)
	m.Source.Model, m.Source.Revision = printable.Clip(id), printable.Clip(revision)
	files[readmeFile] = append(files[readmeFile], m.Origin()...)
	for name, text := range files {
		m.Files[name] = codegen.Digest(text)
	}
	return m, nil
}

// thisCompiler is what the manifest says of this amkc.
func thisCompiler() codegen.Compiler {
	amkc := version.Get()
	return codegen.Compiler{Version: amkc.Version, Commit: amkc.Source(), IR: ir.Version,
		RuntimeABI: codegen.RuntimeABI}
}

// readmeFile ends with what the manifest says of the origin of the build.
const readmeFile = "README.md"

// supplyWeights packs weights.safetensors into the stage, unless that of the earlier build is made of the same and is
// what it was: then it stays where it is.
func supplyWeights(ctx context.Context, l *Scheduled, o *BuildOptions, dir *builddir.Dir, m *codegen.Manifest,
	b *Build) error {
	if old := dir.Earlier; old != nil && old.Weights.Key == m.Weights.Key {
		damage := mismatch(dir.Path, host.WeightsFile, old.Weights.SHA256, old.Weights.Bytes, o.Progress)
		if damage != "" {
			b.Warnings.Add(diag.Warningf(codeFileChanged, filepath.Join(dir.Path, host.WeightsFile),
				"%s; the weights are packed again", damage))
		} else {
			m.Weights = old.Weights
			b.WeightBytes, b.WeightsReused = old.Weights.Bytes, true
			return nil
		}
	}
	var err error
	var linked bool
	if m.Weights.Bytes, m.Weights.SHA256, linked = o.shared.link(m.Weights.Key, dir.Stage(), o.Progress); !linked {
		m.Weights.Bytes, m.Weights.SHA256, err = Pack(ctx, l, filepath.Join(dir.Stage(), host.WeightsFile), o.Progress)
		if err == nil {
			o.shared.add(m.Weights.Key, dir.Stage(), m.Weights.SHA256)
		}
	}
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
