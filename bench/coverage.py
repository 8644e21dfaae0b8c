"""E1, coverage: which models amkc makes a program of, how large it is, and whether it computes what transformers does.

Everything runs on the CPU: amkc on its reference VM, and transformers in fp32. A row that needs transformers says so
where there is none. Must not know how rows are kept or shown.
"""

import json
import re
import struct
from dataclasses import dataclass
from pathlib import Path

import published
import reference
import zoo

ZOO = Path("testdata/models/zoo")
TRAINED = Path(zoo.PYCODER)
FIXTURE_PROMPT = 8  # ids of a fixture that its recorded continuation follows
LONG = 64  # tokens that are compared with generate
TILE = 128  # rows of a task of the published programs: with it our lowering of their format has as many tasks
ERROR = 1e-4  # the largest error of a logit that passes
SEED = 1
REFUSED = ("bloom", "llama-gelu")  # models among the others that amkc refuses
# Positions of models that are something else beyond: longrope has other factors there, and Ministral 3 scales queries.
SHORT = {"phi3-short": 64, "ministral3-window": 64, "ministral3-yarn": 64, "mistral3-ministral": 64}


@dataclass(frozen=True)
class Task:
    """One row: its id is SECTION/NAME, and run takes a Shop and returns what goes into it."""

    section: str
    name: str
    run: object
    seconds = 0  # as in sections.Task: how long one takes depends on the processors

    @property
    def id(self):
        return f"{self.section}/{self.name}"


def tasks():
    """The published models' shapes, then the trained model and every family, then what is refused."""
    out = [Task("coverage", slug(c.name), lambda shop, c=c: shape(shop, c)) for c in published.COVERAGE]
    models = [TRAINED, *(ZOO / name for name in sorted(zoo.ZOO + zoo.COVERED))]
    out += [Task("families", m.name, lambda shop, m=m: family(shop, m)) for m in models if m.name not in REFUSED]
    return out + [Task("refusals", name, lambda shop, name=name: refusal(shop, name)) for name in REFUSED]


def slug(name):
    return name.lower().replace(" ", "-")


# What is counted.


def request(c):
    """The published format's request for a program of a shape."""
    return {"shape": {"vocab": c.vocab, "hidden": c.hidden, "n_layers": c.layers, "n_heads": c.heads,
                      "n_kv_heads": c.kv_heads, "head_dim": c.hidden // c.heads, "intermediate": c.intermediate,
                      "rms_eps": 1e-5, "rope_theta": 10000.0, "max_seq": 2048},
            "scheme": "hf-llama", "tied": c.tied, "target": "rtx5090", "pos": 0, "dtype": "F32", "batch": 1,
            "quant": None, "config": {"tiling": {"gemv": {"N_tile": TILE}}}}


def config(c):
    """The config.json of a shape."""
    return {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": c.vocab,
            "hidden_size": c.hidden, "intermediate_size": c.intermediate, "num_hidden_layers": c.layers,
            "num_attention_heads": c.heads, "num_key_value_heads": c.kv_heads, "head_dim": c.hidden // c.heads,
            "hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
            "tie_word_embeddings": c.tied, "attention_bias": False, "mlp_bias": False, "torch_dtype": "float32",
            "eos_token_id": None, "bos_token_id": None, "pad_token_id": None}


def parameters(c):
    """The number of parameters of a shape."""
    head = c.hidden // c.heads
    layer = c.hidden * (2 * c.heads + 2 * c.kv_heads) * head + 3 * c.hidden * c.intermediate + 2 * c.hidden
    return c.layers * layer + c.hidden + c.vocab * c.hidden * (1 if c.tied else 2)


def elements(directory):
    """The number of elements in the safetensors files of a directory."""
    n = 0
    for path in sorted(directory.glob("*.safetensors")):
        with open(path, "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        for name, t in header.items():
            if name != "__metadata__":
                size = 1
                for d in t["shape"]:
                    size *= d
                n += size
    return n


def counted(program):
    """The entities of a program of the published format."""
    return {k: len(program[k]) for k in ("tasks", "buffers", "counters")}


def scheduled(shop, model, name, *args):
    """The facts of a model that its program states, and the size of our own program for an H200, proved: all variants
    together."""
    text = shop.amkc("dump", model, "--target", "h200", *args)
    head = re.search("^model .*$", text, re.MULTILINE).group()
    facts = {k: int(re.search(rf" {k}=(\d+)", head).group(1)) for k in ("layers", "hidden", "heads", "kv_heads")}
    proof = json.loads(shop.amkc("validate", shop.write(f"{name}.amk", text), "--json"))
    return {**facts, "validate": "OK", **{f"h200_{k}": proof["stats"][k] for k in ("variants", "tasks", "counters")}}


# What is computed.


def shape(shop, c):
    """A published model's shape, with random weights: the weights of the three checkpoints are not at hand."""
    name = slug(c.name)
    path = shop.write(f"{name}.request.json", json.dumps(request(c)))
    program = shop.write(f"{name}.program.json", shop.amkc("dump", "--amk", path))
    shop.amkc("validate", program)
    model = shop.directory(name)
    shop.write(f"{name}/config.json", json.dumps(config(c)))
    row = {"parameters": parameters(c), **counted(json.loads(Path(program).read_text(encoding="utf-8"))),
           **scheduled(shop, model, name)}
    args = ("--random-weights", str(SEED), "--dtype", "fp32", "--max-seq", "128", "--device", "ref")
    prompt = [(7 * i + 1) % c.vocab for i in range(FIXTURE_PROMPT)]
    return judged(shop, row, model, prompt, args,
                  lambda: reference.invented(model, SEED, "fp32", "fp32", device="cpu"))


def family(shop, model):
    """A model whose weights are here, against what transformers has recorded of it and makes of it now."""
    facts = json.loads((model / "config.json").read_text(encoding="utf-8"))
    short = ("--max-seq", str(SHORT[model.name])) if model.name in SHORT else ()
    row = {"family": facts["model_type"], "parameters": elements(model),
           **scheduled(shop, str(model), model.name, *short)}
    try:
        row |= counted(json.loads(shop.amkc("dump", str(model), "--format", "amk-json", "--target", "h200", *short)))
    except shop.Refused as e:
        row["no_profile"] = str(e)
    prompt, recorded = continuation(model)
    args = ("--dtype", "fp32", "--device", "ref", *short)
    if recorded is not None:
        ours = greedy(shop, str(model), prompt, len(recorded), args)
        row["recorded"], row["recorded_equal"] = len(recorded), alike(ours, recorded)
    return judged(shop, row, str(model), prompt, args, lambda: reference.checkpoint(model, "fp32", device="cpu"),
                  SHORT.get(model.name))


def refusal(shop, name):
    """A model that is to be refused at import, and what is said of it."""
    try:
        shop.amkc("dump", str(ZOO / name), "--target", "h200")
    except shop.Refused as e:
        at_import = re.search(r"\[AMK11\d\d\]$", str(e))
        return {"refused": str(e).partition("; accepted: ")[0], "passed": bool(at_import),
                "findings": [] if at_import else [str(e)]}
    return {"passed": False, "findings": ["it is not refused"]}


def continuation(model):
    """A prompt of a fixture, and the greedy tokens after it that transformers has left beside the model."""
    path = model / "reference.json"
    if path.exists():
        kept = json.loads(path.read_text(encoding="utf-8"))["greedy"][0]
        return kept["prompt_ids"], kept["greedy_ids"]
    return npy(model / "ref_input_ids.npy")[:FIXTURE_PROMPT], npy(model / "ref_greedy_from8.npy")


def npy(path):
    import numpy as np
    return [int(i) for i in np.load(path).reshape(-1)]


def greedy(shop, model, prompt, n, args):
    """n greedy tokens of ours after a prompt."""
    out = shop.amkc("run", model, "--prompt-ids", ",".join(map(str, prompt)), "--max-tokens", str(n), "--ignore-eos",
                    "--json", *args)
    return json.loads(out)["ids"]


def alike(ours, theirs):
    """How many tokens are the same before the first that is not."""
    return next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))


def judged(shop, row, model, prompt, args, opened, most=None):
    """A row with the error of the logits after the prompt, and with as many of LONG greedy tokens as model.generate
    chooses too. Without transformers it is not run, with what is known without."""
    try:
        reference.engines()
    except ModuleNotFoundError as e:
        kept = row.get("recorded") is None or row["recorded_equal"] == row["recorded"]
        return row | {"passed": None if kept else False, "not_run": f"there is no {e.name} here to compare with",
                      "findings": [] if kept else [difference(row["recorded_equal"], row["recorded"])]}
    import numpy as np
    with opened() as m:
        theirs = m.logits(prompt)[-1]
        room = min(LONG, (most or positions(m.model.config)) - len(prompt))
        chosen = generated(m.model, prompt, room)
    path = shop.path(f"{Path(model).name}.logits.npy")
    shop.amkc("logits", model, "--ids", ",".join(map(str, prompt)), "-o", path, *args)
    error = float(np.abs(np.load(path).reshape(-1, len(theirs))[-1] - theirs).max())
    equal = alike(greedy(shop, model, prompt, room, args), chosen)
    findings = [difference(equal, room)] if equal < room else []
    if error > ERROR:
        findings.append(f"a logit is off by {error:.2e}, {ERROR:.0e} is allowed")
    return row | {"error": error, "compared": room, "equal": equal, "passed": not findings, "findings": findings}


def difference(equal, n):
    return f"{equal} of {n} greedy tokens are those of transformers"


def positions(config):
    text = getattr(config, "text_config", config)
    return getattr(text, "max_position_embeddings", None) or text.n_positions


def generated(model, prompt, n):
    """n tokens that model.generate chooses after a prompt, whatever it takes for the end of a text."""
    torch, _ = reference.engines()
    ids = torch.tensor([prompt])
    with torch.inference_mode():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, min_new_tokens=n,
                             max_new_tokens=n, num_beams=1, pad_token_id=0, eos_token_id=None)
    return out[0, len(prompt):].tolist()
