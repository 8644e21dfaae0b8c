package compiler

import (
	"context"
	"errors"
	goversion "go/version"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"amkc/codegen"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
)

// A Check is one requirement that [Doctor] has checked on the machine.
type Check struct {
	Name  string           // nvcc, g++, go, disk
	Found string           // what is there, one line; empty where there is nothing
	Fault *diag.Diagnostic // what is wrong and what to do, nil if nothing is: an error if no build can be made
}

// Doctor checks the requirements of making a build: nvcc that compiles for the architectures, with its host compiler;
// Go, for launchers; and room on the disks of the working directory and of the cache. driver is the newest CUDA version
// that the installed driver supports, 13000 for 13.0, and 0 without a driver.
func Doctor(ctx context.Context, archs []string, driver int) []Check {
	nvcc, cxx := checkNVCC(), checkCXX()
	if nvcc.Fault == nil && cxx.Fault == nil {
		nvcc = tryNVCC(ctx, archs, driver)
	}
	return []Check{nvcc, cxx, checkGo(ctx), checkDisk("disk of this directory", "."), checkCacheDisk()}
}

func checkNVCC() Check {
	c := Check{Name: "nvcc", Found: FindNVCC()}
	if c.Found == "" {
		c.Fault = diag.Errorf(codeNoTool, "nvcc", "there is none on PATH, in CUDA_HOME or in .cuda next to amkc, so "+
			"no kernel can be compiled here; install a CUDA toolkit, 13.0 if there is a choice, or run make cuda in "+
			"the source tree of amkc, and set CUDA_HOME to its folder .cuda/nvidia/cu13")
	}
	return c
}

func checkCXX() Check {
	c := Check{Name: "g++"}
	if c.Found, _ = exec.LookPath("g++"); c.Found == "" {
		c.Fault = diag.Errorf(codeNoTool, "g++",
			"there is none on PATH, and nvcc needs it as its host compiler; install g++ (apt install g++)")
	}
	return c
}

// probe includes what the generated sources do.
const probe = `#include <cstddef>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
__global__ void probe(const __nv_bfloat16* in, __half* out, std::size_t n) {
  if (threadIdx.x < n) out[threadIdx.x] = __float2half(__bfloat162float(in[threadIdx.x]));
}
`

// tryNVCC has nvcc compile a small kernel for each architecture: one that is there may be too old for the GPU, have no
// headers, or refuse the host compiler.
func tryNVCC(ctx context.Context, archs []string, driver int) Check {
	path := FindNVCC()
	c := Check{Name: "nvcc", Found: path}
	fail := func(err error, notes ...string) Check {
		c.Fault = diag.Errorf(codeNVCCBroken, "nvcc", "%s does not compile a small kernel (%v); install a CUDA "+
			"toolkit, 13.0 if there is a choice, that knows the GPU and takes the g++ that is here", path,
			infile.Reason(err)).With(notes...)
		return c
	}
	dir, err := os.MkdirTemp("", "amkc-doctor-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.WriteFile(filepath.Join(dir, "probe.cu"), []byte(probe), 0o644)
	}
	if err != nil {
		return fail(err)
	}
	for _, arch := range archs {
		if d := compileCUDA(ctx, path, dir, "probe.cu", arch); d != nil {
			return fail(errors.New("for "+arch), d.Related...)
		}
	}
	release := nvccVersion(ctx, path)
	c.Found = release + " (" + path + "); compiles for " + strings.Join(archs, ", ")
	if major := cudaVersion(release) / 1000; driver > 0 && major > driver/1000 {
		c.Fault = diag.Errorf(codeNVCCBroken, "nvcc", "kernels of CUDA %d need a driver of CUDA %[1]d, and the one "+
			"here goes as far as %d.%d; update the driver, or install a CUDA toolkit %d.x", major, driver/1000,
			driver%1000/10, driver/1000)
	}
	return c
}

var goRelease = regexp.MustCompile(`\bgo\d+\.\d+(\.\d+)?`)

func checkGo(ctx context.Context) Check {
	c := Check{Name: "go"}
	path, err := exec.LookPath("go")
	if err != nil {
		c.Fault = diag.Warningf(codeNoTool, "go", "there is none on PATH, so builds get no executable of their own, "+
			"and amkc run DIR runs them; for the executable install Go %s or newer", codegen.LauncherGo)
		return c
	}
	cmd := exec.CommandContext(ctx, path, "version")
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local")
	out, err := cmd.Output()
	release := goRelease.FindString(string(out))
	c.Found = strings.TrimPrefix(release, "go") + " (" + path + ")"
	switch {
	case err != nil || release == "":
		c.Fault = diag.Warningf(codeNoTool, "go", "%s does not say its version, so builds may get no executable of "+
			"their own; install Go %s or newer", path, codegen.LauncherGo)
	case goversion.Compare(release, "go"+codegen.LauncherGo) < 0:
		c.Fault = diag.Warningf(codeNoTool, "go", "%s is older than the Go %s that launchers are built with, so go "+
			"would fetch that, if it may; install it", release, codegen.LauncherGo)
	}
	return c
}

// littleSpace is less than what a model of a billion weights packs to in 16 bits, with room for its kernels.
const littleSpace = 4 << 30

// checkDisk says how much may be written below a directory, which need not exist yet.
func checkDisk(name, dir string) Check {
	free, known := freeSpace(existing(dir))
	if !known {
		return Check{Name: name, Found: "not known (" + dir + ")"}
	}
	c := Check{Name: name, Found: host.FormatBytes(free) + " free (" + dir + ")"}
	if free < littleSpace {
		c.Fault = diag.Warningf(codeSpace, name, "%s are available in %s, and a model of a billion weights packs to "+
			"2.5 GiB in 16 bits; make room, or build into another directory", host.FormatBytes(free), dir)
	}
	return c
}

func checkCacheDisk() Check {
	const name = "disk of the cache"
	dir, err := CacheDir()
	if err != nil {
		return Check{Name: name, Fault: asWarning(err)}
	}
	return checkDisk(name, dir)
}
