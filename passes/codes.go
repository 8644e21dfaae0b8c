package passes

import "amkc/ir/diag"

// What is wrong with how weights are to be stored.
var (
	codeOverflow = diag.New("AMK1115", "a weight does not fit the chosen dtype", `
A finite weight becomes infinite when it is rounded to the dtype of the compiled model: fp16 ends at 65504. Choose
--dtype bf16 or fp32. Weights that are quantised have to be finite: an infinity or a NaN would spoil its whole group.`)

	codeCalibration = diag.New("AMK1128", "a matrix cannot be calibrated", `
With --calibrate, amkc adds up products of the inputs of each matrix over a text, and needs numbers that are finite.
The model makes others of this text, or of every one. Without --calibrate nothing but the weights is looked at.`)

	codeStorage = diag.New("AMK1127", "matrices cannot be stored so", `
--weights says how matrices are stored: a format for all, and formats for some by the role of a matrix (q_proj, lm_head)
or by the key of its tensor, with * for any letters:

    --weights int8
    --weights 'int4:g128,down_proj=int8'
    --weights 'none,model.layers.*.mlp.*=int4'
    --weights 'int4,layers.0.*=none'

A key may be given from any of its parts on, as the last one is. Matrices of a layer that are multiplied as one,
because they read the same vector, have one format: q_proj, k_proj and v_proj, or gate_proj and up_proj. An item that
matches nothing is a mistake, and what is not quantised stays in the dtype of the model.`)
)

// What is wrong with the parts of the schedule configuration that passes check, or with what a pass is given.
var (
	codePolicy = diag.New("AMK2004", "an unsupported assignment", `
sm_assignment is contiguous, load_balance, round_robin, or a map from stage to rotation: {"qkv": 0, "gate_up": 7}.
Stages go by their roles: embed, qkv, attn, part where a long context is split, o, gate_up, down and lm_head of a
decoder. A rotation is a number of SMs, from 0. Single tasks cannot be moved: an SM computes its span from the
rotation, and the weights of a span lie in one piece, which streams without a list of tasks to look at. A program may
list the tasks of a stage and their SMs (docs/ir.md): validate and the reference VM take it, and generated code does
not (AMK4002).`)

	codeSplitResidual = diag.New("AMK2005", "an assignment that splits o from down", `
The SM that owns rows of o owns the same rows of down and of embed: the residual of those rows stays in its shared
memory for the whole step. All three must have the same rotation.`)

	codeShares = diag.New("AMK2012", "a model that the GPUs cannot share", `
With --gpus N, each of N GPUs has an equal share of a model: of its heads, of the width of its MLP and of its
vocabulary. N is 2, 4 or 8 and divides each of them. Of kv heads, where there are fewer than GPUs, several have the
same one. Shared are models whose layers are attention and an MLP, without biases after them, norms after them or norms
of all heads at once, and without experts; with weights as the checkpoint has them, or quantised by --weights in groups
that no share of the columns cuts. A pass takes one token.`)

	codeTarget = diag.New("AMK2010", "no target", `
Tasks are assigned to the SMs of a target. Give --target NAME, or --target sm_NN with --num-sms.`)

	codeOrder = diag.New("AMK2011", "a pass was given a program that it does not expect", `
Each pass takes what the passes before it produce: tile takes whole stages, assign tiled ones, loop assigned ones. The
program was read from a file that has not been through the passes before this one, or has been through it already.`)
)
