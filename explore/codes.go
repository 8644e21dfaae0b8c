package explore

import "amkc/ir/diag"

var (
	codeFound = diag.New("AMK4921", "a schedule in which the kernel goes wrong", `
amkc explore runs the kernels of a build on the CPU, under many schedules, and something went wrong in one: a data race,
a read of bytes that nobody wrote, an access outside any allocation, a barrier that other threads reach than it counts
on, a stall, a crash, results that differ from schedule to schedule or from one way to decode a text to another, or
logits that are further from those of the reference than they may be. The notes say where, by file and line.

The script that was written repeats the schedule exactly, as often as one likes:

    amkc explore build/ --replay explore-1.json

docs/explore.md says how to read a finding.`)

	codeScript = diag.New("AMK4922", "a script cannot be replayed", `
A script is the output of amkc explore for a schedule with a fault: the build, the job, and the deviations of the
schedule from the default one. The file does not exist or is malformed, or the build, the machine of this amkc or its
C++ compiler differ from those of the script, so that the schedule would differ. Explore the build again.`)

	codeJob = diag.New("AMK4923", "the build has no such job", `
A job is a way to decode something with a build: step by step, by passes of several rows, by passes over a prompt, of
several sequences, drawn tokens, and so on. Which there are depends on the kernels of the build: one that was compiled
without --rows has none for passes of several rows.`)

	codeRecording = diag.New("AMK4926", "a trace of a GPU cannot be compared with", `
amkc check --trace writes what each stage of a build publishes on a GPU, and amkc explore --trace compares that with
what the same stages publish on the CPU. The file is not such a trace, is truncated, is too large, or belongs to
another build, with other sources or weights.

    amkc check build/ --trace FILE       # on the machine with the GPU
    amkc explore build/ --trace FILE`)

	codeWorker = diag.New("AMK4924", "the process that runs kernels did not start", `
amkc explore runs kernels in processes of their own, so that a kernel that crashes is a finding. Such a process is amkc
itself; it ended before it had run anything, and the notes have what it said last. If memory and the temporary directory
are not at fault, this is a defect of amkc.`)

	codeNoCompiler = diag.New("AMK5116", "there is no C++ compiler", `
amkc explore compiles the kernels of a build for the CPU. That takes g++ or clang++, for C++17, on Linux. It is looked
for in CXX, and as c++, g++ and clang++ on PATH.

    CXX=g++-13 amkc explore build/`)

	codeCompile = diag.New("AMK5117", "the C++ compiler rejected the kernels", `
A source of the build, or of the machine that runs it, did not compile for the CPU. The notes quote the compiler. Either
it does not know C++17, or a source was edited and uses what there is no primitive for (amk/hw): inline assembly and
builtins of CUDA do not compile for a CPU.`)
)
