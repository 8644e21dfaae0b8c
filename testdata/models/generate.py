#!/usr/bin/env python3
"""Makes most small checkpoints of testdata/models/zoo, with what transformers computes for them.

    python3 testdata/models/generate.py            writes every model
    python3 testdata/models/generate.py NAME ...   writes those; any other word lists the names

Needs torch and transformers; no test runs it. Each model is a folder zoo/NAME:

    config.json, generation_config.json, model.safetensors    as transformers saves them, in bfloat16
                            or the dtype of a model's fields
    ref_input_ids.npy       int32 [n], the ids of one text; n is 48 but for the models of LONG
    ref_logits_f32.npy      float32 [n, vocab], the logits after each of them, computed in float32
    ref_greedy_from8.npy    int32 [n-8], the continuation of the first 8, the likeliest id each time
    ref_experts.npy         int32 [layers, n, k], where layers have experts: those that each router chooses, in order

The weights are random, of scales at which each part of a model moves the logits. That is checked: where a switch or a
tensor named in `matters` changes, some logit must change by 1000 times what amkc may be off; and the likeliest id must
be so by a clear margin. A seed for which one of these fails is passed over for the next one.
"""

import json
import os
import sys

import numpy as np
import torch
import transformers
from safetensors.torch import load_file

import composites
import experts
import layernorm
import recurrent
import rmsnorm

ZOO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "zoo")
POSITIONS, PROMPT = 48, 8
MATTERS = 0.1  # amkc is held to 1e-4
STEADY = 3e-5  # of models with recurrent states, from the logits of matrices and vectors in float64
MARGIN = 0.01  # between the two largest logits of a step
DISTINCT = 12  # ids that the continuation has at least: one that repeats a single id tells nothing

MODELS = rmsnorm.MODELS | layernorm.MODELS | composites.MODELS | experts.MODELS | recurrent.MODELS
LONG = {"mistral-window": 208}  # positions: its window leaves whole chunks of the cache behind
EVERY = ["input_layernorm.weight", "post_attention_layernorm.weight", "model.norm.weight", "self_attn.q_proj.weight",
         "mlp.gate_proj.weight", {"rms_norm_eps": 3e-2}, {"rope_theta": 5e4}]
# What names of the parts hold that amkc leaves out.
OTHERS = ["vision_tower", "multi_modal_projector", "image_newline", "visual.", "vision_model", "connector",
          "audio_tower", "embed_vision"]
GATE_UP = {"mlp.gate_proj.weight": "mlp.gate_up_proj.weight"}
UNGATED = {"mlp.gate_proj.weight": "mlp.up_proj.weight"}
BARE = {"input_layernorm.weight": "post_feedforward_layernorm.weight"}
# Of EVERY, tensors that a class has not, with others in their place.
INSTEAD = {"Phi3Config": {"self_attn.q_proj.weight": "self_attn.qkv_proj.weight", **GATE_UP}, "GlmConfig": GATE_UP,
           "Glm4Config": GATE_UP, "ArceeConfig": UNGATED,
           "ApertusConfig": {**UNGATED, "input_layernorm.weight": "attention_layernorm.weight",
                             "post_attention_layernorm.weight": "feedforward_layernorm.weight"},
           "Exaone4Config": BARE, "Olmo2Config": BARE, "Olmo3Config": BARE, **experts.INSTEAD}


def config_of(kind, fields):
    fields = {**({} if kind == "GPT2Config" else {"max_position_embeddings": 512}), "dtype": "bfloat16", **fields}
    if "per_layer_config" in fields:  # or the class of the config refuses heads that differ
        fields["allow_global_per_layer_attribute_access"] = True
    if kind in composites.COMPOSITES:
        return composites.config_of(transformers, kind, fields)
    if kind in ("Gemma3TextConfig", "Gemma4TextConfig", "Olmo3Config"):  # whose rotary embeddings are two
        architecture = kind.replace("TextConfig", "Config").replace("Config", "ForCausalLM")
        return getattr(transformers, kind)(bos_token_id=0, eos_token_id=1, architectures=[architecture], **fields)
    if kind in layernorm.WITHOUT_ROTATION:
        return getattr(transformers, kind)(bos_token_id=0, eos_token_id=1, architectures=[layernorm.class_of(kind)],
                                           **fields)
    if kind == "GPTNeoXConfig":  # which has names of its own beside the object
        theta, part = fields.pop("rotary_emb_base", 1e4), fields.pop("rotary_pct", 0.25)
        fields["rope_parameters"] = {"rope_theta": theta, "partial_rotary_factor": part,
                                     **fields.get("rope_parameters", {})}
    rope = {"rope_type": "default", "rope_theta": fields.pop("rope_theta", 1e4), **fields.pop("rope_parameters", {})}
    architecture = kind.replace("TextConfig", "Config").replace("Config", "ForCausalLM")
    return getattr(transformers, kind)(bos_token_id=0, eos_token_id=1, rope_parameters=rope,
                                       architectures=[architecture], **fields)


def auto_class(config):
    plain, images = transformers.AutoModelForCausalLM, transformers.AutoModelForImageTextToText
    kind = config if isinstance(config, type) else type(config)
    part = kind.__name__ in composites.COMPOSITES and kind in images._model_mapping  # or the class of text alone is chosen
    return images if part or kind not in plain._model_mapping else plain


def made(config, folder=None, **options):
    """The model of a config, with the weights of a folder if one is given. Of a Llama whose layers differ in sizes, the
    class makes layers alone, each by its own config."""
    cls = auto_class(config)
    if not config.is_heterogeneous or "Gemma4" in type(config).__name__:  # which reads sizes of layers itself
        return cls.from_pretrained(folder, config=config, **options) if folder else cls.from_config(config, **options)
    options.pop("dtype", None)
    model = cls.from_config(config, **options)
    for i, of_layer in enumerate(config.per_layer_config):
        of_layer._attn_implementation = "eager"
        model.model.layers[i] = type(model.model.layers[i])(of_layer, i)
    if folder:
        state = load_file(os.path.join(folder, "model.safetensors"))
        model.load_state_dict({name: t.float() for name, t in state.items()})
        model.float()
    return model


def neutral(model, name):
    """The weight with which a norm multiplies by 1: a Gemma's but for a Gemma 4's, a Nemotron's, a Qwen3.5's and a
    Qwen3-Next's by 1 + w, but for the norm after a delta rule."""
    kind = type(model).__name__
    offset = any(of in kind for of in ("Gemma", "Nemotron", "Qwen3_5", "Qwen3Next")) and "Gemma4" not in kind
    return 0.0 if offset and "linear_attn" not in name else 1.0


def set_weights(model, seed):
    """Normal matrices that keep activations of about the size 1, with scores that tell positions apart; biases that
    are not small; norms between 0.4 and 1.6."""
    random = torch.Generator().manual_seed(seed)
    choosing = [(name, p) for name, p in model.named_buffers() if name.endswith(("e_score_correction_bias", "expert_bias"))]
    for name, p in sorted([*model.named_parameters(), *choosing], key=lambda of: of[0]):
        if any(other in name for other in OTHERS):
            continue
        part = name.split(".")[-2]
        of_head = ".norms." in name
        if name.endswith("weight") and (of_head or part.endswith("norm") or part.startswith(("ln_", "post_norm"))):
            p.data = neutral(model, name) - 0.6 + 1.2 * torch.rand(p.shape, generator=random)
            if "Gemma3" in type(model).__name__ and name.endswith("model.norm.weight"):
                p.data = 3 * (1 + p.data) - 1
        elif part == "act_fn":
            p.data = torch.randn(p.shape, generator=random)
        elif name.endswith(("e_score_correction_bias", "expert_bias")):
            p.data = 0.2 * torch.randn(p.shape, generator=random)
        elif name.endswith("sinks"):
            p.data = 1.5 * torch.randn(p.shape, generator=random)
        elif name.endswith("A_log"):
            p.data = torch.log(0.2 + 2 * torch.rand(p.shape, generator=random))
        elif name.endswith("bias"):
            p.data = 0.5 * torch.randn(p.shape, generator=random)
        elif part in ("embed_tokens", "embed_in", "word_embeddings", "wte", "wpe", "embed_positions"):
            size = 0.3 if model.config.tie_word_embeddings else 1.0
            if hasattr(model.get_input_embeddings(), "embed_scale"):
                size /= 3  # the root of hidden_size comes on top
            if "Gemma3" in type(model).__name__ and model.config.tie_word_embeddings:
                size /= 2  # or the text repeats an id; the last norm makes up for it
            p.data = size * torch.randn(p.shape, generator=random)
        else:
            gain = 2.0 if part in ("q_proj", "k_proj", "query_key_value", "c_attn") else 1.5
            columns = p.shape[0] if "GPT2" in type(model).__name__ else p.shape[1]
            if p.dim() == 3 and "GptOss" not in type(model).__name__:  # of all experts
                columns = p.shape[2]
            p.data = gain * columns ** -0.5 * torch.randn(p.shape, generator=random)
    for name, fixed in model.named_buffers():  # of activations, which models leave as they are
        if "act_fn." in name:
            fixed.fill_({"beta": 0.75, "eps": -0.25}[name.split(".")[-1]])
        elif name.endswith("layer_scalar"):
            fixed.copy_(0.6 + 0.8 * torch.rand(fixed.shape, generator=random))


def rewrite_config(folder, fields):
    """Puts config.json into the form that published models have: RoPE and the dtype under their former names, no list of
    kinds of layers, and each of fields as it was given, of which transformers drops what has no effect."""
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    rope = config.pop("rope_parameters", {})
    if "rope_type" in rope:  # for all layers
        neox = config["model_type"] == "gpt_neox"
        config["rotary_emb_base" if neox else "rope_theta"] = rope.pop("rope_theta")
        if "partial_rotary_factor" in rope:  # beside the object
            config["rotary_pct" if neox else "partial_rotary_factor"] = rope.pop("partial_rotary_factor")
            rope.pop("original_max_position_embeddings", None)
        if rope["rope_type"] != "default":
            config["rope_scaling"] = {"type": rope.pop("rope_type"), **rope}
    config["torch_dtype"] = config.pop("dtype")
    config.pop("layer_types", None), config.pop("per_layer_config", None)
    config.update((field, value) for field, value in fields.items() if field != "rope_parameters")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2, sort_keys=True)
        file.write("\n")


def beside(folder, fields):
    """Puts config.json into the form of a published Qwen2-VL: the fields of the language model stand beside the
    others."""
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    text = config.pop("text_config")
    text.pop("layer_types"), text.pop("rope_parameters"), text.pop("dtype"), text.pop("model_type")
    config["torch_dtype"] = config.pop("dtype")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**text, **config, **{key: v for key, v in fields.items() if key != "dtype"}}, file, indent=2,
                  sort_keys=True)
        file.write("\n")


def merged(old, new):
    return {**old, **{key: merged(old[key], v) if isinstance(v, dict) else v for key, v in new.items()}}


def load(folder, **changes):
    config = transformers.AutoConfig.from_pretrained(folder)
    text = config.get_text_config()
    if "rope_theta" in changes:
        two = "full_attention" in text.rope_parameters
        changes = {"rope_parameters": {"full_attention": changes} if two else changes}
    if changes:
        fields = {**text.to_dict(), **changes}
        if hasattr(text, "rope_parameters"):
            fields["rope_parameters"] = merged(text.rope_parameters, changes.get("rope_parameters", {}))
        if "max_window_layers" in fields:
            fields.pop("layer_types", None)  # they follow from it
        changed = type(text)(**fields)
        if text is config:
            config = changed
        else:
            config.text_config = changed
    model = made(config, folder, dtype=torch.float32, attn_implementation="eager").eval()
    for name, scale in model.named_buffers():
        if name.endswith("embed_scale"):  # rounded to the dtype of the embedding, which is that of the files
            scale.data = scale.to(config.dtype).to(torch.float32)
    return model


def logits(model, ids):
    """float32 [len(ids), vocab], in one pass without a cache."""
    with torch.inference_mode():
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].numpy()


def chosen(model, ids):
    """int32 [layers, len(ids), k]: the experts that each router chooses; None where there is no router."""
    found, topk = [], torch.topk
    hooks = [m.register_forward_hook(lambda _m, _in, out: found.append(out[2].numpy().astype(np.int32)))
             for m in model.modules() if type(m).__name__.lower().endswith("topkrouter")]
    torch.topk = lambda *of, **options: topk(*of, **{**options, "sorted": True})  # routers leave the order open
    logits(model, ids)
    torch.topk = topk
    for hook in hooks:
        hook.remove()
    return np.stack(found) if found else None


def unmoved(folder, matters, ids, want):
    """Those of matters whose change moves no logit by MATTERS."""
    out = []
    for what in matters:
        if isinstance(what, dict):
            model = load(folder, **what)
        else:
            model = load(folder)
            tensors = [p for name, p in [*model.named_parameters(), *model.named_buffers()] if name.endswith(what)]
            for p in tensors[-1:]:  # of the last layer
                is_norm = "weight" in what and ("norm" in what or "ln_" in what)
                p.data = torch.full_like(p, neutral(model, what) if is_norm else 1.0 if "scale" in what else 0.0)
        moved = np.abs(logits(model, ids) - want).max()
        if not moved >= MATTERS:
            out.append(f"{what}: {moved:.2g}")
    return out


def greedy(model, prompt, count):
    """The continuation, and the least margin of the likeliest id in it."""
    ids, margin = list(prompt), np.inf
    for _ in range(count):
        last = logits(model, ids)[-1]
        second, first = np.sort(last)[-2:]
        margin = min(margin, first - second)
        ids.append(int(np.argmax(last)))
    return ids[len(prompt):], margin


def steady(model, ids, want):
    """Whether rounding moves the logits little. A delta rule normalises keys that may be next to nothing."""
    if not hasattr(model.config.get_text_config(), "linear_key_head_dim"):
        return True
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")  # others take no float64
    return np.abs(logits(model.double(), ids) - want).max() < STEADY


def generate(name):
    kind, fields, matters, form = MODELS[name]
    folder = os.path.join(ZOO, name)
    config = config_of(kind, fields)
    for seed in range(100):
        model = made(config, attn_implementation="eager")
        set_weights(model, seed)
        model.to(config.dtype).save_pretrained(folder)
        if form == "former":
            rewrite_config(folder, fields)
        if form == "mxfp4":
            experts.store_mxfp4(folder)
        if form == "stacked":
            experts.store_stacked(folder)
        if form == "beside":
            beside(folder, fields)
        model = load(folder)  # what is computed is of the files
        positions = LONG.get(name, POSITIONS)
        ids = np.random.default_rng(seed).integers(0, fields["vocab_size"], positions).tolist()
        want = logits(model, ids)
        text, margin = greedy(model, ids[:PROMPT], positions - PROMPT)
        instead = INSTEAD.get(kind, {})
        every = [instead.get(what, what) if isinstance(what, str) else what for what in EVERY]
        idle = unmoved(folder, [*(every if "rms_norm_eps" in fields else []), *matters], ids, want)
        if margin >= MARGIN and len(set(text)) >= DISTINCT and not idle and steady(model, ids, want):
            break
        print(f"{name}: seed {seed} is passed over: margin {margin:.2g}, {len(set(text))} ids, idle: {idle}")
    else:
        raise RuntimeError(f"{name}: no seed will do")
    np.save(os.path.join(folder, "ref_input_ids.npy"), np.array(ids, np.int32))
    np.save(os.path.join(folder, "ref_logits_f32.npy"), want.astype(np.float32))
    np.save(os.path.join(folder, "ref_greedy_from8.npy"), np.array(text, np.int32))
    if (routed := chosen(model, ids)) is not None:
        np.save(os.path.join(folder, "ref_experts.npy"), routed)
    size = sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder))
    print(f"{name}: seed {seed}, {size // 1024} KiB, logits up to {np.abs(want).max():.2g}, margin {margin:.2g}, "
          f"{len(set(text))} ids")


def main():
    names = sys.argv[1:] or list(MODELS)
    if unknown := [n for n in names if n not in MODELS]:
        sys.exit(f"{', '.join(unknown)}: not a model; the models are {', '.join(MODELS)}")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for name in names:
        generate(name)


if __name__ == "__main__":
    main()
