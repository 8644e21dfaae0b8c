package importers

import "amkc/ir/diag"

// What is wrong with the model.
var (
	codeModelType = diag.New("AMK1101", "the model type is not supported", `
model_type in config.json names an architecture that amkc does not compile. Nothing is guessed from a similar one: the
message says what the architecture computes that is not modelled. amkc models lists what is accepted, with the models
that it covers: "apertus", "arcee", "cohere", "cohere2", "cwm", "dots1", "ernie4_5", "ernie4_5_moe", "exaone4",
"falcon", "flex_olmo", "gemma", "gemma2", "gemma3_text", "gemma4_text", "glm", "glm4", "glm4_moe", "gpt2", "gpt_neox",
"gpt_oss", "granite", "granitemoe", "granitemoeshared", "helium", "hunyuan_v1_dense", "hyperclovax", "internlm3",
"iquestcoder", "lfm2", "lfm2_moe", "llama", "minimax_m2", "ministral", "ministral3", "mistral", "mixtral", "nemotron",
"olmo", "olmo2", "olmo3", "olmoe", "opt", "phi", "phi3", "phimoe", "qwen2", "qwen2_moe", "qwen3", "qwen3_5_moe_text",
"qwen3_5_text", "qwen3_moe", "qwen3_next", "seed_oss", "smollm3", "solar_open", "stablelm", "starcoder2". Of models
that see images, the part that reads text: "aya_vision", "cohere2_vision", "gemma3", "gemma4", "idefics3", "internvl",
"llava", "llava_next", "llava_onevision", "mistral3", "qwen2_5_vl", "qwen2_vl", "qwen3_5", "qwen3_5_moe", "qwen3_vl",
"smolvlm".`)

	codeArchitecture = diag.New("AMK1102", "the architecture is not supported", `
architectures in config.json names the class the checkpoint was saved from. amkc compiles decoders with a language-model
head, such as LlamaForCausalLM. A classifier, a reward model or a bare LlamaModel shares the layers and not the head,
so it generates no text. Where the config names no class, the tensors tell: score.weight is a classifier's.`)

	codeField = diag.New("AMK1103", "a config field is missing or malformed", `
A field that defines the model's shape is missing, has the wrong JSON type, or lies outside what can be compiled. The
message names the field and what would be accepted.`)

	codeNotModelled = diag.New("AMK1104", "a config field asks for something that is not modelled", `
The field is known and changes what the model computes, and this value of it is not implemented: another activation
than the family has, a partial rotary embedding, a sliding window, a penalty on repeated tokens. Compiling without it
would generate other tokens, so it is refused, and --assume-inert does not override it.`)

	codeUnknownField = diag.New("AMK1105", "an unknown config field", `
config.json has a field that is neither modelled nor known to be without effect on the logits. A field that amkc does
not know may change the maths, so it is never ignored in silence. Fields that begin with an underscore are notes of the
tool that wrote the config, and are accepted. If you know that the field has no effect, say so:

    amkc MODEL -o build/ --assume-inert FIELD`)

	codeInert = diag.New("AMK1106", "a config field has a value that is not known to be inert", `
The field is known to have no effect for some values, and what this value does is not known: auto_map, for example,
names code that comes with the model. If you know that it computes what the model class of transformers does, give
--assume-inert FIELD.`)

	codeRope = diag.New("AMK1107", "the rotary embedding is not supported", `
Rotary embeddings of types default, linear, dynamic, llama3, yarn, longrope and proportional are compiled, in both
spellings: rope_theta with rope_scaling, and rope_parameters. The object of a type holds what the type reads and nothing
else, and two spellings in one config must agree. Type dynamic is compiled for as many positions as
max_position_embeddings: of longer texts it changes the frequencies with every token. A part of each head is rotated, as
partial_rotary_factor says, in the families whose class of transformers does it, and of type proportional in all but
those that cut heads in two for it (Phi, StableLM).`)

	codeMissing = diag.New("AMK1109", "tensors that the model needs are missing", `
The config describes a model with tensors that the files do not hold: the download is incomplete, the config belongs to
another model, or tie_word_embeddings is wrong (lm_head.weight is then missing).`)

	codeShape = diag.New("AMK1110", "a tensor has another shape than the config says", `
The message gives both shapes. The config belongs to another model, or a field such as head_dim or num_key_value_heads
is wrong.`)

	codeExtra = diag.New("AMK1111", "the files hold tensors that no operation consumes", `
A tensor that the compiled model would ignore means that the model is not the one that amkc understood: a bias, an
extra norm, an adapter. It is refused, because ignoring it would be a silent miscompile. Accepted besides the weights
are a stored rotary inv_freq that equals the computed one, the lm_head of a tied model that is bit-identical to the
embedding, and a bias of zeros (AMK1130).`)

	codeZeros = diag.New("AMK1130", "biases of zeros are left out", `
The files hold a bias for a matrix or a norm that has none in the model, and every element of it is zero: tools that
quantise with GPTQ or AWQ write one for each matrix. Adding it changes nothing, so it is not read further. Each element
has been looked at; one that is not zero is refused (AMK1111).`)

	codeRouter = diag.New("AMK1132", "routers are rounded to the dtype of the model", `
Routers choose experts by scores, and nearly equal ones come in another order where their matrix is rounded. Of this
family transformers computes scores with a matrix in float32, whatever the dtype of the model, and the files have it in
F32. A build rounds it as it does every matrix, so that some tokens may have other experts than in transformers.
--dtype fp32 keeps it.`)

	codeBlocks = diag.New("AMK1131", "blocks of a GGUF file are stored as the values that they mean", `
A build streams blocks as they are. Where the kernel multiplies matrices of several types as one, such as queries, keys
and values, they are stored in a format that has the values of all. There is none for some pairs, such as Q8_0 with
Q4_1, or blocks with F16. Then each element is computed, as llama.cpp does, and stored in the dtype of the model
(--dtype): the model is the same up to that rounding, and takes as much memory as one that is not quantised. --weights
int4 or int8 quantises them, if that is what you want.`)

	codeTied = diag.New("AMK1112", "the stored lm_head of a tied model differs from the embedding", `
tie_word_embeddings is true, so that the head is the embedding; the files hold an lm_head.weight with other values.
One of the two statements is wrong. Correct tie_word_embeddings, or remove the tensor.`)

	codeInvFreq = diag.New("AMK1113", "a stored inv_freq differs from the computed one", `
The files hold the rotary frequencies, and they are neither those that the config describes nor those before they are
scaled, which older classes stored. rope_theta or the scaling is wrong, or the model was trained with other frequencies
than its config says.`)

	codeAssume = diag.New("AMK1114", "--assume-inert cannot be applied", `
--assume-inert is for fields whose effect amkc does not know. A modelled field
always has its effect, and a field that the config does not have needs no assumption.`)

	codeMaxSeq = diag.New("AMK1116", "the number of positions is out of range", `
--max-seq is the number of positions that can be decoded, and the size of the KV cache. It must be positive; more than
max_position_embeddings is a warning, because the model was not trained there.`)

	CodeWeights = diag.New("AMK1117", "a buffer's weights cannot be supplied", `
A program names tensors that the checkpoint does not have, or of another size: program and checkpoint do not belong
together. Compile the checkpoint again.`)

	codeLeftOut = diag.New("AMK1118", "a part of the model is left out", `
The checkpoint holds more than a decoder: a part that takes images, for example. amkc compiles the decoder, which takes
and makes text. The tensors of the other parts are not read, and what the decoder makes of text does not depend on
them. Nor are logits multiplied where the class of a model alone does so and that of the whole model does not: the
likeliest token is the same, and tokens that are drawn differ.`)

	codeLongRope = diag.New("AMK1119", "a build is for short or for long texts", `
Rope type longrope has two lists of factors: short_factor for texts of up to original_max_position_embeddings positions,
and long_factor for longer ones. transformers chooses by the length of the text, and where a text outgrows the short
ones it recomputes all keys. A kernel keeps the keys that it has cached, so the choice is made by --max-seq, for
texts of every length. Up to original_max_position_embeddings a build uses short_factor; a longer one uses long_factor,
also for short texts, for which transformers would use the other list.`)

	codeMixed = diag.New("AMK1125", "matrices that are streamed together are quantised differently", `
One stage of the kernel streams the queries, keys and values of a layer, or gate and up, as one matrix. Its matrices
have elements of one type, groups of as many columns and scales of one type, or none of them is quantised; zero points
may be there in some and not in others. The message names two tensors that differ. Another layer may have another
format.`)

	codeKinds = diag.New("AMK1129", "too many kinds of layers", `
Layers that compute the same, have the same sizes and whose matrices are stored alike are one kind. The kernel branches
on the kind of a layer, and has code of its own for what differs: with many kinds it would be large, and nothing of it
would stay in the instruction cache. Store the layers in fewer combinations of formats, as by an item with a name for
more of them. Where layers of a model have windows, rotations or sizes of their own (per_layer_config), each of these
counts with each combination.`)

	codeInputs = diag.New("AMK1126", "inputs of matrices are not quantised", `
The checkpoint was made for kernels that quantise what its matrices are multiplied with, too, to 8 or 4 bits. amkc takes
the weights as they are stored, and multiplies with inputs of the model's dtype, which is nearer to the model that was
quantised. Logits differ from those of such kernels by what they lose.`)
)
