package explore

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
	"amkc/runtime/progress"
)

// Objects are a build compiled for the CPU.
type Objects struct {
	Library  string            // path of the machine
	Kernels  map[string]string // path of each, by the file of the build whose place it takes: "megakernel.fatbin"
	Machine  string            // digest of the machine's sources, of flags and of the compiler
	Sources  string            // digest of the sources of the build, and of what they are compiled with
	Made     int               // how many were not in the cache
	Compiler string            // what it says of itself, in a line
}

// objectsDir is where the cache has what is compiled.
const objectsDir = "explore"

// Compile compiles the machine and the kernels of a build that jobs run for the CPU, unless the cache has them; without
// jobs all that the build has. What is the same is known by digests: of sources, flags and what the compiler says of
// itself. Errors: codeNoCompiler, codeCompile.
func Compile(ctx context.Context, build, cache string, jobs []string, report progress.Func) (*Objects, error) {
	t, err := findToolchain(ctx)
	if err != nil {
		return nil, err
	}
	cpu, err := cpuSources()
	if err != nil {
		return nil, err
	}
	return t.compile(ctx, build, cache, cpu, jobs, report)
}

// A product is a shared object that is to be in the cache.
type product struct {
	name string // for messages
	path string
	make func(ctx context.Context, dir, out string) error // in a directory of its own
}

func (t *toolchain) compile(ctx context.Context, build, cache string, cpu map[string][]byte, jobs []string,
	report progress.Func) (*Objects, error) {
	facts, err := host.ReadFacts(build)
	if err != nil {
		return nil, err
	}
	files, err := sourcesOf(build, facts)
	if err != nil {
		return nil, err
	}
	m, made, err := t.machine(ctx, cache, cpu, report)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, objectsDir)
	o := &Objects{Library: m.Library, Kernels: map[string]string{}, Compiler: firstLine(t.version), Machine: m.digest,
		Made: made}
	// An object of a kernel depends on those headers of the machine alone that kernels include.
	included := headersOfKernels(cpu)
	headers := digestOf(cpu, func(name string) bool { return included[name] }, t.version,
		strings.Join(slices.Concat(t.command, t.ofKernels(), kernelLink), " "))
	o.Sources = digestOf(files, func(string) bool { return true }, headers)
	var kernels []product
	for _, k := range kernelSources(facts, jobs) {
		source, object := k.source, k.object
		if files[source] == nil {
			return nil, &host.BuildError{Path: filepath.Join(build, filepath.FromSlash(source)),
				What: "the source of a kernel is missing", Remedy: "compile the model again with amkc"}
		}
		key := digestOf(nil, nil, o.Sources, source, strings.Join(k.flags, " "))
		at := filepath.Join(dir, key[:32]+".so")
		o.Kernels[object] = at
		kernels = append(kernels, product{object, at, func(ctx context.Context, work, out string) error {
			return m.kernels(ctx, build, source, object, work, out, k.flags...)
		}})
	}
	if made, err = makeAll(ctx, kernels, report); err != nil {
		return nil, err
	}
	o.Made += made
	return o, nil
}

// A kernelSource is a .cu file of a build, the file that it is compiled to, and flags for it alone.
type kernelSource struct {
	source, object string
	flags          []string
	job            string // the only one that runs it; none: several do
}

// eagerDir is where the kernel is whose waits look at once whether the host has ended the launch. Those of the others
// do every 65,536 polls, which no run on a CPU has.
const eagerDir = "eager"

// kernelSources are what of a build is compiled for jobs, or for all of them.
func kernelSources(facts *host.Facts, jobs []string) []kernelSource {
	of := func(dir, object, job string) kernelSource {
		return kernelSource{source: path.Join(dir, strings.TrimSuffix(object, ".fatbin")+".cu"),
			object: path.Join(dir, object), job: job}
	}
	all := []kernelSource{of("", host.FatbinFile, "")}
	for _, p := range facts.Passes {
		all = append(all, of(p.Dir(), host.FatbinFile, ""))
	}
	if facts.Prompt > 0 {
		all = append(all, of("", host.PromptFile, ""))
	}
	eager := of("", host.FatbinFile, abortJob)
	eager.object, eager.flags = path.Join(eagerDir, eager.object), []string{"-DAMK_EAGER_ABORT=1"}
	measure := of("", host.MeasureFile, measureJob)
	measure.flags = []string{"-DAMK_PARTS=1"} // the step in parts, too
	all = append(all, of("", host.ReferenceFile, endsJob), measure, eager)
	return slices.DeleteFunc(all, func(k kernelSource) bool {
		return k.job != "" && len(jobs) > 0 && !slices.Contains(jobs, k.job)
	})
}

// mostSources bounds the files of a build that are read.
const mostSources = 10_000

// sourcesOf reads what kernels of a build may include: all headers and sources next to them, below amk and in the
// directories of passes.
func sourcesOf(build string, facts *host.Facts) (map[string][]byte, error) {
	files := map[string][]byte{}
	var read func(dir string, deep bool) error
	read = func(dir string, deep bool) error {
		entries, err := infile.List(filepath.Join(build, filepath.FromSlash(dir)))
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // what is missing is missed where it is included
			}
			return &host.BuildError{Path: filepath.Join(build, dir), What: "it cannot be read", Err: err}
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if e.IsDir() {
				if deep {
					if err := read(name, deep); err != nil {
						return err
					}
				}
				continue
			}
			switch path.Ext(name) {
			case ".cu", ".cuh", ".h":
			default:
				continue
			}
			if len(files) == mostSources {
				return &host.BuildError{Path: build, What: "it has more sources than any build",
					Remedy: "name a directory that amkc wrote"}
			}
			text, err := infile.Read(filepath.Join(build, filepath.FromSlash(name)), infile.Source)
			if err != nil {
				return &host.BuildError{Path: filepath.Join(build, name), What: "it cannot be read", Err: err}
			}
			files[name] = text
		}
		return nil
	}
	err := read("", false)
	for _, dir := range append([]string{"amk"}, passDirs(facts)...) {
		err = errors.Join(err, read(dir, true))
	}
	return files, err
}

func passDirs(facts *host.Facts) (dirs []string) {
	for _, p := range facts.Passes {
		dirs = append(dirs, p.Dir())
	}
	return dirs
}

// extract puts the CPU's side where the compiler finds it, in a directory of its digest, and returns that.
func extract(dir string, cpu map[string][]byte) (string, error) {
	all := func(string) bool { return true }
	into := filepath.Join(dir, "cpu-"+digestOf(cpu, all)[:32])
	for _, name := range sorted(cpu) {
		at := filepath.Join(into, filepath.FromSlash(name))
		if have, err := infile.Read(at, infile.Source); err == nil && string(have) == string(cpu[name]) {
			continue
		}
		err := os.MkdirAll(filepath.Dir(at), 0o777)
		if err == nil {
			err = replace(at, func(to string) error { return os.WriteFile(to, cpu[name], 0o666) })
		}
		if err != nil {
			return "", diag.Errorf(codeCompile, at, "cannot be written: %s; want a cache that can be written to",
				infile.Reason(err))
		}
	}
	return into, nil
}

// replace has a file written next to its place and puts it there.
func replace(at string, write func(to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(at), ".amkc-*")
	if err != nil {
		return err
	}
	f.Close()
	if err = write(f.Name()); err == nil {
		err = os.Rename(f.Name(), at)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// makeAll makes products that are not in the cache, as many at a time as there are cores, and says how many it made.
func makeAll(ctx context.Context, products []product, report progress.Func) (made int, err error) {
	var missing []product
	for _, p := range products {
		if _, err := os.Stat(p.path); err != nil {
			missing = append(missing, p)
		}
	}
	step := progress.Step{Activity: "compiling for the CPU", Total: int64(len(missing)), Unit: "sources"}
	var mu sync.Mutex
	err = SideBySide(len(missing), runtime.NumCPU(), func(i int) error {
		err := missing[i].provide(ctx)
		mu.Lock()
		defer mu.Unlock()
		step.Done++
		step.Activity = "compiling for the CPU, " + missing[i].name
		report.Report(step)
		return err
	})
	return len(missing), err
}

// askAgain is how often a process looks whether another one has made what it waits for.
const askAgain = 50 * time.Millisecond

// provide makes a product in the cache. Of several processes one makes it, and the others wait.
func (p *product) provide(ctx context.Context) error {
	var claim *outfile.Claim
	for {
		c, _, err := outfile.Hold(p.path + ".lock")
		if err == nil {
			claim = c
			break
		}
		if !errors.Is(err, outfile.ErrBusy) {
			return diag.Errorf(codeCompile, p.path, "cannot be made: %s; want a cache that can be written to",
				infile.Reason(err))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(askAgain):
		}
	}
	defer claim.Release()
	if _, err := os.Stat(p.path); err == nil {
		return nil // made in the meantime
	}
	work, err := os.MkdirTemp("", "amkc-explore-")
	if err != nil {
		return diag.Errorf(codeCompile, p.name, "there is no temporary directory: %s", infile.Reason(err))
	}
	defer os.RemoveAll(work)
	var refused *diag.Diagnostic
	err = replace(p.path, func(to string) error { return p.make(ctx, work, to) })
	if err == nil || errors.As(err, &refused) || ctx.Err() != nil {
		return err
	}
	return diag.Errorf(codeCompile, p.path, "cannot be written: %s; want a cache that can be written to",
		infile.Reason(err))
}

// library compiles the machine, its sources side by side. include is where these are.
func (t *toolchain) library(ctx context.Context, include, work, out string, names []string) error {
	var sources []string
	for _, name := range names {
		if path.Dir(name) == machineDir && path.Ext(name) == ".cc" {
			sources = append(sources, name)
		}
	}
	slices.Sort(sources)
	objects := make([]string, len(sources))
	err := SideBySide(len(sources), runtime.NumCPU(), func(i int) error {
		objects[i] = filepath.Join(work, strings.TrimSuffix(path.Base(sources[i]), ".cc")+".o")
		return t.run(ctx, include, "machine", slices.Concat(commonFlags, machineFlags, t.mapped(include, "explore/cpu"),
			[]string{"-I.", "-c", "-o", objects[i], sources[i]})...)
	})
	if err != nil {
		return err
	}
	return t.run(ctx, work, libraryName, slices.Concat(machineLink, []string{"-o", out}, objects)...)
}

// mapped has the compiler write another path instead of one.
func (t *toolchain) mapped(path, as string) []string {
	return []string{"-ffile-prefix-map=" + path + "=" + as}
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
