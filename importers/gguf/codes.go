package gguf

import "amkc/ir/diag"

// What is wrong with a GGUF file.
var (
	codeTruncated = diag.New("AMK1050", "a GGUF file is truncated", `
The file ends before its header does, or before the last of its tensors. Most often the download did not finish.
Download it again and compare its size or digest with the published one.`)

	codeVersion = diag.New("AMK1051", "not a GGUF file of a version that is read", `
A GGUF file begins with the four letters GGUF and a version. Versions 2 and 3 in little-endian order are read, which is
what tools have written since 2023. Convert an older file, or a big-endian one, with a present version of llama.cpp.`)

	codeHeader = diag.New("AMK1052", "the header of a GGUF file is malformed", `
After the version come the number of tensors, the number of fields, the fields, and the tensors. A count or a length is
larger than the rest of the file, a type does not exist, a name appears twice, a string is not UTF-8, or
general.alignment is not a multiple of 8. The file is damaged or cut short, or was written by a tool that does not
follow the specification of GGUF.`)

	codeTensor = diag.New("AMK1053", "a tensor of a GGUF file is not as its header says", `
Tensors follow each other without a gap but for padding to general.alignment, in the order of the header; the columns of
a quantised tensor are a multiple of the elements of its blocks; there are at most four dimensions. One of these does
not hold. The file is damaged.`)

	codeType = diag.New("AMK1054", "the blocks of a GGUF tensor are not read", `
These types are read: F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS and
MXFP4. The other IQ types are codebooks, TQ types are ternary, and the rest belong to computations, not to files. Use a
file of the same model in one of the types of the list; Q4_K_M, Q5_K_M, Q6_K and Q8_0 are published for most.`)

	codeSplit = diag.New("AMK1055", "the parts of a split GGUF file do not fit together", `
A file NAME-00001-of-00003.gguf is the first of three; the others are next to it and have the numbers 00002 and 00003.
Give the first one. Each part says how many there are and which it is (split.count, split.no), and the first says how
many tensors they have together (split.tensors.count). A part is missing, or is one of another file.`)
)

// What a GGUF file says of its model that cannot be compiled.
var (
	codeArchitecture = diag.New("AMK1056", "the architecture of a GGUF file is not compiled", `
general.architecture names the family of the model in llama.cpp's words. The message lists those that are read. Files of
projectors (mmproj), adapters and vocabularies alone are not models that can be compiled on their own.`)

	codeField = diag.New("AMK1057", "a field of a GGUF file is missing, malformed or not modelled", `
The fields of a GGUF file that begin with its architecture describe the model, like config.json of a Hugging Face
checkpoint. A field is missing, has the wrong type, has a value that amkc does not model, or is not known. A field that
is not known may change what the model computes, so it is not ignored in silence.`)

	codeTokenizer = diag.New("AMK1058", "the tokenizer of a GGUF file is not read", `
tokenizer.ggml.model says what the tokenizer is: gpt2 is BPE over bytes, with the way in which text is split before by
name in tokenizer.ggml.pre; llama is SentencePiece with scores. WordPiece (bert), Unigram (t5) and RWKV are not read,
nor names of tokenizer.ggml.pre that are not listed in the message. The build then decodes token ids, and no text.
If the model is published for transformers too, its tokenizer.json has the same tokenizer: compile that checkpoint.`)
)
