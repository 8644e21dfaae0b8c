#!/usr/bin/env python3
"""Asks of every field of every family's config what transformers makes of another value, and what amkc does.

    python3 testdata/models/fields.py            asks of all families, and writes testdata/models/fields/NAME.json
    python3 testdata/models/fields.py NAME ...   of those

Needs torch, transformers and the amkc of `make build`; no test does. A family is a row of bases.py. Its fields are all
that can reach its logits: those that its config class declares, those that its constructor takes under former names, and
those that are read from a config while a model is built and run. Each is given other values, is made null and is left
out; fields of a rotary embedding once for each of its types, in the present and in the former form.

A flip is judged by transformers: the same weights, as far as shapes allow, run through the model of either config.
`inert` is one that changes no bit of any logit (of names and switches, nothing beyond ROUNDS), `moves` one that changes
some; one that transformers does not load is not counted. Then amkc computes the logits of the flipped checkpoint, and
must give transformers' within ERROR or refuse it. What it ignores although it moves logits is reported, and nothing is
written.

    {"transformers": VERSION, "bases": [{"config": {...}, "fields": {NAME: [[EFFECT, CODES, VALUE], ...]}}, ...]}

CODES are those of amkc's errors, empty where it follows. A flip without VALUE leaves the field out. Fields of objects
are joined by dots.
"""

import copy
import dataclasses
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile

import generate
import numpy as np
import torch
import transformers
from bases import BRIEF, FAMILIES, LAYERS, SECOND, former, json_config
from flips import ABSENT, rope_keys, ropes, values
from transformers.modeling_rope_utils import RopeParameters

HERE = os.path.dirname(os.path.abspath(__file__))
AMKC = os.path.join(HERE, "..", "..", "amkc")
FOLDER = os.path.join(HERE, "fields")
POSITIONS = 28
ERROR = 1e-4  # of amkc's logits
NEARER = 10  # times nearer to the flip's logits than those are to the base's; else a flip could as well be ignored
ROUNDS = 1e-5  # what two names of one function, or two orders of one sum, may differ by

# Fields that no logit can depend on, or that are none of the model's.
ASIDE = set(transformers.GenerationConfig._get_default_generation_params()) | {
    "quantization_config",  # of the files
    "transformers_version", "name_or_path", "model_type", "architectures",  # which class it is, not what it computes
    "attn_implementation", "experts_implementation",  # how, not what
    "decoder", "generator", "text_encoder",
    "text_config", "vision_config",  # whose fields are asked of, and images are left out
}
# What the object of a rotary embedding keeps whatever its type.
OWN = ["partial_rotary_factor", "llama_4_scaling_beta", "original_max_position_embeddings", "mrope_section",
       "mrope_interleaved"]
# What a rotary embedding depends on, and which stand beside it.
BESIDE = ["max_position_embeddings", "original_max_position_embeddings", "partial_rotary_factor", "rope_theta",
          "rope_local_base_freq", "rotary_emb_base", "rotary_pct"]


def get(config, path):
    for key in path.split("."):
        if not isinstance(config, dict) or key not in config:
            return ABSENT
        config = config[key]
    return config


def flipped(config, path, value):
    config = copy.deepcopy(config)
    *outer, last = path.split(".")
    inner = config
    for key in outer:
        inner = inner[key]
    inner.pop(last, None) if value is ABSENT else inner.update({last: value})
    return config


def text_path(config):
    """What the paths of the fields of the language model begin with."""
    return "text_config." if "text_config" in config else ""


def rope_objects(config):
    """Paths of the objects that describe a rotary embedding."""
    part = text_path(config)
    for path in (part + "rope_parameters", part + "rope_scaling"):
        rope = get(config, path)
        if isinstance(rope, dict):
            nested = [key for key, v in rope.items() if isinstance(v, dict)]
            return [f"{path}.{key}" for key in nested] or [path]
    return []


class Refused(Exception):
    """transformers does not take a config."""


class Reference:
    """What transformers computes for configs of a family, with weights that are alike where shapes are."""

    def __init__(self, folder):
        self.folder, self.weights, self.read, self.saved = folder, {}, set(), None
        self.ids = np.random.default_rng(5).integers(3, 24, POSITIONS).tolist()

    def logits(self, config):
        """float32 [POSITIONS, vocab] of a config.json, of which the folder then has the checkpoint, and a function that
        computes them with the attention that transformers takes by default: other fields decide about its mask."""
        with open(os.path.join(self.folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        try:
            loaded = transformers.AutoConfig.from_pretrained(self.folder)
            model = generate.auto_class(loaded).from_config(loaded, attn_implementation="eager").float()
            dtype = self.fill(model.eval(), loaded)
            self.save(model, dtype)
            out = self.run(model)
        except Exception as err:
            raise Refused(f"{type(err).__name__}: {err}") from err
        with open(os.path.join(self.folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        if out.ndim != 2 or not np.isfinite(out).all():
            raise Refused("no finite logits")
        return out, lambda: self.run(model, "sdpa") if model._supports_sdpa else out

    def run(self, model, attention="eager"):
        model.set_attn_implementation(attention)
        try:
            with torch.inference_mode():
                out = model(input_ids=torch.tensor([self.ids]))
        except Exception as err:
            raise Refused(f"{type(err).__name__}: {err}") from err
        return (out.logits if hasattr(out, "logits") else out[0])[0].numpy()

    def fill(self, model, config):
        """Sets the weights, rounded to the type that the config names, which it returns."""
        dtype = config.get_text_config().dtype or config.dtype or torch.float32
        generate.set_weights(model, 1)
        for name, p in model.named_parameters():
            same = self.weights.setdefault(name, p.data)
            p.data = (same if same.shape == p.shape else p.data).to(dtype).float()
        for name, scale in model.named_buffers():
            if name.endswith(("embed_scale", "layer_scalar")):  # rounded to the dtype of the files
                scale.data = scale.to(dtype).float()
        return dtype

    def save(self, model, dtype):
        """Writes the weights, unless the files have them already."""
        weights = {name: p.to(dtype) for name, p in model.state_dict().items()}
        kinds = [(name, p.shape, p.dtype) for name, p in weights.items()], len(dict(model.named_parameters()))
        if kinds != self.saved:
            model.save_pretrained(self.folder, state_dict=weights)
            self.saved = kinds

    def pairs(self, config):
        """The most pairs of elements of a head that are rotated."""
        loaded = transformers.CONFIG_MAPPING[config["model_type"]](**copy.deepcopy(config))
        model = generate.auto_class(loaded).from_config(loaded)
        return max((len(b) for name, b in model.named_buffers() if name.endswith("inv_freq")), default=0)

    def watch(self, config):
        """Notes what is read from a config, be it there or not, while a model of it is built and run."""
        base = transformers.PreTrainedConfig
        plain = base.__getattribute__
        base.__getattribute__ = lambda config, name: (self.read.add((type(config), name)), plain(config, name))[1]
        try:
            self.logits(config)
        finally:
            base.__getattribute__ = plain


def amkc(folder, ids, target=("--target", "sm_90", "--num-sms", "4")):
    """The logits of the checkpoint of a folder, or the codes of the errors. Few SMs take the least time, and may have no
    room."""
    out = os.path.join(folder, "amkc.npy")
    done = subprocess.run([AMKC, "logits", folder, "--device", "ref", *target, "--max-seq", str(len(ids)), "--ids",
                           ",".join(map(str, ids)), "-o", out], capture_output=True, text=True,
                          env={**os.environ, "GOMAXPROCS": "1", "GOGC": "off"})
    if done.returncode == 0:
        return np.load(out), []
    codes = sorted(set(re.findall(r": error: [^\n]*\[(AMK\d{4})\]", done.stderr)))
    if done.returncode != 1 or not codes:
        raise RuntimeError(f"amkc exits with {done.returncode}: {done.stderr}")
    if target and not codes[0].startswith("AMK1"):
        return amkc(folder, ids, ())
    return None, codes


def fields_of(reference, config):
    """The fields to ask of: name to annotation, None where there is none."""
    kind = transformers.CONFIG_MAPPING[config["model_type"]]
    declared = {f.name: f.type for f in dataclasses.fields(kind)}
    source = "\n".join(inspect.getsource(vars(c)[name]) for c in kind.__mro__
                       for name in ("__post_init__", "convert_rope_params_to_dict") if name in vars(c))
    taken = re.findall(r"""kwargs(?:\.pop|\.get|\.setdefault)?[(\[]\s*"(\w+)\"""", source)
    read = [name for owner, name in reference.read if owner is kind and name not in dir(kind)]
    names = {*declared, *taken, *read, *config} - ASIDE
    out = {name: declared.get(name) for name in sorted(names) if not name.startswith("_")}
    if "text_config" in config:
        out |= {f"text_config.{name}": hint for name, hint in fields_of(reference, config["text_config"]).items()}
    return out


def difference(a, b):
    """The largest one of two arrays of logits, over the largest logit where that is more than 1."""
    if a.shape != b.shape:
        return np.inf
    return float(np.abs(a - b).max()) / max(1.0, float(np.abs(b).max()))


class Family:
    """The flips of a family, and what is wrong with them."""

    def __init__(self, name, folder):
        self.name, self.reference = name, Reference(folder)
        self.bases, self.wrong, self.moved = [], [], set()

    def ask(self, config, names, about):
        """Flips fields of a base: names to annotations."""
        try:
            want, by_default = self.reference.logits(config)
        except Refused as err:
            return print(f"  {about}: transformers: {' '.join(str(err).split())[:100]}")
        have, codes = amkc(self.reference.folder, self.reference.ids)
        if have is None:
            return print(f"  {about}: amkc refuses the base: {codes}")
        self.check(f"{about}: as it is", have, want)
        before = want, by_default()
        layers, pairs = LAYERS, self.reference.pairs(config)
        fields = {}
        for name, hint in names.items():
            flips = []
            for value in values(name, get(config, name), hint, layers, pairs):
                if value is ABSENT and get(config, name) is ABSENT:
                    continue
                try:
                    flip = self.flip(config, name, value, before)
                except Refused:
                    continue
                flips.append(flip)
            if flips:
                fields[name] = flips
        self.bases.append({"config": config, "fields": fields})

    def flip(self, config, name, value, before):
        where = f"{name} = {'absent' if value is ABSENT else json.dumps(value)}"
        want, by_default = self.reference.logits(flipped(config, name, value))
        moved = difference(want, before[0]) or difference(by_default(), before[1])
        have, codes = amkc(self.reference.folder, self.reference.ids)
        if moved <= ROUNDS and isinstance(value, (str, bool)):
            moved = 0
        if have is not None:
            off = self.check(where, have, want)
            if 0 < moved < NEARER * off:
                self.wrong.append(f"{where}: moves logits by {moved:.2g} alone, and amkc is off by {off:.2g}")
        if moved:
            self.moved.add(name)
        flip = ["moves" if moved else "inert", " ".join(codes)]
        return flip if value is ABSENT else [*flip, value]

    def check(self, where, have, want):
        if not (off := difference(have, want)) <= ERROR:
            self.wrong.append(f"{where}: amkc is off by {off:.2g}")
        return off

    def ask_all(self):
        config = json_config(self.name)
        self.reference.watch(config)
        fields = fields_of(self.reference, config)
        keys = sorted({*rope_keys(), *(key for path in rope_objects(config) for key in get(config, path))})
        inside = lambda path: {f"{path}.{key}": RopeParameters.__annotations__.get(key)
                               for key in keys}
        in_all = lambda c: {name: hint for path in rope_objects(c) for name, hint in inside(path).items()}
        self.ask(config, {**fields, **in_all(config)}, "present")
        if self.name in SECOND:
            self.ask({**config, **SECOND[self.name]}, fields, "the second config")
        old = former(config)
        beside = "text_config" in config and "text_config" not in old
        inner = lambda name: name.removeprefix("text_config.") if beside else name
        again = {inner(name): hint for name, hint in fields.items() if name not in self.moved or
                 get(old, inner(name)) is not ABSENT and get(config, name) is ABSENT or name.split(".")[-1] in BESIDE}
        self.ask(old, again, "former")
        if self.name in BRIEF:
            return
        pairs = self.reference.pairs(config)
        for path in rope_objects(config):
            for kind, rope in ropes(pairs).items():
                rope = {**{key: v for key, v in get(config, path).items() if key in OWN}, **rope}
                if "original_max_position_embeddings" in config:
                    rope.pop("original_max_position_embeddings", None)
                base = flipped(config, path, rope)
                around = {name: hint for name, hint in fields.items() if name.split(".")[-1] in BESIDE}
                if kind != "default":
                    self.ask(base, {**inside(path), **around}, f"{kind} in {path}")
                    if not path.endswith("sliding_attention"):
                        old = former(base)
                        has = {name: hint for name, hint in in_all(old).items() if get(old, name) is not ABSENT}
                        around = {inner(name): hint for name, hint in around.items()}
                        self.ask(old, {**has, **around}, f"{kind}, former")


def text(family):
    """One line per field."""
    line = lambda v: json.dumps(v)
    bases = []
    for base in family.bases:
        fields = ",\n".join(f"   {line(name)}: {line(flips)}" for name, flips in base["fields"].items())
        bases.append(f' {{"config": {line(base["config"])},\n  "fields": {{\n{fields}}}}}')
    return f'{{"transformers": "{transformers.__version__}", "bases": [\n' + ",\n".join(bases) + "]}\n"


def main():
    names = sys.argv[1:] or list(FAMILIES)
    if unknown := [n for n in names if n not in FAMILIES]:
        sys.exit(f"{', '.join(unknown)}: not a family; the families are {', '.join(FAMILIES)}")
    transformers.utils.logging.set_verbosity(transformers.utils.logging.CRITICAL)
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    failed = False
    for name in names:
        print(f"{name}:", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            family = Family(name, folder)
            family.ask_all()
        flips = [flip for base in family.bases for of in base["fields"].values() for flip in of]
        print(f"  {len(flips)} flips, {sum(f[0] == 'moves' for f in flips)} move logits, "
              f"{sum(f[1] != '' for f in flips)} refused")
        for what in family.wrong:
            print(f"  {what}", flush=True)
        failed = failed or bool(family.wrong)
        if not family.wrong:
            os.makedirs(FOLDER, exist_ok=True)
            with open(os.path.join(FOLDER, name + ".json"), "w", encoding="utf-8") as file:
                file.write(text(family))
    sys.exit(failed)


if __name__ == "__main__":
    main()
