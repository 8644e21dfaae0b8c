package amk

import "amkc/ir/diag"

var (
	codeSyntax = diag.New("AMK3900", "not a JSON file", `
The file is not JSON, or not UTF-8. The position is the first byte that cannot be read.

    program.json:12:7: error: unexpected '}'; a JSON value is expected [AMK3900]

What Python's json module reads is accepted (NaN and Infinity included), with one exception: half a surrogate pair, which
is no text. Repair the file, or write it again with the tool that made it.`)

	codeDepth = diag.New("AMK3901", "nested too deep", `
The file nests arrays or objects deeper than any program does. Flatten the meta, params or tiling value at the position.`)

	codeType = diag.New("AMK3902", "value of the wrong type", `
A field holds a value of another type than the format gives it.

    program.json:40:13: error: task: "inputs" must be an array of integers, found a string [AMK3902]

Integers must be written as integers (32, not 32.0 and not "32"), and fit in 64 bits. Only source, sm, target, pages and
config may be null.`)

	codeMissing = diag.New("AMK3903", "required field missing", `
An object lacks a field without which it has no meaning. The position is that of the object.

    program.json:31:5: error: task: required field "out_counter" is missing [AMK3903]

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
dropped, as the format asks, and is not written back. Keys inside meta, params and tiling are free and always kept.`)

	codeDuplicate = diag.New("AMK3907", "key written twice", `
An object has the same key twice. The last value counts, at the place of the first, as in Python. Remove one of the two.
Two spellings of one integer key ("1" and "01") are the same key.`)

	codeRange = diag.New("AMK3908", "number out of range", `
An integer is larger than its field holds, or longer than the 4300 digits that Python converts.`)

	codeIntKey = diag.New("AMK3909", "key is not an integer", `
The keys of buffer_to_page are buffer ids, and those of an explicit sm_assignment are task ids: decimal integers in
quotes, as {"3": 0}.`)

	codeRequest = diag.New("AMK3910", "request that cannot be lowered", `
A lowering request has a value without meaning, or a combination that the format cannot express.

    request: error: shape.n_heads 9 is not a multiple of shape.n_kv_heads 2 [AMK3910]

Quantised weights with a batch above 1 are not part of the format. Sizes are at least 1 and have the upper bounds that
the message gives, and pos must be inside the KV cache, below shape.max_seq.`)

	codeInert = diag.New("AMK3911", "request field without effect", `
A lowering request sets a field that its weight-key scheme does not use. A toy model always has an lm_head.weight of its
own, so "tied" changes nothing there.`)
)
