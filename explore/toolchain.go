package explore

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"amkc/compiler/objects"
	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// CompilerVariable is the environment variable that names the C++ compiler.
const CompilerVariable = "CXX"

// A toolchain is a C++ compiler of this machine.
type toolchain struct {
	command []string // followed by the flags in CXX
	version string   // what it says of itself, and the variables that it reads
	clang   bool

	wanted func(source string) bool // which kernels of a build are compiled; nil: all
	called bool                     // as Options
}

// findToolchain returns the compiler that CXX names, or else the first of those that machines have.
func findToolchain(ctx context.Context) (*toolchain, error) {
	if runtime.GOOS != "linux" {
		return nil, diag.Errorf(codeNoCompiler, runtime.GOOS, "kernels run on the CPU of a Linux machine alone")
	}
	tried := [][]string{{"c++"}, {"g++"}, {"clang++"}}
	if named := strings.Fields(os.Getenv(CompilerVariable)); len(named) > 0 {
		tried = [][]string{named}
	}
	var why []string
	for _, command := range tried {
		path, err := exec.LookPath(command[0])
		if err != nil {
			why = append(why, command[0]+": "+infile.Reason(err))
			continue
		}
		command = append([]string{path}, command[1:]...)
		out, err := exec.CommandContext(ctx, path, append(command[1:], "--version")...).Output()
		if err != nil {
			why = append(why, path+" --version: "+infile.Reason(err))
			continue
		}
		return &toolchain{command: command, version: string(out) + objects.Environment(),
			clang: strings.Contains(string(out), "clang")}, nil
	}
	return nil, diag.Errorf(codeNoCompiler, CompilerVariable,
		"there is no C++ compiler that runs; want g++ or clang++ on PATH, or its name in %s", CompilerVariable).
		With(why...)
}

// Flags of all that is compiled. Sums are not fused, as in builds (-fmad=false); memory is what hooks say it is, so
// that no access may be left out because of types.
var (
	commonFlags = []string{"-std=c++17", "-g1", "-ffp-contract=off", "-fno-strict-aliasing", "-fPIC", "-w"}

	machineFlags = []string{"-O2"}
	machineLink  = []string{"-shared", "-Wl,-soname," + libraryName}

	// Plain loads and stores of kernels call hooks of the machine: those of the thread sanitizer, whose own library is
	// not linked. A kernel and what the host reads keep the visibility that they have.
	kernelFlags = []string{"-x", "c++", "-O1", "-fsanitize=thread"}
	gccFlags    = append([]string{"-fno-gnu-unique", "--param", "tsan-instrument-func-entry-exit=0", "--param",
		"tsan-distinguish-volatile=1"}, gccFast...)
	// Optimisations after the pass that inserts the hooks change neither what a kernel does nor in which order. Those
	// that are left out take a fifth of the compiler's time and save little of a run's, most of which is in the hooks.
	gccFast = []string{"-fira-algorithm=priority", "-fira-region=one", "-fno-ivopts", "-fno-forward-propagate",
		"-fno-if-conversion", "-fno-if-conversion2", "-fno-dse", "-fno-split-wide-types",
		"-fno-move-loop-invariants"}
	clangFlags = []string{"-mllvm", "-tsan-instrument-func-entry-exit=0", "-mllvm", "-tsan-distinguish-volatile=1"}
	// Compilers make calls of these from loads and stores, after which no hook is called: the machine has its own.
	kernelLink = []string{"-shared", "-Wl,-Bsymbolic", "-Wl,--build-id=sha1",
		"-Wl,--wrap=memset,--wrap=memcpy,--wrap=memmove"}
)

// Called is the flag of kernels whose functions are called, and not inlined: [Options].Called.
const Called = "-DAMK_CALLED=1"

// libraryName is the soname of the machine, which kernels are linked with.
const libraryName = "libamkcpu.so"

// ofKernels are the flags that kernels are compiled with.
func (t *toolchain) ofKernels() []string {
	flags := append(append([]string{}, commonFlags...), kernelFlags...)
	if t.clang {
		return append(flags, clangFlags...)
	}
	return append(flags, gccFlags...)
}

// killDelay is how long the output of a compiler is waited for after it was killed: what it has started goes on, and
// holds it open.
const killDelay = time.Second

// run runs the compiler in a directory. what is the source or the object that it is about.
func (t *toolchain) run(ctx context.Context, dir, what string, args ...string) error {
	cmd := exec.CommandContext(ctx, t.command[0], append(append([]string{}, t.command[1:]...), args...)...)
	cmd.Dir, cmd.WaitDelay = dir, killDelay
	text, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return diag.Errorf(codeCompile, what, "%s failed (%s); want it to accept the sources of a build", t.command[0],
		infile.Reason(err)).With(firstLines(string(text), mostLines)...)
}

// mostLines is how much of what a compiler or a crash says is quoted.
const mostLines = 12

// firstLines are the first lines of a text that say something. A diagnostic makes them printable.
func firstLines(text string, most int) []string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if lines = append(lines, line); len(lines) == most {
			break
		}
	}
	return lines
}
