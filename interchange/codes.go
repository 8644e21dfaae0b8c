package interchange

import "amkc/ir/diag"

var (
	codeSyntax = diag.New("AMK3900", "not a JSON file", `
The file is not JSON, or not UTF-8. The position is the first byte that cannot be read.

    program.json:12:7: error: found "}"; want a value [AMK3900]

NaN and Infinity, which Python's json module writes, are no JSON, and no program needs them. Repair the file, or write
it again with the tool that made it.`)

	codeDepth = diag.New("AMK3901", "nested too deep", `
The file nests arrays or objects deeper than any program does: 128 levels are accepted. Flatten what meta, params or
config hold.`)

	codeType = diag.New("AMK3902", "value of the wrong type", `
A field holds a value of another type than the format gives it.

    program.json: tasks[3].inputs: error: is or holds a string; want an array [AMK3902]

Integers must be written as integers (32, not 32.0 and not "32"), and fit in 64 bits. Only source, sm, target, pages and
config may be null.`)

	codeMissing = diag.New("AMK3903", "required field missing", `
An object lacks a field without which it has no meaning. The position is that of the object.

    program.json: tasks[3]: error: required field "out_counter" is missing [AMK3903]

Required are: buffer id, name, kind, dtype, shape, space; counter id; task id, op, inputs, outputs, out_counter; wait
counter, threshold; pages buffer_to_page, pages; page id, space, nbytes; and of a target every field from name to
fp16_tflops.`)

	codeEnum = diag.New("AMK3904", "unknown name", `
A field that takes one of a fixed set of names holds another one. The message lists the names that are accepted. Names
are upper case, as "GEMV_TILE", "BF16" or "HBM"; numeric codes are not accepted.`)

	codeVersion = diag.New("AMK3905", "foreign major version", `
The text before the first dot of ir_version or abi_version differs from the version that amkc reads (IR 0.2.0, ABI 0.2).
Another major version may give every field another meaning, so nothing of the file is used. Minor versions are
compatible. Convert the program with the tool that wrote it.`)

	codeUnknownKey = diag.New("AMK3906", "unknown key dropped", `
An object has a key that the format does not know: a misspelling, or a field of a newer minor version. The key is
dropped, as the format asks, and is not written back. Keys inside meta, params and config are free and always kept.`)

	codeSize = diag.New("AMK3912", "file larger than the stated budget", `
The file has more than 1,572,864 JSON values, or a FUSED recipe of more than 256 steps. What cannot be looked at in
full is refused, never checked less. Llama-3.1-8B in 15,000 tasks has 350,000 values.`)

	codeName = diag.New("AMK3913", "malformed name", `
A string that names something holds a character that no name has, or is longer than 255 bytes. Names of buffers and
targets, labels of tasks, state-dict keys and versions have letters, digits and _ . - + / @ % # : , = { } [ ] ( ), with
blanks inside but not at the ends. Notes, meta and config are free: nothing is named after them where they hold anything
else.`)

	codeGPU = diag.New("AMK3914", "meta.gpu is not the target", `
meta.gpu is a note, and another GPU than target.name. The target counts: its SMs are the queues of the program, and
what was measured belongs to it. Write target.name into meta.gpu, or leave it out.

    program.json: meta.gpu: warning: is "h100", and target.name "rtx5090", which counts; want the same name, or
    none [AMK3914]`)

	codeTwice = diag.New("AMK3920", "id used twice", `
Two buffers, counters, tasks or pages of a program have the same id, so that what refers to it could mean either. Ids
need not be dense, but each is used once. Renumber one of the two, and what refers to it.`)

	codeDangling = diag.New("AMK3921", "reference to something that is not there", `
A task reads or writes a buffer, signals or waits on a counter, or runs on an SM, and there is none with that number; or
pages bind a buffer or a page that does not exist.

    task 7 (L0.q_proj[t1]): error: waits on counter 999999, which does not exist; `+
		`the id of a counter is accepted [AMK3921]

Ids are those of the "id" fields, not places in the list.`)

	codeArity = diag.New("AMK3922", "wrong number of operands", `
Every opcode takes a fixed range of inputs and one output (NOP none). GEMV_TILE and GEMM_TILE take a fourth input, the
zeros of an asymmetric quantisation, although the profile's own registry stops at three.`)

	codeCapacity = diag.New("AMK3923", "more than the device's records hold", `
A task has at most 8 inputs, 4 outputs and 8 waits, and a buffer at most 4 dimensions: these are fixed arrays on the
device. Split the task, or join counters.`)

	codeParameter = diag.New("AMK3924", "parameter missing or of the wrong type", `
An opcode lacks a parameter that it cannot do without, or has one that does not fit its field on the device: counts and
offsets are integers of 32 bits (16 and not 16.0), eps, scale and theta finite numbers.`)

	codeContradiction = diag.New("AMK3925", "parameters and shapes contradict each other", `
A parameter such as K, hidden or head_dim repeats what the shapes of the operands say, and says something else.

    task 3 (L0.q_proj[t0]): error: GEMV_TILE has K=32 and an input of shape [1 64]; `+
		`its last dimension is accepted [AMK3925]

Parameters that select a part of a buffer (n_off, N_tile, kv_start, kv_len, pos) are not meant here: they become views,
and a view outside its buffer is reported when the program is proved.`)

	codeNoCounterpart = diag.New("AMK3926", "instruction without a native counterpart", `
The task is well-formed, but the flat form that is proved and run has nothing that means the same: a fourth input of
ATTENTION_TILE, SOFTMAX over another dimension than the last, KV_APPEND from one cache into another.`)

	codeRecipe = diag.New("AMK3927", "malformed FUSED recipe", `
The recipe parameter of a FUSED task is an object with a list of steps, each one primitive instruction:

    {"steps": [{"op": 11, "args": [{"in": 0}, {"in": 1}], "out": 0, "out_shape": [1, 64], "out_dtype": "float32"},
               {"op": 3, "args": [{"s": 0}, {"in": 2}], "out": "final", "params": {"eps": 1e-05, "hidden": 64}}]}

Arguments are inputs of the task or scratch that an earlier step wrote; the last result goes to "final". A recipe
holds no FUSED step.`)

	codeExport = diag.New("AMK3929", "program that the AMK profile cannot express", `
The AMK profile has one instruction per task, whole buffers as operands, one position, and one counter protocol. A
native program can be exported as pass lower leaves it; what later passes add (several ops in a task, temporaries,
exchange words, flagged counters, packed layouts, splits of the cache) has no counterpart. So has a rotation of a
part of each head, and one whose frequencies are not powers of one base. The message names the first stage or buffer
that stands in the way.`)
)
