"""What is drawn for docs/experiments.md and docs/campaigns.md: which SVG files there are, of which group of figures,
and of what data.

Needs the standard library alone; bench/draw.py, which draws them, needs matplotlib. A file says in its first lines what
digest the data had, so that a test finds one that is out of date.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import answers
import answers_looping
import answers_speed
import regret

DIRECTORY = Path(__file__).resolve().parent.parent / "docs/img"
ENGINES = {"ops": "transformers, one by one", "eager": "transformers in a CUDA graph",
           "compile": "transformers through torch.compile"}
FORMATS = {"": "bf16", "int8": "int8", "int4": "int4"}


@dataclass(frozen=True)
class Drawing:
    name: str
    group: str
    shows: str
    data: Callable  # of Results

    @property
    def path(self):
        return DIRECTORY / f"{self.name}.svg"


def precisions(r):
    """For each GPU, model, position and format: how many times amkc's time each engine takes."""
    places = (*answers.SMALL, *answers.MODELS, *answers_speed.LONG)
    models = [model_of(what) for _, _, what in places]
    places = sorted(places, key=lambda place: models.index(model_of(place[2])))  # all positions of a model together
    out = []
    for gpu in answers.GPUS:
        for start, position, what in places:
            for weights, name in FORMATS.items():
                row = r.row(gpu, answers.id_of(start, position, weights))
                if not row:
                    continue
                times = {e: row["engines"][e]["times_amkc"] for e in ENGINES
                         if "times_amkc" in row["engines"].get(e, {})}
                out.append({"label": f"{answers.NAMES[gpu]}, {what}, {name}", "times": times})
    return out


def model_of(what):
    """The model of a label: "1B" of "1B, at 128"."""
    return what.partition(",")[0]


def boundaries(r):
    """For each row: the time of the stream, of the loop and of each other way."""
    return [{"label": f"{answers.NAMES[gpu]}, {what}", "stream": row["ceiling_us"], "loop": row["loop_us"]} |
            answers_looping.ways(row) for gpu in answers.GPUS for what, row in answers_looping.boundaries(r, gpu)]


def streams(r):
    """For each timeline: the share of producers that copy, bin by bin."""
    return [{"label": f"{answers.NAMES[gpu]}, {row['model']}", "bin_us": row["bin_us"],
             "loop": row["loop"]["copying"], "barriers": row["barriers"]["copying"]}
            for gpu in answers.GPUS for row in r.rows(gpu, "timelines")]


def regrets(r):
    """For each start that several campaigns have: their regret, over seconds of the GPU."""
    return regret.curves(row for name, row in r.campaigns.items() if not regret.SEEDED.fullmatch(name))


REGRET = Drawing("campaigns-regret", "campaigns", "Curves: the regret of each campaign, over the seconds that "
                 "it has had the GPU", regrets)
DRAWINGS = (
    Drawing("experiments-precision", "precision", "Bars: how many times amkc's time transformers' steps take, by GPU, "
            "model and precision; the line at 1 is amkc", precisions),
    Drawing("experiments-boundaries", "looping", "Points for each model, batch and context: the time of the stream, of "
            "barriers after every layer, and of launches for every layer and stage, over that of the loop", boundaries),
    Drawing("experiments-stream", "looping", "Curves: the share of the SMs whose producer copies, over four layers, in "
            "a loop and with barriers after every layer", streams),
    REGRET,
)


def of(group):
    return [d for d in DRAWINGS if d.group == group]


def digest(data):
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def drawn(path):
    """The digest of the data that a file was drawn of."""
    text = Path(path).read_text(encoding="utf-8")
    return text.partition("<!-- data: ")[2].partition(" -->")[0]
