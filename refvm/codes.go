package refvm

import "amkc/ir/diag"

// Codes of programs and inputs that the reference VM refuses. They are validation codes, 38xx.
var (
	CodeOp = diag.New("AMK3801", "op that the reference VM cannot run", `
The op has a wrong number of operands, lacks a parameter, has one that its opcode does not know or whose value is out
of range, has an operand of the wrong element type, writes a read-only buffer, names a buffer that does not exist, or
reads a temporary that no earlier op of its task wrote. FUSED is refused too: list the ops of its recipe as the ops of
the task, with temporaries between them; they compute the same.`)
	CodeView = diag.New("AMK3802", "view outside its buffer", `
A view has a range per dimension of its buffer, and at every position of the variant each range lies inside the
dimension. The message names the range and the size of the dimension.`)
	CodeSizes = diag.New("AMK3803", "operands whose sizes do not fit each other", `
The shapes of an op's operands contradict each other or its parameters, for example ADD of 8 and 16 elements, or a
view has another length at some positions than at others. docs/ir.md has the shapes that each opcode takes.`)
	CodeValue = diag.New("AMK3804", "value that no row answers to", `
A token id is negative or not below the vocabulary size. Token ids come from the prompt, or from the argmax of the step
before; an argmax over logits that are all NaN yields an id that no table has.`)
	CodeOwner = diag.New("AMK3805", "on-chip element touched by two SMs", `
A buffer in SMEM is sharded: every element lives in the shared memory of the one SM that owns it, and no other SM can
reach it. Give all stages that touch the buffer the same distribution.`)
	CodeStuck = diag.New("AMK3806", "program that cannot finish", `
Some task waits for a counter that never reaches its threshold, directly or after an earlier task of its SM's queue.
The message names the first such task and the counter.`)
	CodeWeights = diag.New("AMK3807", "weights do not fit the program", `
A WEIGHT or CONST buffer could not be loaded, or came with another number of elements than the program declares.`)
	CodePosition = diag.New("AMK3808", "position outside the program", `
A variant is for an interval of positions, and a program for those of its variants. Compile with a larger --max-seq, or
start again at position 0.`)
	CodeBuffer = diag.New("AMK3809", "buffer that the reference VM cannot hold", `
The name is unknown, a page is missing, or a page that is not made of words holds buffers of different element sizes:
the reference VM keeps one slot per element, and such buffers would not overlap as they do on the device.`)
)
