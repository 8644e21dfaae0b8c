"""The same models in transformers, on the GPU: the reference in fp32, and the rival in bf16 or fp16.

Imports torch and transformers when a model is opened, so that the rest of bench works without. Must not know amkc.
"""

import contextlib
import gc

import numpy as np

import random_weights

SAFETENSORS = {"fp64": "F64", "fp32": "F32", "fp16": "F16", "bf16": "BF16"}  # names of dtypes in files


@contextlib.contextmanager
def checkpoint(directory, dtype, device="cuda"):
    """A model with its own weights, rounded to or upcast to dtype."""
    _, transformers = engines()
    config = transformers.AutoConfig.from_pretrained(directory, local_files_only=True)
    if config.model_type == "gemma" and config.hidden_act == "gelu":
        config.hidden_act = "gelu_pytorch_tanh"  # what it stands for; transformers 5.0 to 5.17 took it literally
    reads = config.model_type in transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    model = transformers.AutoModelForCausalLM if reads else transformers.AutoModelForImageTextToText
    if getattr(config, "is_heterogeneous", False):
        made = of_differing_layers(transformers, directory, config, torch_dtype(dtype))
    else:
        made = model.from_pretrained(directory, config=config, dtype=torch_dtype(dtype), attn_implementation="eager",
                                     local_files_only=True)
    with opened(made.to(device)) as model:
        del made
        yield model


def of_differing_layers(transformers, directory, config, dtype):
    """A model of text whose layers have sizes of their own, of which transformers makes layers alone. As in models that
    it loads, frequencies stay in fp32."""
    from safetensors.torch import load_file

    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    for i, of_layer in enumerate(config.per_layer_config):
        of_layer._attn_implementation = "eager"
        model.model.layers[i] = type(model.model.layers[i])(of_layer, i)
    model.load_state_dict(load_file(f"{directory}/model.safetensors"))
    for p in model.parameters():
        p.data = p.data.to(dtype)
    return model


@contextlib.contextmanager
def invented(directory, seed, weights, dtype, device="cuda"):
    """A model with the random weights that `amkc --random-weights SEED --dtype WEIGHTS` packs, computing in dtype.

    Its parameters are never initialised: the model is made without memory, and each is then computed on the device."""
    torch, transformers = engines()
    config = transformers.AutoConfig.from_pretrained(directory, local_files_only=True)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch_dtype(dtype),
                                                              attn_implementation="eager")
    tied, centre = config.tie_word_embeddings, 0 if config.model_type.startswith("gemma") else 1  # norms by 1 + w
    values = {}
    for name, p in model.named_parameters(remove_duplicate=False):
        if not (tied and name == "lm_head.weight"):
            values[name] = random_weights.torch_tensor(
                seed, name, tuple(p.shape), SAFETENSORS[weights], device, centre=centre).to(torch_dtype(dtype))
    model.load_state_dict(values, strict=False, assign=True)
    if tied:
        model.lm_head.weight = model.model.embed_tokens.weight
    # The rotary frequencies are a buffer that no file holds; they are computed on the CPU, as loading a checkpoint
    # does.
    model.model.rotary_emb = type(model.model.rotary_emb)(config).to(device)
    left = [n for n, t in (*model.named_parameters(), *model.named_buffers()) if t.is_meta]
    if left:
        raise RuntimeError(f"transformers has tensors that were not filled: {', '.join(left)}")
    del values
    with opened(model) as model:  # the name no longer holds the memory
        yield model


@contextlib.contextmanager
def opened(model):
    """Puts a model into the state that results are taken in, and frees its memory in the end."""
    torch, _ = engines()
    open_model = Model(model.eval())
    del model
    try:
        yield open_model
    finally:
        open_model.model = None  # whoever still has the Model holds no memory
        gc.collect()
        torch.cuda.empty_cache()


class Model:
    def __init__(self, model):
        self.model = model

    def logits(self, ids):
        """The logits after each id in one pass, numpy float32 [positions, vocab]."""
        torch, _ = engines()
        with torch.inference_mode():
            at = next(self.model.parameters()).device
            row = self.model(input_ids=torch.tensor([[int(i) for i in ids]], device=at), use_cache=False).logits[0]
            return row.float().cpu().numpy()

    def greedy(self, prompt, n):
        """n ids after a prompt, each by a pass over all before it; the lowest id among equal logits."""
        ids = [int(i) for i in prompt]
        for _ in range(n):
            ids.append(int(np.argmax(self.logits(ids)[-1])))
        return ids[len(prompt):]


def engines():
    """torch and transformers, with TF32 off. The rest of torch's settings are its own."""
    import torch
    import transformers

    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    transformers.utils.logging.set_verbosity_error()
    return torch, transformers


def torch_dtype(dtype):
    return random_weights.torch_dtype(SAFETENSORS[dtype])
