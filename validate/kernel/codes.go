package kernel

import "amkc/ir/diag"

// Codes of the contract. validate.CodeBackend is used as it is there.
var (
	CodeModel = diag.New("AMK3119", "program that contradicts the model's facts", `
Generated code and the host take the sizes of heads, caches, norms, tables and logits, the type of weights, cache and
exchanged values, and the eps of norms from the facts of the line "model"; the proof takes them from views and
buffers. For backend kernel both say the same: docs/validator.md lists what each fact is compared with.

    model tiny ... kv_heads=2 head_dim=16 max_seq=64 ...
    buffer L{i}.kv for 0..1 KV_CACHE BF16 [4,64,2,16] HBM kvfrag16        # 4 heads

Correct the facts, or the program.`)
	CodeElements = diag.New("AMK3121", "element types that the kernel does not combine", `
A program may have one element type for its weights, one for its activations and one for its cache: dtype, activations
and cache of the line "model". The kernel multiplies weights with activations, and activations with rows of the cache,
as they are: it accepts F32, F16 or BF16, the same for all three. The cache may be I8 instead, whose rows have scales
(amkc --cache int8). Other combinations run on the reference VM.

    model tiny ... dtype=BF16 cache=F32 ...

Leave out activations and cache, which are then of the type of the weights.`)
	CodeTokens = diag.New("AMK3171", "pass of several tokens that the kernel does not take", `
A program may say that a pass takes several sequences, or several rows of each: the proof and the reference VM know
both. The kernel takes up to eight tokens: rows of one sequence, or as many rows of each of several. Sequences want one
variant, as their positions are independent.

    pass sequences=1 rows=4
    pass sequences=8 rows=1
    pass sequences=2 rows=4

Lower the model for one token per pass, or prove the program for the reference VM: amkc validate --backend ref.`)
	CodeRunAhead = diag.New("AMK3170", "read ahead of every wait of what a step writes", `
The kernel reads matrices, norms and tables ahead of every wait, also of those of the step before, and the keys and
values of ATTENTION_TILE from the end of the last step on. No edge orders these reads, so nothing may write what they
read: matrices, norms and tables are WEIGHT or CONST, and no task of the step writes keys or values that attention
reads, wherever they are and whatever it waits for. Cache layouts keep 16 rows in a block, and whole blocks are
copied: rows are distributed to parts in multiples of 16.

    L00.attn[0:64] = ATTENTION_TILE(L00.q[0:64], L00.kv[0,0:pos+1,0,0:64], L00.kv[0,0:pos+1,1,0:64]) ...`+
		`   # reads row pos

Read the rows below pos, and hand the row of this step over as operands k_row and v_row.`)
)
