package compiler

import "amkc/ir/diag"

var (
	codeOutDir = diag.New("AMK5101", "the output directory cannot be used", `
A build is written to a directory that does not exist yet, is empty, or holds an earlier build of amkc (it has an
amkc.manifest.json). Anything else may be somebody's work and is left alone: name another directory, or move its files away.`)
	codeWriteOut = diag.New("AMK5102", "the build cannot be written", `
The files of a build are written to a temporary directory beside the target, which takes its place when all are there. When
writing fails (disk full, no permission) the temporary directory is removed and an earlier build stays as it was.`)
	codeProof = diag.New("AMK5103", "the program could not be proved safe", `
amkc emits only programs that validate proves free of deadlocks and races. The notes are validate's own findings, each with
its code. For a schedule of your own, amkc validate FILE says the same; for amkc's own passes this is a defect: please report
the program (amkc dump MODEL).`)
	codeNVCC = diag.New("AMK5110", "nvcc rejected the generated sources", `
The generated CUDA did not compile. The notes quote nvcc and name the template or runtime header that each file comes from.
This is a defect of amkc or a toolkit that is too old (13.0 is what amkc is tested with); the emitted project is kept.`)
	codeGoBuild = diag.New("AMK5111", "the launcher did not build", `
go build failed on the emitted launcher. The launcher needs a Go release as new as the one in its go.mod, and no network. The
emitted project is kept.`)
	codeNoTool = diag.New("AMK5112", "a tool is missing, so part of the build is left to be done", `
Emitting a project needs neither nvcc nor Go. Where one is missing the project is written in full and the message names the
one command that finishes it. nvcc is looked for on PATH, in CUDA_HOME, and in a folder .cuda of this or a parent directory
(make cuda fills one); it needs g++ as its host compiler.`)
	codeCacheTools = diag.New("AMK5113", "a model cannot be built for the GPU here", `
amkc run and amkc logits build a model before the GPU can run it, into a cache: AMKC_CACHE, or amkc in the user's cache
directory (~/.cache on Linux). That takes nvcc with its host compiler g++, though not Go. One of them is missing, and the cache
has no build of this model.

    amkc run model/ --prompt "..." --device cuda

make cuda in the source tree of amkc fetches nvcc; or compile the model on another machine, and name the build instead:

    amkc model/ -o build/ --target h200
    amkc run build/ --prompt "..."`)
)
