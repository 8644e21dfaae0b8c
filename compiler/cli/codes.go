package cli

import "amkc/ir/diag"

// What is wrong with the way amkc was called, or with the machine.
var (
	codeUsage = diag.New("AMK5901", "the command line is not understood", `
A flag, a verb or an argument is unknown, missing, or has a value that is not accepted. Nothing was done.

    amkc run: error: unknown flag --promt; did you mean --prompt? [AMK5901]

The first word is a verb, or else a model directory to compile: a model directory that is called like a verb is written
./diff. amkc help lists the verbs, and amkc help VERB the flags of one.`)

	codeRenamed = diag.New("AMK5911", "the name is that of the previous release", `
A verb or a flag has another name now, which the message states. The old one still works in this release, so that
scripts can be changed in their own time, and is gone in the next one.

    amkc eval: eval, space and campaign are verbs of search now: amkc search eval
    amkc run --prompt-ids: the flag for token ids is --ids in all verbs, and in the executables of builds
    amkc dump --pos: the flag for a position is --position in all verbs`)

	codeOutput = diag.New("AMK5902", "a result cannot be written", `
Standard output or the file named by -o refused the data: a full disk, a closed pipe, a directory that does not exist or
may not be written. A file is written next to its place and renamed when it is complete, so an older file of that name
is still what it was.`)

	codeInput = diag.New("AMK5903", "a file cannot be read", `
A file or a directory named on the command line does not exist or may not be read, is not a regular file but a pipe, a
socket or a device, or is larger than its kind may be: 128 MiB for a program or a tokenizer.json, 64 MiB for a
text or an array of ids, 16 MiB for a ScheduleConfig or a prompt.

    program.amk: error: cannot read: no such file or directory [AMK5903]`)

	codeFailed = diag.New("AMK5904", "amkc failed in a way it did not foresee", `
An operation failed that no diagnostic describes; the message is that of the operating system or of a library. If the
machine is not at fault (disk, memory, driver), this is a bug of amkc: report it with the command and the message.`)

	codeDevice = diag.New("AMK5905", "the GPU cannot be used", `
--device cuda needs an NVIDIA driver and a GPU that it can use, of the architecture that the build is for. The message
says what is missing, before anything is built. Without a GPU, --device ref of what decodes runs the same program on the
CPU, on the reference VM, and --device cost of eval and search predicts.`)

	codeListen = diag.New("AMK5910", "the address cannot be answered at", `
serve answers at --host and --port. Another program has that port, the port is one that needs rights, or the host is no
address of this machine. --port 0 takes any port that is free, and says which.

    amkc serve model/ --port 0`)

	codeSeveral = diag.New("AMK5126", "several GPUs do not do that yet", `
A build of --gpus N runs on N GPUs at once, one token of one sequence at a time, and tokens may be drawn with a
temperature, penalties, biases and grammars. Top-k, top-p and min-p search for the tokens that are left, in rounds that
join the SMs of one GPU, and traces have the values of one GPU. For these compile the model for one GPU, with
{"tiling":{"gemv":{"parts":N}}} for the same logits. docs/several-gpus.md has the list.`)

	codeNeedsBuild = diag.New("AMK5908", "a build is needed, complete and in order", `
The directory is not a build of amkc, or one that cannot be run: a model, a build without its kernels (--no-build, or
no nvcc), or with files of another one. Compile the model, or finish the build, and name the build:

    amkc model/ -o build/
    make -C build/
    amkc check build/`)

	codeInterrupted = diag.New("AMK5907", "interrupted", `
Ctrl-C, or a request to end, arrived before the work was done. A kernel that was running has been told to give up and
has left the GPU clean, and files that were not complete have been removed. A project whose sources were complete when
nvcc was interrupted stays, and make in it goes on from there.`)

	codeTarget = diag.New("AMK5906", "the target is not known", `
--target names a GPU that amkc has a record of (amkc targets lists them), or an architecture as sm_NN with --num-sms for
the number of its multiprocessors, or auto for the GPU of this machine.

    amkc model/ -o build/ --target h200
    amkc model/ -o build/ --target sm_89 --num-sms 58

auto asks the CUDA driver. On a machine without a GPU there is nothing to ask: name the target that the build is for.`)
)

// What is wrong with a prompt, a tokenizer or a program that was given to run.
var (
	codePrompt = diag.New("AMK1202", "the prompt cannot be used", `
The prompt has no tokens, names an id that is not in the vocabulary, is not UTF-8, or fills all positions that the
program was compiled for. --max-seq compiles for more.`)

	codeNoToken = diag.New("AMK1217", "no token can be chosen", `
A token is chosen from the logits that the model computes. They have a value that is not a number, or no token is left:
each has a logit of -inf, or a --logit-bias of -inf. Logits that are not numbers are those of damaged weights, or of a
model whose values do not fit --dtype.`)

	codeNotExpressible = diag.New("AMK1204", "one form cannot express what the other holds", `
The AMK IR 0.2.0 profile is an interchange format for one decode step at one position, before it is distributed over
SMs. The native forms hold scheduled programs of amkc. A program of the profile has no native form; and a model whose
rotary embedding is scaled has none in the profile, which knows a base alone.`)

	codePosition = diag.New("AMK1206", "no variant of the program runs at the position", `
A program is a list of variants, each for an interval of positions, up to the --max-seq it was compiled for. The message
lists the intervals.`)

	codeTokenizers = diag.New("AMK1210", "the tokenizers of two models differ", `
amkc quality has both sides predict the same ids. The tokenizer of MODEL and that of the side it is held against make
different ids of the text, so that one of the two would be judged on ids that mean something else to it. Files that
differ and make the same ids of the text are accepted. Ids that mean the same to both can be given as they are:

    amkc quality model/ --against other/ --ids-file ids.npy`)

	codeManySMs = diag.New("AMK4925", "the build is for more SMs than a CPU can stand in for", `
amkc explore runs the threads of all SMs by turns, and a program for a whole GPU has tens of thousands of them. The
order of hand-overs is the same with few SMs: compile the model for 2 to 6 of any architecture. That takes neither a GPU
nor nvcc:

    amkc model/ -o build/ --target sm_90 --num-sms 4 --no-build
    amkc explore build/`)
)
