package codegen

import "amkc/ir/diag"

var (
	codeStage = diag.New("AMK4001", "no stage body for these ops", `
A stage is emitted as a matrix product, with a norm or none before it and ops on its rows after it, or as a body of
the device runtime: embed, attention, combine, sample, stop, emit and the barriers. The message lists the sequences of
ops that are near to those of the stage. Attention normalises q and k, both of them and before their rotation, or
nothing; it has no norm of v.

Programs that amkc's own passes make of a model that README.md lists can be emitted, with the default fusion. An edited
program or a family that is being added may have stages without a body. The reference VM runs them all the same: amkc
run MODEL --device ref. docs/adding.md says what a body consists of.`)
	codeDist = diag.New("AMK4002", "distribution that generated code cannot express", `
Generated code computes which tiles or units an SM owns from one descriptor per stage: distribution spread for rows,
units for attention. Explicit task lists and unassigned tasks run in the reference VM but have no descriptor.`)
	codeStructure = diag.New("AMK4003", "program structure that generated code cannot express", `
The message names what differs: loops, layers or stages that variants have in different order, a weight whose members
do not lie at a constant stride, an exchange buffer without a page or taken from several buffers, one per iteration, a
value that stays on an SM elsewhere than in the residual, a pass of several tokens, a stage that waits for another
exchange than that of the stage before it, a stage of attention that runs in layers with other heads than its first, a
step without an end or with work after it, half a barrier, a name that no C++ identifier can be made of, two stages or
two counters of one role in one layer, or a target without the properties the kernel needs. Generated text,
and this message, call things by what they are for, whatever the program calls them.`)
	codeName = diag.New("AMK4006", "name that a build cannot have", `
The name of a build (--name, or else that of the model's directory) is the name of its executable, a target of its
Makefile and part of comments. It has at most 128 letters, digits and . _ - +, begins with neither . nor -, and has a
digit after each dot, as versions do: make, compilers and Python load files by other extensions. It is not that of
another file of the build or of a target of make, in upper or lower case: all, amk, launcher, library, python, Makefile,
makefile, GNUmakefile, and none of a file of the build with more extensions (Makefile.1).`)
	codeFormat = diag.New("AMK4004", "generated text breaks the format rules", `
A generated file has a line of more than 100 columns, a trailing space or a double blank line. That is a defect of a
template or of a name that is too long to print; please report it with the program (amkc dump).`)
	codeReference = diag.New("AMK4007", "model that the plain kernels cannot be generated for", `
reference.cu is generated from the graph of the model, which comes from config.json: a kernel for each operation. The
program says where its weights and caches lie. The message names the operation, and what the program's buffers hold
otherwise than it needs: a tensor that is in none of them, in another layout, order of rows or type, or a program that
was made of another model. The plain kernels decode one token after the other: a pass of several is refused.`)
)
