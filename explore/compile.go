package explore

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"amkc/compiler/objects"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
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

// Compile compiles the machine and the kernels of a build that jobs run, for the CPU, unless the cache has them;
// without jobs, all kernels of the build. Keys of the cache are digests of sources, flags and the compiler's version.
// Errors: codeNoCompiler, codeCompile.
func Compile(ctx context.Context, o Options) (*Objects, error) {
	t, err := findToolchain(ctx)
	if err != nil {
		return nil, err
	}
	cpu, err := cpuSources()
	if err != nil {
		return nil, err
	}
	t.called = o.Called
	return t.compile(ctx, o.Build, o.Cache, cpu, o.Jobs, o.Report)
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
	// An object of a kernel depends on those headers alone that it may include: of the machine, and of the build.
	o.Sources = objects.Digest(files, m.headers)
	var kernels []objects.Object
	for _, k := range kernelSources(facts, jobs) {
		source, object := k.source, k.object
		if t.called {
			k.flags = append(k.flags, Called)
		}
		if files[source] == nil {
			return nil, &host.BuildError{Path: filepath.Join(build, filepath.FromSlash(source)),
				What: "the source of a kernel is missing", Remedy: "compile the model again with amkc"}
		}
		key := objects.Digest(objects.Included(files, source), m.headers, source, object, strings.Join(k.flags, " "))
		at := filepath.Join(dir, key[:32]+".so")
		o.Kernels[object] = at
		kernels = append(kernels, objects.Object{Name: object, Path: at,
			Make: func(ctx context.Context, work, out string) error {
				return m.kernels(ctx, build, source, object, work, out, k.flags...)
			}})
	}
	if made, err = provide(ctx, kernels, report); err != nil {
		return nil, err
	}
	o.Made += made
	return o, nil
}

// A kernelSource is a .cu file of a build, the file that it is compiled to, and flags for it alone.
type kernelSource struct {
	source, object string
	flags          []string
}

// Directories of kernels in other forms, which jobs of their own run.
const (
	// Waits look at once whether the host has ended the launch. Those of the others do every 65,536 polls, which no run
	// on a CPU has.
	eagerDir = "eager"
	// Objects with the ceiling too, a second kernel as long as the first, and with the traced kernel alone. Each job
	// runs the same object, whichever jobs a build is compiled for.
	measuredDir = "measured"
	tracedDir   = "traced"
)

// forms are those directories.
var forms = []string{eagerDir, measuredDir, tracedDir}

// What leaves out kernels that other jobs run.
const (
	lean      = "-DAMK_LEAN=2"
	notTraced = "-DAMK_LEAN=1"
)

// tracedAlone leaves the bodies of the other kernels in functions that nobody calls. Package host asks for amk_decode;
// a launch of it would end the process.
var tracedAlone = []string{
	"-Damk_decode(launch)=amk_decode(launch) { __builtin_trap(); } static inline void amk_no_decode(launch)",
	"-Damk_ceiling(launch)=amk_ceiling(launch); static inline void amk_no_ceiling(launch)",
}

// kernelSources are what of a build is compiled for jobs; none: all that it has.
func kernelSources(facts *host.Facts, jobs []string) []kernelSource {
	if len(jobs) == 0 {
		for _, j := range Jobs(facts) {
			jobs = append(jobs, j.Name)
		}
	}
	is := func(names ...string) func(string) bool {
		return func(job string) bool { return slices.Contains(names, job) }
	}
	no := func(names ...string) func(string) bool {
		return func(job string) bool { return !slices.Contains(names, job) }
	}
	var all []kernelSource
	add := func(form, dir, file string, runs func(job string) bool, flags ...string) {
		if slices.ContainsFunc(jobs, runs) {
			all = append(all, kernelSource{source: path.Join(dir, strings.TrimSuffix(file, ".fatbin")+".cu"),
				object: path.Join(form, dir, file), flags: flags})
		}
	}
	add("", "", host.FatbinFile, no(abortJob, measureJob, referenceJob, gpuJob), lean)
	add(measuredDir, "", host.FatbinFile, is(measureJob), notTraced)
	add(tracedDir, "", host.FatbinFile, is(referenceJob, gpuJob), tracedAlone...)
	for _, p := range facts.Passes {
		add("", p.Dir(), host.FatbinFile, no(measureJob, gpuJob), lean)
		add(measuredDir, p.Dir(), host.FatbinFile, is(measureJob), notTraced)
		add(tracedDir, p.Dir(), host.FatbinFile, is(gpuJob), tracedAlone...)
	}
	if facts.Prompt > 0 {
		add("", "", host.PromptFile, no())
	}
	add("", "", host.ReferenceFile, is(endsJob))
	add("", "", host.MeasureFile, is(measureJob), "-DAMK_PARTS=1") // the step in parts, too
	add(eagerDir, "", host.FatbinFile, is(abortJob), lean, "-DAMK_EAGER_ABORT=1")
	return all
}

// mostSources bounds the files of a build that are read.
const mostSources = 10_000

// sourcesOf reads what kernels of a build may include: all headers and sources next to them, below amk and in the
// directories of passes, and all other files that these include.
func sourcesOf(build string, facts *host.Facts) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := readSources(files, build, "", false)
	for _, dir := range append([]string{"amk"}, passDirs(facts)...) {
		err = errors.Join(err, readSources(files, build, dir, true))
	}
	for _, name := range sorted(files) {
		err = errors.Join(err, readIncludes(files, build, name))
	}
	return files, err
}

// readIncludes reads the files that a file of a build includes, wherever they are and whatever they are called.
func readIncludes(files map[string][]byte, build, name string) error {
	for _, of := range objects.Includes(name, files[name]) {
		if files[of] != nil {
			continue
		}
		err := readSource(files, build, of)
		if errors.Is(err, fs.ErrNotExist) {
			continue // as the compiler will say, unless a condition leaves it out
		}
		if err == nil {
			err = readIncludes(files, build, of)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readSources reads headers and sources of a directory of a build.
func readSources(files map[string][]byte, build, dir string, deep bool) error {
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
				if err := readSources(files, build, name, deep); err != nil {
					return err
				}
			}
			continue
		}
		switch path.Ext(name) {
		case ".cu", ".cuh", ".cc", ".h":
		default:
			continue
		}
		if err := readSource(files, build, name); err != nil {
			return err
		}
	}
	return nil
}

// readSource reads a file of a build.
func readSource(files map[string][]byte, build, name string) error {
	at := filepath.Join(build, filepath.FromSlash(name))
	if len(files) == mostSources {
		return &host.BuildError{Path: build, What: "it has more sources than any build",
			Remedy: "name a directory that amkc wrote"}
	}
	text, err := infile.Read(at, infile.Source)
	if err != nil {
		return &host.BuildError{Path: at, What: "it cannot be read", Err: err}
	}
	files[name] = text
	return nil
}

func passDirs(facts *host.Facts) (dirs []string) {
	for _, p := range facts.Passes {
		dirs = append(dirs, p.Dir())
	}
	return dirs
}

// provide has the cache have objects, and says how many it made.
func provide(ctx context.Context, all []objects.Object, report progress.Func) (made int, err error) {
	return objects.Provide(ctx, codeCompile, "compiling for the CPU", all, report)
}

// extract puts the CPU's side where the compiler finds it, in a directory of its digest, and returns that.
func extract(dir string, cpu map[string][]byte) (string, error) {
	into := filepath.Join(dir, "cpu-"+objects.Digest(cpu)[:32])
	for _, name := range sorted(cpu) {
		at := filepath.Join(into, filepath.FromSlash(name))
		if have, err := infile.Read(at, infile.Source); err == nil && string(have) == string(cpu[name]) {
			continue
		}
		err := os.MkdirAll(filepath.Dir(at), 0o777)
		if err == nil {
			err = objects.Replace(at, func(to string) error { return os.WriteFile(to, cpu[name], 0o666) })
		}
		if err != nil {
			return "", diag.Errorf(codeCompile, at, "cannot be written: %s; want a cache that can be written to",
				infile.Reason(err))
		}
	}
	return into, nil
}

// library compiles the machine to a library, and keeps the object of each source: where a source changes, it alone is
// compiled. include is where the sources are.
func (t *toolchain) library(ctx context.Context, include, cache, work, out string, cpu map[string][]byte) error {
	flags := slices.Concat(commonFlags, machineFlags)
	var parts []objects.Object
	var paths []string
	for _, name := range sorted(cpu) {
		if path.Dir(name) != machineDir || path.Ext(name) != ".cc" {
			continue
		}
		key := objects.Digest(objects.Included(cpu, name), t.version, name,
			strings.Join(slices.Concat(t.command, flags), " "))
		at := filepath.Join(cache, key[:32]+".o")
		parts = append(parts, objects.Object{Name: name, Path: at,
			Make: func(ctx context.Context, _, out string) error {
				return t.run(ctx, include, name, slices.Concat(flags, t.mapped(include, "explore/cpu"),
					[]string{"-I.", "-c", "-o", out, name})...)
			}})
		paths = append(paths, at)
	}
	if _, err := provide(ctx, parts, nil); err != nil {
		return err
	}
	return t.run(ctx, work, libraryName, slices.Concat(machineLink, []string{"-o", out}, paths)...)
}

// mapped has the compiler write another path instead of one.
func (t *toolchain) mapped(path, as string) []string {
	return []string{"-ffile-prefix-map=" + path + "=" + as}
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
