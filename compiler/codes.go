package compiler

import "amkc/ir/diag"

// CodeTooSlow is the code of builds that are not started because nvcc would exceed its time limit.
const CodeTooSlow = "AMK5115"

// CodeNoTool is the code of what a build lacks because a tool is missing.
const CodeNoTool = "AMK5112"

var (
	codeOwnInput = diag.New("AMK5123", "the output is what is being read", `
The file or the directory that the result would be written to is one that this command reads: a file of the model, of
the build or a configuration, perhaps through a link. Nothing was written. Name another output.`)
	codeModelFile = diag.New("AMK1040", "a file of the model cannot be copied into the build", `
A build carries config.json, generation_config.json and tokenizer.json of the model along. One of them is there and
cannot be read: it is not a regular file (a pipe, a device, a directory), is larger than such a file may be, or may not
be read. A symbolic link is followed, wherever it leads: in the caches of hubs every file is one.`)
	codeProof = diag.New("AMK5103", "the program could not be proved safe", `
amkc emits only programs that validate proves free of deadlocks and races. The notes are validate's own findings, each
with its code. For a schedule of your own, amkc validate FILE says the same; for amkc's own passes this is a defect:
please report the program (amkc dump MODEL).`)
	codeLacking = diag.New("AMK5125", "the kernel lacks stages of the model", `
The model is imported, scheduled and run on the reference VM, and the device runtime has no form yet for some of its
stages, which the message names with their ops and what is lacking of them. amkc models says of which families that is
so. Of experts it lacks routers with jitter or more than 32 groups, and branches that begin without a norm. No build
can be made of such a model; dump, validate FILE and everything with --device ref take it.

Of short convolutions it lacks those that see more than 8 positions, and models that have them in all layers. Of
recurrent states it lacks passes of several tokens, models that have them in all layers, convolutions before them that
see more than 8 positions, states of which a thread would have more than 64 elements of a column, and those whose
query, key and value leave no shared memory for their sums: 128 by 128 is the largest square.`)
	codeEmitted = diag.New("AMK5106", "what would be emitted is not what was proved", `
Before anything is written, the schedule is read back out of the rendered headers, by the reader that amkc verify uses
and that shares nothing with the templates, and compared with the proved program. The notes say where they differ.
This is a defect of amkc: please report the program (amkc dump MODEL).`)
	codeMemory = diag.New("AMK2020", "the build does not fit the target's memory", `
Weights, cache and scratch are compared with the memory of the target, before anything is written. More than the GPU
has is an error: the build could not run. More than fifteen sixteenths is a warning, because the driver takes a part,
and so does error correction on boards without HBM. The cache grows with --max-seq, and the message says which one
would fit.

GPUs are sold with more memory than the record of the target says (amkc targets): an A100 with 80 GB, an H100 with 94.
Say so, in GiB, or 0 for a build that is not compared:

    amkc model/ -o build/ --target a100 --memory 80

A target of which no memory is known, sm_NN without --memory, is not compared.`)
	codeLeaveOut = diag.New("AMK5127", "no matrix can be left out of the weights", `
With --leave-out a host that loads the build makes the random matrices, from a pattern of their format. The K-quants of
GGUF files have none, and all matrices of this model are stored so: weights.safetensors would have them all. Leave the
flag out.`)
	codeSpace = diag.New("AMK5105", "there is not enough space on the disk", `
The packed weights need about as many bytes as the model has in its dtype, and the file system that the build is
written to has less to give. Nothing was packed, and an earlier build stays as it was. Name a directory on another
file system, or make room.`)
	codeCalibrate = diag.New("AMK5107", "the model cannot be calibrated here", `
--calibrate FILE runs the model as the checkpoint has it on the reference VM, over the text, and rounds the matrices
that --weights quantises for what they are multiplied with there. That takes 4 bytes of memory a weight, and 2·n² for
each such matrix of n columns, whatever the length of the text. The message says what it comes to. Where that is too
much, calibrate on a larger machine (amkc pack writes the weights alone, and a build depends on nothing else of it), or
quantise without --calibrate. A text with ids that the model does not have is refused too.`)
	codeTokenizer = diag.New("AMK1201", "the tokenizer is missing or not supported", `
Text goes in and out through tokenizer.json of the model directory. BPE is modelled, over bytes as in GPT-2 and over
characters as in SentencePiece, with the normalizers, pre-tokenizers and decoders of today's model families; anything
else is refused, never approximated. The message names the component, and what would be accepted. Compiling warns of
it, because a build without a tokenizer still decodes token ids: amkc run MODEL --ids 1,2,3

A model that comes with tokenizer.model alone has to be converted once, on a machine with transformers:

    AutoTokenizer.from_pretrained("model/").save_pretrained("model/")`)
	codeEOS = diag.New("AMK1203", "eos_token_id is malformed", `
eos_token_id of generation_config.json and of config.json says after which tokens a text ends: an id, a list of ids, or
null. A text also ends after the eos_token of the tokenizer, which in models that were trained on from another one is
often the only one that ends their turns. There are 256 ids at most. --ignore-eos decodes --max-tokens tokens whatever
they say. Compiling warns of an eos_token_id that cannot be read, of ids that are not in the model's vocabulary, and of
an eos_token that the tokenizer does not have: no text ends with them.`)
	codeVocabulary = diag.New("AMK1208", "the tokenizer has tokens that the model does not", `
tokenizer.json gives some text an id that is not below vocab_size of config.json. A prompt with that text is refused.
Often a token for padding was added to the tokenizer and not to the model, and no prompt has it; if many ids are too
large, the tokenizer is that of another model.`)
	codeChat = diag.New("AMK1207", "there is no chat template", `
--messages of amkc run and of a build's launcher turns the messages of a conversation into a prompt, by the chat
template of the model: the file chat_template.jinja, those of the folder additional_chat_templates, or chat_template in
tokenizer_config.json. This model comes without one. --prompt takes a prompt as it is, so a program that holds a
conversation with the build has to know the format from elsewhere. A base model, which continues a text, has no
template and needs none.`)
	codeTemplate = diag.New("AMK1214", "the chat template cannot be used", `
A chat template is a program in the language of Jinja. amkc renders it as transformers does, byte for byte, or refuses
it: a construct that is not supported is named, and so is what the template itself refuses, such as two messages of the
same role in a row. What a template may take is bounded. Compiling warns of a template that cannot be read, because a
build without one still takes prompts:

    amkc run model/ --prompt "..."

docs/chat-templates.md lists what is supported.`)
	codeMessages = diag.New("AMK1215", "the messages cannot be read", `
Messages are a file in JSON: a list of them, or an object with messages, and perhaps tools, documents,
add_generation_prompt and chat_template_kwargs. Each message is an object with a role, and with a content or whatever
else the chat template of the model knows.

    [{"role": "system", "content": "Answer in one word."}, {"role": "user", "content": "Which way is up?"}]`)
	codeGeneration = diag.New("AMK1216", "the model's way of sampling cannot be followed", `
--sample draws tokens as generation_config.json of the model says: temperature, top_k, top_p, min_p,
repetition_penalty and do_sample. The file has one of these with a value that is not accepted, or a field that would
change the choice of tokens and is not supported, or that is not known. Compiling warns of it, because without --sample
the file is not read for this, and what is wanted can be said in full:

    amkc run model/ --prompt "..." --temperature 0.7 --top-p 0.9

docs/sampling.md has the details.`)
	codeNVCC = diag.New("AMK5110", "nvcc rejected the generated sources", `
The generated CUDA did not compile. The notes quote nvcc and name the template or runtime header that each file comes
from. This is a defect of amkc or a toolkit that is too old (13.0 is what amkc is tested with); the emitted project is
kept.`)
	codeGoBuild = diag.New("AMK5111", "the launcher did not build", `
go build failed on the emitted launcher. The launcher needs a Go release as new as the one in its go.mod, and no
network. The emitted project is kept.`)
	codeNoTool = diag.New(CodeNoTool, "a tool is missing, so part of the build is left to be done", `
Emitting a project needs neither nvcc nor Go. Where one is missing the project is written in full and the message
names the one command that finishes it. nvcc is looked for on PATH, in CUDA_HOME, in a folder .cuda next to the
executable of amkc (make cuda fills one), and in /usr/local/cuda; it needs g++ as its host compiler. amkc doctor says
what else a machine lacks.`)
	codeCacheTools = diag.New("AMK5113", "a model cannot be built for the GPU here", `
amkc run, logits and quality build a model before the GPU can run it, into a cache: AMKC_CACHE, or amkc in the user's
cache directory (~/.cache on Linux). That takes nvcc with its host compiler g++, though not Go. One of them is
missing, and the cache has no build of this model.

    amkc run model/ --prompt "..." --device cuda

make cuda in the source tree of amkc fetches nvcc, which CUDA_HOME=.../.cuda/nvidia/cu13 names for an amkc that is
installed elsewhere; or compile the model on another machine, and name the build instead:

    amkc model/ -o build/ --target h200
    amkc run build/ --prompt "..."`)
	codeTooSlow = diag.New(CodeTooSlow, "nvcc would take longer than a build may", `
Where the time of a build is limited, nvcc is not started on sources that it certainly does not finish. Their layers are
written out, each with code of its own, as with tiling.loop.roll 0, and nvcc takes minutes for that. The message says
how many layers have code, and how many would be accepted. A loop over equal layers is code for one, and takes seconds.

In a search on one machine (amkc search --jobs N) a build may take a quarter of --timeout, and all of it where one is
made alone (amkc search eval --build-only). Nothing was launched, and no value of a knob is retired for it. A build that
is in the cache is found there, and never refused.`)

	codeNVCCBroken = diag.New("AMK5114", "nvcc does not work here", `
amkc doctor has nvcc compile a small kernel for each GPU of the machine, or for sm_90a where there is none, and it did
not. The notes quote nvcc. Most often the toolkit is older than the GPU (13.0 is what amkc is tested with), is not
complete, as nvcc without the headers of the CUDA runtime, or does not take a g++ as new as the one that is here.`)
)
