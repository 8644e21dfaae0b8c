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
)

// FindNVCC looks for the CUDA compiler on PATH, in CUDA_HOME, and in .cuda of the working directory, of a parent, or of
// the directory of the executable, and where CUDA installs itself. It returns "" when there is none.
func FindNVCC() string {
	if path, err := exec.LookPath("nvcc"); err == nil {
		return path
	}
	var candidates []string
	if home := os.Getenv("CUDA_HOME"); home != "" {
		candidates = append(candidates, filepath.Join(home, "bin", "nvcc"))
	}
	inDir := func(dir string) string { return filepath.Join(dir, ".cuda", "nvidia", "cu13", "bin", "nvcc") }
	if dir, err := os.Getwd(); err == nil {
		for ; ; dir = filepath.Dir(dir) {
			candidates = append(candidates, inDir(dir))
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	if exe, err := os.Executable(); err == nil {
		candidates = append(candidates, inDir(filepath.Dir(exe)))
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
	cmd := exec.CommandContext(ctx, nvcc, "-O3", "-std=c++17", "-gencode", codegen.Gencode(arch), "-I.", "-fatbin", "-o", out, source)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return diag.Errorf(codeNVCC, source, "interrupted")
	}
	return diag.Errorf(codeNVCC, source, "nvcc failed (%v); want it to accept the generated sources", err).With(explainNVCC(string(text))...)
}

// compileAll compiles sources side by side, for nvcc uses one core. It returns the first complaint, in the order of the
// sources.
func compileAll(ctx context.Context, nvcc, dir string, o *BuildOptions, arch string, sources []string) *diag.Diagnostic {
	complaints := make([]*diag.Diagnostic, len(sources))
	ended := make(chan string)
	for i, source := range sources {
		go func() {
			complaints[i] = compileCUDA(ctx, nvcc, dir, source, arch)
			ended <- source
		}()
	}
	o.progress("nvcc", 0, int64(len(sources)))
	for i := range sources {
		o.progress("nvcc "+<-ended, int64(i+1), int64(len(sources)))
	}
	for _, d := range complaints {
		if d != nil {
			return d
		}
	}
	return nil
}

var nvccLine = regexp.MustCompile(`^([^\s(]+)\(\d+\): (?:error|warning)`)

// explainNVCC keeps the first of nvcc's errors and warnings, and says which template or runtime header each file comes from.
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
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-mod=vendor", "-o", filepath.Join("..", name), ".")
	cmd.Dir = filepath.Join(dir, "launcher")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	text, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return diag.Errorf(codeGoBuild, "launcher", "interrupted")
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return diag.Errorf(codeGoBuild, "launcher", "go build failed (%v)", err).With(lines[:min(len(lines), 12)]...)
}

// toolBuild runs what can be run of the build in dir, and returns what could not for want of a tool.
func toolBuild(ctx context.Context, dir string, o *BuildOptions, arch string, sources []string) (codegen.Toolchain, diag.List, error) {
	var tools codegen.Toolchain
	var missing diag.List
	nvcc := FindNVCC()
	_, noCXX := exec.LookPath("g++")
	switch {
	case nvcc == "":
		missing.Add(diag.Warningf(codeNoTool, dir, "no nvcc here, so the kernels are not compiled; finish with: make -C %s (nvcc on PATH, or make cuda for a local one)", o.OutDir))
	case noCXX != nil:
		missing.Add(diag.Warningf(codeNoTool, dir, "no g++ here, which nvcc needs, so the kernels are not compiled; finish with: make -C %s", o.OutDir))
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
		missing.Add(diag.Warningf(codeNoTool, dir, "no go here, so the launcher is not built (amkc run %s needs none); finish with: make -C %[1]s", o.OutDir))
		return tools, missing, nil
	}
	o.progress("go build", 0, 1)
	if d := buildLauncher(ctx, dir, o.Name); d != nil {
		return tools, missing, d
	}
	return tools, missing, nil
}
