package checkpoint

import "amkc/ir/diag"

// What is wrong with the directory.
var (
	codeNoDirectory = diag.New("AMK1001", "the model directory cannot be opened", `
MODEL must be a directory that holds config.json and the weights as safetensors files. The path does not exist, cannot
be read, or is a file.

    amkc models/Llama-3.2-1B -o build/      # the directory, not models/Llama-3.2-1B/model.safetensors

Check the spelling, and give the directory that contains config.json. A GGUF file is a whole model, and is given itself:

    amkc Llama-3.2-1B-Q8_0.gguf -o build/`)

	codeHubID = diag.New("AMK1002", "a hub id is not in the hub's cache", `
MODEL is not a directory and looks like the name of a model on a hub. amkc never uses the network: it looks for such a
model in the cache that the tools of the hub fill, where its files are in models--ORG--NAME/snapshots/COMMIT. The cache
is HF_HUB_CACHE, or hub in HF_HOME, or ~/.cache/huggingface/hub. The message says which path was looked at.

    hf download meta-llama/Llama-3.2-1B
    amkc meta-llama/Llama-3.2-1B -o build/
    amkc meta-llama/Llama-3.2-1B@main -o build/       # a branch, a tag or a commit that is in the cache

A directory of that name is taken first. A directory elsewhere is given by its path.`)

	codeNoConfig = diag.New("AMK1003", "the model directory has no config.json", `
config.json says what the model is; without it nothing can be compiled. The directory is empty, is the wrong one, or the
download did not finish. It must hold config.json, and model.safetensors or model.safetensors.index.json with the shards
that it names.`)

	codeNoWeights = diag.New("AMK1004", "the model directory has no weights", `
The directory has a config.json, but neither model.safetensors nor model.safetensors.index.json. Other safetensors files
are not guessed at: shards without their index, or an adapter, are not a model.

Complete the download, or give --random-weights SEED to build from the shapes of config.json alone.`)

	codeForeignWeights = diag.New("AMK1005", "the weights are in a format that is not read", `
The weights are there, but as pickled PyTorch files (.bin, .pt, .pth), or another format. amkc reads safetensors, as
model.safetensors or model.safetensors.index.json with its shards, and GGUF files. Most models are published in one of
these forms as well; else load the model with transformers and save it again, which writes safetensors:

    AutoModelForCausalLM.from_pretrained(SRC).save_pretrained(DST)`)

	codeRead = diag.New("AMK1006", "a file of the model cannot be read", `
The operating system refused to open or read a file: permissions, a file system error, or a file that was truncated or
closed while it was in use. Weights are memory-mapped, so the files must stay as they are until amkc ends.

Or the file is not one that a model may have: a directory, a pipe, a socket or a device, or larger than its kind may be
(16 MiB for config.json and generation_config.json, 32 MiB for an index). Symbolic links are followed.`)

	codeAdapter = diag.New("AMK1035", "the directory holds an adapter", `
An adapter (LoRA and its like) is a change to the weights of a model, stored apart from it. transformers applies it
when it loads the directory; without it the model would be another one, so amkc does not ignore it. Give the model, and
the adapter with --adapter:

    amkc meta-llama/Llama-3.2-1B --adapter adapter/ -o build/
    amkc model/ --adapter model/ -o build/              # an adapter next to the weights of its model

What --adapter does not take, PEFT merges:

    model = AutoPeftModelForCausalLM.from_pretrained("adapter/")
    model.merge_and_unload().save_pretrained("merged/")
    AutoTokenizer.from_pretrained("adapter/").save_pretrained("merged/")

If the model is meant without it, move adapter_config.json and adapter_model.* elsewhere.

A directory with an adapter and a GGUF file is refused too. Give the file, which is the model without the adapter: a
warning names the adapter, unless --adapter merges it. Only files in F32, F16 or BF16 take one.`)

	codeAdapterConfig = diag.New("AMK1038", "an adapter is not of a kind that is merged", `
--adapter takes a LoRA as PEFT saves it: a directory with adapter_config.json and adapter_model.safetensors. peft_type
is LORA; use_rslora, use_dora, rank_pattern, alpha_pattern, biases and modules_to_save are merged as PEFT does. A field
that amkc does not know may change what the weights become, so it is refused unless it is null, false, 0 or empty:
layer_replication, target_parameters, trainable_token_indices, alora_invocation_tokens and others. So are the values of
init_lora_weights with which PEFT changes the weights of the model when it loads the adapter (pissa, olora, corda,
loftq). Merge such an adapter with PEFT (merge_and_unload), save the result and compile that.`)

	// NotFitting is also of what importers find.
	NotFitting = diag.New("AMK1039", "an adapter does not fit the model", `
Each tensor of adapter_model.safetensors changes a tensor of the model: lora_A [r, inputs] and lora_B [outputs, r] of a
module change its matrix, with r from r or rank_pattern, and other tensors replace that of their name. The message says
which tensor has no counterpart, another shape, or numbers that are not finite, also once they are added to the model's.
Most often the adapter belongs to another model: base_model_name_or_path in adapter_config.json names it.

A model whose logits come from the embedding (tie_word_embeddings) has one matrix for both, and an adapter of one of
them is refused: whether it changes the other depends on how the model is loaded. Merge it with PEFT, and save what it
makes.`)

	codeAdapterQuantised = diag.New("AMK1041", "an adapter changes a matrix that is quantised", `
The checkpoint stores this matrix quantised. With an adapter it would have to be quantised again: the sum does not fit
the scales, and what is lost twice was measured by nobody. Give the model that the checkpoint was made from, in F32, F16
or BF16, and let amkc quantise the sum:

    amkc model/ --adapter adapter/ --weights int4 -o build/`)

	codeHubCache = diag.New("AMK1036", "a model of a hub's cache has no snapshot to choose", `
A directory models--ORG--NAME of a hub's cache holds the commits of a model below snapshots/. amkc takes the one that
refs/main names, or the only one there is, and names the build NAME. Of ORG/NAME@REVISION it takes the one that
refs/REVISION names, or the commit REVISION. Where that is not there, download it, or give the directory of one that is:

    amkc ~/.cache/huggingface/hub/models--ORG--NAME/snapshots/COMMIT -o build/`)

	codePointer = diag.New("AMK1037", "a file is a git-lfs pointer", `
The repository was cloned without git-lfs, so that large files are pointers: three lines that begin with "version
https://git-lfs.github.com/spec/v1" and say which file belongs there. In the model's directory:

    git lfs install
    git lfs pull`)
)

// What is wrong with a JSON file.
var (
	codeJSON = diag.New("AMK1007", "malformed JSON", `
config.json, generation_config.json or model.safetensors.index.json is not a JSON object in UTF-8. The position is line
and column. NaN and Infinity, comments and trailing commas are not JSON.`)

	codeJSONDuplicate = diag.New("AMK1008", "a JSON object has the same key twice", `
Which of the two values counts depends on the reader, so amkc refuses to choose. Remove one of them.`)

	codeJSONDepth = diag.New("AMK1009", "JSON is nested too deeply, or has too many values", `
No file of a model nests objects and arrays more than 64 deep, or has more than a million keys, values and brackets;
this one does, and is refused before it costs more. The header of a safetensors file has about fifteen for each
tensor.`)
)

// What is wrong with a safetensors file.
var (
	codeTruncated = diag.New("AMK1010", "a safetensors file is truncated", `
The file ends before its header does: a safetensors file begins with the length of its header in 8 bytes, and then the
header. Most often the download did not finish. Download it again and compare its size or digest with the
published one.`)

	codeHeaderSize = diag.New("AMK1011", "a safetensors header is absurdly large", `
The first 8 bytes say how long the header is. The format allows 100,000,000 bytes; real headers have a few hundred
thousand. The file is not a safetensors file, or is damaged.`)

	codeHeader = diag.New("AMK1012", "a safetensors header is malformed", `
The header must be one JSON object. It maps each tensor name to {"dtype": "BF16", "shape": [2048, 512], "data_offsets":
[0, 2097152]}, with these three fields and no others, and may map __metadata__ to an object of strings. Numbers are
non-negative integers without exponent or fraction.`)

	codeDuplicateTensor = diag.New("AMK1013", "the same tensor is stored twice", `
A name appears twice in one header, which is refused: no reader could tell which is meant. A name that is in two shards
is a warning. The index names the shard that counts, and amkc reads that one; a note says whether the copy has the same
bits. If it has not, readers that load whole shards one after the other, as transformers does, take the last one.`)

	codeDType = diag.New("AMK1014", "unknown tensor dtype", `
The dtype of a tensor is not one that the safetensors format defines. The message lists those that it does.`)

	codeShape = diag.New("AMK1015", "a tensor shape is absurd", `
A tensor has more than 8 dimensions, or so many elements that their size in bytes overflows 63 bits.`)

	codeTensorSize = diag.New("AMK1016", "the size of a tensor does not fit its shape", `
data_offsets span a number of bytes other than the product of the shape times the size of the dtype.`)

	codeRange = diag.New("AMK1017", "a tensor lies outside its file", `
data_offsets are [begin, end), counted from the end of the header, with begin <= end <= the bytes that follow. These are
not. If the end is past the file, the file is most often an unfinished download.`)

	codeOverlap = diag.New("AMK1018", "tensors overlap", `
Two tensors claim the same bytes. The format forbids it: shared weights are stored once, under one name.`)

	codeHole = diag.New("AMK1019", "a safetensors file has bytes that no tensor covers", `
The format demands that tensors cover the data without a hole, from the end of the header to the end of the file. Bytes
that belong to no tensor mean a damaged file or one with something else hidden or appended.`)
)

// What is wrong between an index and its shards.
var (
	codeIndex = diag.New("AMK1020", "a safetensors index is malformed", `
model.safetensors.index.json must be an object whose weight_map maps each tensor name to the name of the shard file that
holds it. Shards are next to the index: names with directories are refused.

    {"metadata": {"total_size": 408448}, "weight_map": {"lm_head.weight": "model-00005-of-00005.safetensors"}}`)

	codeShardMissing = diag.New("AMK1021", "the index names a shard that is not there", `
A file named in weight_map is not in the model directory. The download did not finish, or the file was renamed.`)

	codeIndexMissing = diag.New("AMK1022", "the index names a tensor that its shard does not hold", `
weight_map says that a tensor is in a shard, but the header of that shard does not have it. Index and shards come from
different versions of the model, or one of them is damaged.`)

	codeIndexExtra = diag.New("AMK1023", "a shard holds a tensor that the index does not list there", `
A tensor is in a shard, but weight_map does not list it, or lists it in another shard. Weights are never dropped in
silence, so index and shards must agree; only copies of tensors that are where the index lists them too may be anywhere
(AMK1013). Download both from the same version of the model.`)
)

// What is wrong with the use of a tensor.
var (
	codeDecode = diag.New("AMK1024", "a tensor cannot be read as floating point", `
Weights are read from F32, F16 and BF16. Tensors of other dtypes may be present, but not where a weight is needed:
integer and 8-bit weights come from quantised checkpoints, which need their scales. Use the unquantised checkpoint.`)

	codeRows = diag.New("AMK1025", "a read is outside the tensor", `
Rows or bytes were asked for that the tensor does not have. This is a mistake in amkc: please report it.`)

	codeSpec = diag.New("AMK1026", "a tensor is declared wrongly", `
A tensor to be written or to be filled with random values has an empty or repeated name, a dtype that does not serve,
or a shape that is negative, absurd, or (when written) not a multiple of 256 bytes. This is a mistake in amkc: please
report it.`)
)

// What goes wrong when weights are written.
var (
	codeWrite = diag.New("AMK1030", "weights cannot be written", `
Writing, syncing or renaming the weight file failed: the disk is full, a quota is reached, or the directory cannot be
written. The unfinished file has been removed, and a file that stood at the target is as it was. Weights need about as
many bytes as the model has in its dtype.`)

	codeWriteOrder = diag.New("AMK1031", "weights were written out of order", `
A tensor received too many bytes or too few, or not in its turn. This is a mistake in amkc: please report it.`)
)
