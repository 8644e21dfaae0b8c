package compiler

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"amkc/codegen"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/progress"
)

// FindNVCC looks for the CUDA compiler on PATH, in CUDA_HOME, in .cuda next to the executable, where make cuda puts
// one, and where CUDA installs itself. It returns "" if there is none.
//
// It does not search the working directory or its parents, because they may be a model or a build from somebody else,
// and the compiler is run.
func FindNVCC() string {
	if path, err := exec.LookPath("nvcc"); err == nil {
		return path
	}
	var candidates []string
	if home := os.Getenv("CUDA_HOME"); home != "" {
		candidates = append(candidates, filepath.Join(home, "bin", "nvcc"))
	}
	if exe, err := os.Executable(); err == nil {
		candidates = append(candidates, filepath.Join(filepath.Dir(exe), ".cuda", "nvidia", "cu13", "bin", "nvcc"))
	}
	candidates = append(candidates, "/usr/local/cuda/bin/nvcc")
	for _, path := range candidates {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path
		}
	}
	return ""
}

var nvccRelease = regexp.MustCompile(`release (\d+)\.(\d+)`)

// nvccVersion asks nvcc for its release: "13.0".
func nvccVersion(ctx context.Context, nvcc string) string {
	out, err := exec.CommandContext(ctx, nvcc, "--version").Output()
	if err != nil {
		return ""
	}
	if m := nvccRelease.FindSubmatch(out); m != nil {
		return string(m[1]) + "." + string(m[2])
	}
	return ""
}

// Kernels selects the kernels of a build that only checks and measurements launch.
type Kernels int

// The kinds of builds.
const (
	AllKernels    Kernels = iota // what an emitted project has
	SearchKernels                // without those of check --bisect, profile and the drain of bench
)

// flags are those that sources are compiled with besides.
func (k Kernels) flags() []string {
	if k == SearchKernels {
		return []string{"-DAMK_LEAN=1"}
	}
	return nil
}

// killDelay is how long the output of nvcc is waited for after it was killed: the compilers that it has started go on,
// and hold it open.
const killDelay = time.Second

// compileCUDA makes NAME.fatbin from NAME.cu in dir.
func compileCUDA(ctx context.Context, nvcc, dir, source, arch string, flags ...string) *diag.Diagnostic {
	out := strings.TrimSuffix(source, ".cu") + ".fatbin"
	args := slices.Concat(codegen.NVCCFlags(), flags, []string{"-gencode", codegen.Gencode(arch), "-fatbin",
		"-o", out, source})
	cmd := exec.CommandContext(ctx, nvcc, args...)
	cmd.Dir, cmd.WaitDelay = dir, killDelay
	text, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return diag.Errorf(codeNVCC, source, "interrupted")
	}
	return diag.Errorf(codeNVCC, source, "nvcc failed (%v); want it to accept the generated sources",
		infile.Reason(err)).With(explainNVCC(string(text))...)
}

// compileAll compiles sources side by side, for nvcc uses one core. It returns the first complaint, in the order of the
// sources.
func compileAll(ctx context.Context, nvcc, dir string, o *BuildOptions, arch string,
	sources []string) *diag.Diagnostic {
	complaints := make([]*diag.Diagnostic, len(sources))
	ended := make(chan string)
	for i, source := range sources {
		go func() {
			complaints[i] = compileCUDA(ctx, nvcc, dir, source, arch, o.kernels.flags()...)
			ended <- source
		}()
	}
	step := progress.Step{Activity: "nvcc", Total: int64(len(sources)), Unit: "sources"}
	o.Progress.Report(step)
	for i := range sources {
		step.Activity, step.Done = "nvcc "+<-ended, int64(i+1)
		o.Progress.Report(step)
	}
	for _, d := range complaints {
		if d != nil {
			return d
		}
	}
	return nil
}

var nvccLine = regexp.MustCompile(`^([^\s(]+)\(\d+\): (?:error|warning)`)

// explainNVCC keeps the first of nvcc's errors and warnings, and says which template or runtime header each file
// comes from.
func explainNVCC(text string) []string {
	const most = 12
	var notes []string
	seen := map[string]bool{}
	for _, line := range strings.Split(text, "\n") {
		m := nvccLine.FindStringSubmatch(line)
		if m == nil && !strings.Contains(line, "error") && !strings.Contains(line, "fatal") {
			continue
		}
		if len(notes) < most {
			notes = append(notes, line)
		}
		if m == nil || seen[m[1]] {
			continue
		}
		seen[m[1]] = true
		if origin := codegen.Origin(m[1]); origin != "" {
			notes = append(notes, m[1]+" comes from "+origin)
		}
	}
	return notes
}

// buildLauncher makes the executable NAME in dir from launcher/, and the library unless there is no C compiler, as the
// Makefile there does.
func buildLauncher(ctx context.Context, dir, name string, library bool) *diag.Diagnostic {
	launcher := filepath.Join(dir, "launcher")
	caches, env, err := goCaches(launcher)
	if err != nil {
		return diag.Errorf(codeGoBuild, "launcher",
			"go cannot be given the modules of the launcher: %s; want a temporary directory to write to (TMPDIR)",
			infile.Reason(err))
	}
	defer os.RemoveAll(caches)
	root, d := runGo(ctx, launcher, "go", nil, "env", "GOROOT") // of the toolchain that launcher/go.mod asks for
	if d != nil {
		return d
	}
	tool := filepath.Join(root, "bin", "go")
	if _, d = runGo(ctx, launcher, tool, append(env, "CGO_ENABLED=0"), "build", "-trimpath", "-buildvcs=false", "-o",
		filepath.Join("..", name), "."); d != nil || !library {
		return d
	}
	_, d = runGo(ctx, launcher, tool, append(env, "CGO_ENABLED=1"), "build", "-trimpath", "-buildvcs=false",
		"-buildmode=c-shared", "-o", filepath.Join("..", filepath.FromSlash(host.LibraryFile)),
		codegen.LibraryPackage)
	return d
}

// runGo runs a go command in the launcher's directory and returns what it prints.
func runGo(ctx context.Context, launcher, tool string, env []string, args ...string) (string, *diag.Diagnostic) {
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir = launcher
	cmd.Env = slices.Concat(os.Environ(), []string{"GO111MODULE=on", "GOWORK=off", "GOFLAGS=-modcacherw"}, env)
	var out, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	if err == nil {
		return strings.TrimSpace(out.String()), nil
	}
	if ctx.Err() != nil {
		return "", diag.Errorf(codeGoBuild, "launcher", "interrupted")
	}
	lines := strings.Split(strings.TrimSpace(complaints.String()), "\n")
	return "", diag.Errorf(codeGoBuild, "launcher", "go %s failed (%v)", args[0], infile.Reason(err)).
		With(lines[:min(len(lines), 12)]...)
}

// goCaches makes a temporary directory for go, which the caller removes, and returns what to add to its environment. In
// it is a module cache with the launcher's modules as its downloads: go asks no network, and the user's own cache stays
// as it is. A build cache is there too if go would find none, as in a container or a service without HOME.
func goCaches(launcher string) (dir string, env []string, err error) {
	if dir, err = os.MkdirTemp("", "amkc-go-"); err != nil {
		return "", nil, err
	}
	downloads := filepath.Join(dir, "modules", "cache", "download")
	if err := os.CopyFS(downloads, os.DirFS(filepath.Join(launcher, "modules"))); err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	env = []string{"GOTOOLCHAIN=local", "GOPROXY=off", "GOMODCACHE=" + filepath.Join(dir, "modules")}
	if _, err := os.UserCacheDir(); err != nil && os.Getenv("GOCACHE") == "" {
		env = append(env, "GOCACHE="+filepath.Join(dir, "build"))
	}
	return dir, env, nil
}

// A toolRun is nvcc and go at work in a staged build. Weights are packed meanwhile, which takes about as long: neither
// needs what the other makes.
type toolRun struct {
	report  heldProgress
	stop    context.CancelFunc
	ended   chan struct{}
	used    codegen.Toolchain
	missing diag.List
	err     error
}

// startTools starts them, unless the build is to be without. cancel or wait has to be called.
func startTools(ctx context.Context, o *BuildOptions, dir, arch string, files map[string][]byte) *toolRun {
	r := &toolRun{report: heldProgress{to: o.Progress}, ended: make(chan struct{})}
	ctx, r.stop = context.WithCancel(ctx)
	if o.NoBuild {
		close(r.ended)
		return r
	}
	var sources []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".cu") {
			sources = append(sources, name)
		}
	}
	reported := *o
	reported.Progress = r.report.take
	go func() {
		defer close(r.ended)
		r.used, r.missing, r.err = toolBuild(ctx, dir, &reported, arch, sources)
	}()
	return r
}

// wait shows how far they are, and returns their error when they have ended.
func (r *toolRun) wait() error {
	r.report.release()
	<-r.ended
	r.stop()
	return r.err
}

func (r *toolRun) cancel() {
	r.stop()
	<-r.ended
}

// A heldProgress keeps the last step for itself until it is released, since something else is shown.
type heldProgress struct {
	to progress.Func

	mu    sync.Mutex
	last  *progress.Step
	shown bool
}

func (h *heldProgress) take(s progress.Step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last = &s; h.shown {
		h.to.Report(s)
	}
}

func (h *heldProgress) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shown = true; h.last != nil {
		h.to.Report(*h.last)
	}
}

// toolBuild runs what can be run of the build in dir, and returns what could not for lack of a tool.
func toolBuild(ctx context.Context, dir string, o *BuildOptions, arch string, sources []string) (codegen.Toolchain,
	diag.List, error) {
	var tools codegen.Toolchain
	var missing diag.List
	nvcc := FindNVCC()
	_, noCXX := exec.LookPath("g++")
	switch {
	case nvcc == "":
		missing.Add(diag.Warningf(codeNoTool, o.OutDir,
			"no nvcc here, so the kernels are not compiled; finish with: make -C %s, with nvcc on PATH or "+
				"NVCC=/path/to/nvcc (make cuda in amkc's source tree fetches one)", o.OutDir))
	case noCXX != nil:
		missing.Add(diag.Warningf(codeNoTool, o.OutDir,
			"no g++ here, which nvcc needs, so the kernels are not compiled; finish with: make -C %s", o.OutDir))
	default:
		if d := compileAll(ctx, nvcc, dir, o, arch, sources); d != nil {
			return tools, missing, d
		}
		tools.NVCC = nvccVersion(ctx, nvcc)
	}
	if o.NoLauncher {
		return tools, missing, nil
	}
	if _, err := exec.LookPath("go"); errors.Is(err, exec.ErrNotFound) {
		missing.Add(diag.Warningf(codeNoTool, o.OutDir,
			"no go here, so the launcher is not built (amkc run, chat and serve %s need none); finish with: "+
				"make -C %[1]s", o.OutDir))
		return tools, missing, nil
	}
	_, noCC := exec.LookPath("gcc")
	if noCC != nil {
		missing.Add(diag.Warningf(codeNoTool, o.OutDir,
			"no gcc here, so %s is not built, which programs in C and Python need; finish with: make -C %s",
			host.LibraryFile, o.OutDir))
	}
	o.Progress.Report(progress.Step{Activity: "go build"})
	if d := buildLauncher(ctx, dir, o.Name, noCC == nil); d != nil {
		return tools, missing, d
	}
	return tools, missing, nil
}
