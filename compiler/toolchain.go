package compiler

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"amkc/codegen"
	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/runtime/progress"
)

// FindNVCC looks for the CUDA compiler on PATH, in CUDA_HOME, in .cuda beside the executable, where make cuda puts
// one, and where CUDA installs itself. It returns "" when there is none.
//
// It does not look in the working directory or its parents: those may be a model or a build that somebody else made,
// and what is found is run.
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

// compileCUDA makes NAME.fatbin from NAME.cu in dir.
func compileCUDA(ctx context.Context, nvcc, dir, source, arch string) *diag.Diagnostic {
	out := strings.TrimSuffix(source, ".cu") + ".fatbin"
	cmd := exec.CommandContext(ctx, nvcc, "-O3", "-std=c++17", "-gencode", codegen.Gencode(arch), "-fatbin", "-o", out,
		source)
	cmd.Dir = dir
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
			complaints[i] = compileCUDA(ctx, nvcc, dir, source, arch)
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

// buildLauncher makes the executable NAME in dir from launcher/.
func buildLauncher(ctx context.Context, dir, name string) *diag.Diagnostic {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-mod=vendor", "-o",
		filepath.Join("..", name), ".")
	cmd.Dir = filepath.Join(dir, "launcher")
	cache, removeCache := goCache()
	defer removeCache()
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="), cache...)
	text, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return diag.Errorf(codeGoBuild, "launcher", "interrupted")
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return diag.Errorf(codeGoBuild, "launcher", "go build failed (%v)", infile.Reason(err)).
		With(lines[:min(len(lines), 12)]...)
}

// goCache gives go a build cache where it would find none, as in a container or a service without HOME: a temporary
// one. It returns what to add to the environment, and removes it again.
func goCache() (env []string, remove func()) {
	_, err := os.UserCacheDir()
	if err == nil || os.Getenv("GOCACHE") != "" {
		return nil, func() {}
	}
	dir, err := os.MkdirTemp("", "amkc-go-")
	if err != nil {
		return nil, func() {} // go says what it lacks
	}
	return []string{"GOCACHE=" + dir}, func() { os.RemoveAll(dir) }
}

// toolBuild runs what can be run of the build in dir, and returns what could not for want of a tool.
func toolBuild(ctx context.Context, dir string, o *BuildOptions, arch string, sources []string) (codegen.Toolchain,
	diag.List, error) {
	var tools codegen.Toolchain
	var missing diag.List
	nvcc := FindNVCC()
	_, noCXX := exec.LookPath("g++")
	switch {
	case nvcc == "":
		missing.Add(diag.Warningf(codeNoTool, dir,
			"no nvcc here, so the kernels are not compiled; finish with: make -C %s (nvcc on PATH, or make cuda "+
				"for a local one)", o.OutDir))
	case noCXX != nil:
		missing.Add(diag.Warningf(codeNoTool, dir,
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
		missing.Add(diag.Warningf(codeNoTool, dir,
			"no go here, so the launcher is not built (amkc run %s needs none); finish with: make -C %[1]s", o.OutDir))
		return tools, missing, nil
	}
	o.Progress.Report(progress.Step{Activity: "go build"})
	if d := buildLauncher(ctx, dir, o.Name); d != nil {
		return tools, missing, d
	}
	return tools, missing, nil
}
