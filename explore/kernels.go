package explore

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"amkc/compiler/objects"
	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/runtime/progress"
)

// A Machine is the CPU's side of the hardware as a library, and what compiles kernels for it.
type Machine struct {
	Library string // path

	toolchain *toolchain
	include   string // where headers and sources of the CPU's side are
	digest    string // of the machine's sources, of flags and of the compiler
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

// CompileKernels compiles a source as those of builds are compiled, with further flags, and links it with the machine
// to a shared object. Errors: codeCompile.
func (m *Machine) CompileKernels(ctx context.Context, source, out string, flags ...string) error {
	work, err := os.MkdirTemp("", "amkc-explore-")
	if err != nil {
		return diag.Errorf(codeCompile, source, "there is no temporary directory: %s", infile.Reason(err))
	}
	defer os.RemoveAll(work)
	return m.kernels(ctx, filepath.Dir(source), filepath.Base(source), filepath.Base(out), work, out, flags...)
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

// Explain says in lines what the machine has found in kernels that CompileKernels has put in a file. The result is what
// amk_explore_result returned.
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
