package ir

import "amkc/ir/diag"

// Codes of malformed programs. They are validation codes: a program that cannot be read is a program that is rejected.
var (
	CodeText = diag.New("AMK3001", "program text cannot be parsed", `
The native text form (.amk) has one entity a line. The message says what was found at that line and column, and what
would be accepted there. docs/ir.md has the grammar.`)
	CodeJSON = diag.New("AMK3002", "JSON of a program or a configuration cannot be parsed", `
The native JSON form is an object with "ir_version" 2.x; a configuration is an object with the fields of
ScheduleConfig. Fields that are unknown, or given twice, are errors. The message names the field and what would be
accepted; docs/ir.md has the schema.`)
	CodeVersion = diag.New("AMK3003", "program of a foreign major version", `
The reader accepts its own major version only: another one may mean things that this amkc does not know. Compile the
model again with this amkc, into the same directory if it is a build, or use the amkc that wrote the file.

Version 2 writes what lies between a tensor of the checkpoint and the rows of a buffer as a chain of transforms.`)
	CodeName = diag.New("AMK3010", "name malformed, defined twice, or not at all", `
A name is 1 to 255 bytes of letters, digits and _ . - + / @ % # : , = { } [ ] ( ), with blanks inside but not at the
ends; an architecture is sm_ and a number, as sm_90a. That holds for every string of a program: it is printed into
comments, Makefiles and messages.

Every buffer, page, counter and task has one name. A family such as L{i}.x defines one name for each index. A stage
may refer to names that exist for every iteration of its loop; {i+1} in the last iteration is one past the loop's
range. A group gives buffers further names, one for each index, which no buffer and no other group may have; its
members are buffers.`)
	CodeOperands = diag.New("AMK3011", "op with wrong operands or parameters", `
Each opcode takes a fixed range of operand counts and a fixed set of parameters. amkc's package ir/op declares them, and
docs/ir.md lists them.`)
	CodeShape = diag.New("AMK3012", "malformed buffer, view, span or interval", `
Shapes have one to five positive dimensions; a view names as many ranges as its buffer has dimensions; a variant
covers a non-empty interval of positions; a distribution has a positive extent, grain and number of SMs. The members
of a group have one dtype and as many dimensions, for one op reads them all.

In a pass of several tokens, outputs and the input token have the tokens as their first dimension, and a KV cache of
several sequences has these as its first one. Views name sequences by number, from 0 on: [0:pos[1]] is what sequence 1
has so far. t, the row of an op's operands, stands in parameters alone.`)
	CodeSize = diag.New("AMK3013", "program larger than the stated budget", `
A program is unrolled before it is proved. What its variants unroll to is counted first, all of them together: at most
393,216 tasks, 1,572,864 ops and views in them, 131,072 buffers, pages and counters (each member of a family or a
group is one), 64 variants. Iterations have indices up to 524,288. What cannot be looked at in full is refused, never
checked less. Buffers and pages stop at 2^48 bytes. docs/ir.md lists every limit.`)
	CodeRange = diag.New("AMK3014", "number out of its range", `
A number of the program does not fit the type that the kernel holds it in, or is beyond what amkc computes with. The
message gives the range: sizes and positions are int in the emitted code, bytes are size_t, and eps, scale and theta
are float32, where they must be 0 or normal numbers (1.18e-38 to 3.40e+38). docs/ir.md lists the range of every
number.`)
	CodeTemp = diag.New("AMK3020", "temporary misused", `
A temporary such as %y is a value of one task. An op of the stage writes it, once and without ranges, before another op
of the same stage reads it. Example of what is refused:

    L{i}.h[a:b] = ADD(residual[a:b], %y)
    %y = GEMV_TILE(L{i}.attn[0:256], L{i}.o.weight[a:b,0:256])

Put the op that writes the temporary first, or give the second value a name of its own.`)
	CodeSync = diag.New("AMK3021", "malformed wait or signal", `
A wait names a counter, once, with a threshold of 1 or more; a threshold of 0 would order nothing. A counter has a
known realisation and scope, and starts at 0 or above.`)
	CodePage = diag.New("AMK3022", "buffer that its page cannot hold", `
A page is a slot of scratch memory that several buffers use one after another, each from offset 0. The pages that a
buffer names must exist, lie in the buffer's space, have its layout with as many copies, and have at least its bytes.`)
	CodePiece = diag.New("AMK3025", "pieces that do not supply the rows of a buffer", `
A WEIGHT or CONST buffer is packed from pieces: tensors of the checkpoint, each inside the transforms that make rows of
the buffer of it, as in pairs:64(rows:0:512(KEY)). A transform has the arguments that docs/ir.md lists, even and odd are
outermost and come in pairs, and the rows of all pieces fill the buffer. How many rows a tensor has is for the
checkpoint to say; what the program says on its own has to fit.`)
	CodeRole = diag.New("AMK3024", "role or layer malformed", `
A role says what an entity is for where its ops do not, whatever it is called. Of buffers it is token, position,
stop_ids, stop_last, next or logits, which the host finds by it: I32 inputs, an I32 output and one of real numbers, no
families, each at most once.
Of counters it is step, for the one of a variant whose completion ends the step. A stage may have any role, a letter and
then letters, digits and underscores, and a layer: a number, or in a loop {i}, {i+N} or {i-N}.

Where a file leaves role and layer out, names say them: stage L{i}.qkv has role qkv and layer {i}, buffer token the role
token. docs/ir.md has the conventions.`)
	CodeVariants = diag.New("AMK3023", "variants do not cover the positions", `
The variants of a program cover the positions 0 to max_seq-1, each position once, in ascending order: the first starts
at 0, each next one where the one before ended plus 1, and the last one ends at max_seq-1. A program without a line
model is for the positions that its variants cover.

The position is that of the first token of a pass, all of whose rows are of one variant: with rows=R in its line pass,
the last variant ends at max_seq-R, and before, between and after variants there may be up to R-1 positions at which
no pass begins.`)
)
