"""Renders chat templates with transformers, for the tests of this package to compare with.

    python3 render.py FOLDER [CONVERSATIONS]    # writes FOLDER/rendered.json

FOLDER holds templates, NAME.jinja. CONVERSATIONS is a file like conversations.json here, which is the default. It runs
each template on each conversation, and records the text, or null and the error where jinja2 or the template refuses.
It needs transformers and jinja2. The clock of strftime_now stands still.
"""

import datetime
import json
import pathlib
import sys

from transformers.utils import chat_template_utils

NOW = datetime.datetime(2025, 3, 7, 14, 5, 9)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def render(template, conversation):
    """The text that apply_chat_template makes, with what it does before rendering."""
    messages = [{k: v for k, v in m.items() if v is not None} for m in conversation["messages"]]
    out, _ = chat_template_utils.render_jinja_template(
        conversations=[messages],
        tools=conversation.get("tools"),
        documents=conversation.get("documents"),
        chat_template=template,
        add_generation_prompt=conversation.get("add_generation_prompt", True),
        **{**TOKENS, **conversation.get("chat_template_kwargs", {})},
    )
    return out[0]


def main():
    folder = pathlib.Path(sys.argv[1])
    here = pathlib.Path(__file__).parent
    path = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else here / "conversations.json"
    conversations = json.loads(path.read_text())
    chat_template_utils.datetime = Clock
    results = {}
    for file in sorted(folder.glob("*.jinja")):
        template = file.read_text()
        rows = {}
        for name, conversation in conversations.items():
            try:
                rows[name] = {"text": render(template, conversation)}
            except Exception as error:
                rows[name] = {"text": None, "error": f"{type(error).__name__}: {error}"}
        results[file.stem] = rows
    text = json.dumps(results, indent=1, ensure_ascii=False) + "\n"
    (folder / "rendered.json").write_text(text)


if __name__ == "__main__":
    main()
