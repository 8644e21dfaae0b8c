package explore

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"amkc/compiler/objects"
	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/runtime/progress"
)

// A Machine is the simulated hardware as a library, and the compiler of kernels for it.
type Machine struct {
	Library string // path

	toolchain *toolchain
	include   string // where headers and sources of the CPU's side are
	digest    string // of the machine's sources, of flags and of the compiler
	headers   string // digest of the headers that kernels include, of their flags and of the compiler
}

// CompileMachine compiles the machine, unless the cache has it. Errors: codeNoCompiler, codeCompile.
func CompileMachine(ctx context.Context, cache string, report progress.Func) (*Machine, error) {
	t, err := findToolchain(ctx)
	if err != nil {
		return nil, err
	}
	cpu, err := cpuSources()
	if err != nil {
		return nil, err
	}
	m, _, err := t.machine(ctx, cache, cpu, report)
	return m, err
}

// machine is the machine of some sources, and how many libraries it has made for that.
func (t *toolchain) machine(ctx context.Context, cache string, cpu map[string][]byte, report progress.Func) (
	m *Machine, made int, err error) {
	dir := filepath.Join(cache, objectsDir)
	m = &Machine{toolchain: t, digest: objects.Digest(cpu, t.version,
		strings.Join(slices.Concat(t.command, commonFlags, machineFlags, machineLink), " "))}
	m.headers = objects.Digest(headersOfKernels(cpu), t.version,
		strings.Join(slices.Concat(t.command, t.ofKernels(), kernelLink), " "))
	m.Library = filepath.Join(dir, m.digest[:32], libraryName)
	if err := os.MkdirAll(filepath.Dir(m.Library), 0o777); err != nil {
		return nil, 0, diag.Errorf(codeCompile, dir, "cannot be made: %s; want a cache that can be written to",
			infile.Reason(err))
	}
	if m.include, err = extract(dir, cpu); err != nil {
		return nil, 0, err
	}
	library := objects.Object{Name: libraryName, Path: m.Library,
		Make: func(ctx context.Context, work, out string) error {
			return t.library(ctx, m.include, dir, work, out, cpu)
		}}
	made, err = provide(ctx, []objects.Object{library}, report)
	return m, made, err
}

// CompileKernels compiles a source in the same way as those of builds, with the headers of directories, earlier ones
// first, and with additional flags, and links it with the machine to a shared object, unless the cache has it. It
// returns the path of the object. Errors: codeCompile.
func (m *Machine) CompileKernels(ctx context.Context, cache, source string, headers []string, flags ...string) (string,
	error) {
	texts := append([]string{m.headers, filepath.Base(source)}, flags...)
	var include []string
	for i, dir := range append([]string{filepath.Dir(source)}, headers...) {
		files := map[string][]byte{}
		if err := readSources(files, dir, "", i > 0); err != nil {
			return "", err
		}
		texts = append(texts, objects.Digest(files))
		if i > 0 {
			abs, err := filepath.Abs(dir)
			if err != nil {
				return "", diag.Errorf(codeCompile, dir, "has no path: %s", infile.Reason(err))
			}
			include = append(append(include, "-I"+abs), m.toolchain.mapped(abs, fmt.Sprintf("headers%d", i))...)
		}
	}
	o := objects.Object{Name: source, Path: filepath.Join(cache, objectsDir, objects.Digest(nil, texts...)[:32]+".so")}
	o.Make = func(ctx context.Context, work, out string) error {
		return m.kernels(ctx, filepath.Dir(source), filepath.Base(source), filepath.Base(o.Path), work, out,
			append(include, flags...)...)
	}
	_, err := provide(ctx, []objects.Object{o}, nil)
	return o.Path, err
}

// kernels compiles and links kernels whose source is named from a directory. What the compiler keeps of paths begins
// there and at explore/cpu, so that the object, which is called `object`, is the same wherever these lie.
func (m *Machine) kernels(ctx context.Context, dir, source, object, work, out string, flags ...string) error {
	root, err := filepath.Abs(dir)
	if err != nil {
		return diag.Errorf(codeCompile, source, "the build has no path: %s", infile.Reason(err))
	}
	t, compiled := m.toolchain, filepath.Join(work, "kernel.o")
	err = t.run(ctx, root, source, slices.Concat(t.ofKernels(), flags, t.mapped(root, "."),
		t.mapped(m.include, "explore/cpu"), []string{"-I" + m.include, "-c", "-o", compiled, source})...)
	if err != nil {
		return err
	}
	return t.run(ctx, work, object, slices.Concat(kernelLink, []string{"-Wl,-soname," + object, "-o", out, compiled,
		m.Library})...)
}

// Explain prints the findings of the machine in kernels that CompileKernels has compiled. result is the return value of
// amk_explore_result.
func Explain(result []byte, kernels string) ([]string, error) {
	var run Run
	if err := json.Unmarshal(result, &run); err != nil {
		return nil, err
	}
	s := &symbols{paths: map[string]string{filepath.Base(kernels): kernels}, tables: map[string]*lineTable{}}
	var lines []string
	for i := range run.Findings {
		f := &run.Findings[i]
		s.resolve(f)
		lines = append(lines, f.Kind+": "+f.Message)
		for j := range f.Sites {
			lines = append(lines, f.Sites[j].lines()...)
		}
	}
	return lines, nil
}
