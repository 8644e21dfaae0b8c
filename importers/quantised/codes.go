package quantised

import "amkc/ir/diag"

// NotRead is the code of weights that are quantised in an unsupported form.
var NotRead = diag.New("AMK1108", "the weights are quantised in a form that is not read", `
Quantised weights are read as they are stored, and never quantised again. These forms are:

    compressed-tensors   pack-quantized with 4 or 8 bits; int-quantized; float-quantized in e4m3;
                         nvfp4-pack-quantized; mxfp4-pack-quantized
    gptq                 formats gptq and gptq_v2, 4 or 8 bits, columns in their order
    awq                  version gemm, 4 bits
    fp8                  e4m3 with weight_scale_inv
    modelopt             NVFP4

Groups have 32 or 64 columns, a multiple of 128, or all columns of a row, and those of NVFP4 16. GGUF files have blocks
of their own (AMK1131). Other forms (bitsandbytes, MLX) have other elements or other scales. Use the original model,
which is not quantised, or one that is quantised in a form of the list.`)

// What is wrong with the quantised weights of a checkpoint.
var (
	codeSetting = diag.New("AMK1120", "a setting of the quantisation is missing or malformed", `
quantization_config in config.json, or the older quantize_config.json, says how the weights are stored. A field that
this depends on is missing, has the wrong JSON type, or contradicts another one.`)

	codeUnknownSetting = diag.New("AMK1121", "a setting of the quantisation is not known", `
quantization_config has a field that is neither read nor known to be without effect on how the weights are stored. It
may change what the stored numbers mean, so it is not ignored in silence. If you know that it has no effect, remove it
from the file.`)

	codeParts = diag.New("AMK1122", "the parts of a quantised matrix do not fit together", `
A quantised matrix is stored as several tensors: elements, scales and perhaps zero points. One of them is missing, or
has another type or shape than the others and quantization_config say. The download is incomplete, or the config
belongs to another model.`)

	codeValues = diag.New("AMK1123", "a quantised matrix has an element, a scale or a zero point that cannot be", `
Elements in fp8 are numbers. Scales are finite and not zero. Zero points of a matrix that is said to be symmetric lie in
the middle of the range. Those of 4 bits are values of 4 bits, or the one above: sums of the kernel are exact with
these. Zero points of the first GPTQ format are stored less one, and where that underflows, readers
differ in what they take the neighbours for: save such a model as gptq_v2. Otherwise the files are damaged, or the
config belongs to another model.`)

	codeOrder = diag.New("AMK1124", "the columns of a quantised matrix are in another order", `
The matrix was quantised column by column in the order of their activations (desc_act, or actorder "group"), and g_idx
says which group a column belongs to. Groups are then not columns side by side, as they are streamed. Accepted is a
g_idx that counts up, k / group_size. Quantise with desc_act off, or with actorder "weight" or "static", which keep
the columns' groups.`)
)
