"""Writes formats.json: files of models, and what transformers makes of a conversation with them.

    python3 make_formats.py         # needs transformers, tokenizers and jinja2

A row has the files, the conversation, the name of a template or none, and the text, or null where transformers fails.
"""

import json
import pathlib
import tempfile

import tokenizers
from transformers import PreTrainedTokenizerFast

SHOW = "{{ bos_token }}|{{ eos_token }}|{{ pad_token }}|{{ image_token }}|{{ tools is none }}|{{ messages|tojson }}"
USER = {"role": "user", "content": "hi", "name": None}
THOUGHT = {"role": "assistant", "content": "x", "thinking": "hm"}
REASONED = {"content": "x", "reasoning": "b", "role": "assistant", "reasoning_content": "a"}
CONVERSATION = {"messages": [USER, THOUGHT, REASONED]}
WITH_TOOLS = {"messages": [USER], "tools": [{"type": "function", "function": {"name": "f"}}]}
NO_TOOLS = {"messages": [USER], "tools": []}


def config(**fields):
    return json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **fields})


def token(content):
    return {"__type": "AddedToken", "content": content, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}


def rows():
    named = [{"name": "default", "template": "D" + SHOW}, {"name": "tool_use", "template": "T" + SHOW}]
    one = {"tokenizer_config.json": config(bos_token="<s>", eos_token=token("</s>"), pad_token=None, image_token="<img>", chat_template=SHOW)}
    yield one, CONVERSATION, None
    yield {"tokenizer_config.json": config(chat_template=named)}, CONVERSATION, None
    yield {"tokenizer_config.json": config(chat_template=named)}, WITH_TOOLS, None
    yield {"tokenizer_config.json": config(chat_template=named)}, NO_TOOLS, None
    yield {"tokenizer_config.json": config(chat_template=named)}, WITH_TOOLS, "default"
    yield {"tokenizer_config.json": config(chat_template=named[1:])}, NO_TOOLS, None
    yield {"tokenizer_config.json": config(chat_template=named[1:])}, CONVERSATION, None
    yield {"tokenizer_config.json": config()}, CONVERSATION, None
    yield {**one, "chat_template.jinja": "F" + SHOW + "\n"}, CONVERSATION, None
    yield {**one, "additional_chat_templates/tool_use.jinja": "X" + SHOW}, WITH_TOOLS, None
    yield {**one, "additional_chat_templates/tool_use.jinja": "X" + SHOW}, CONVERSATION, None
    yield {**one, "chat_template.jinja": "F" + SHOW, "additional_chat_templates/tool_use.jinja": "X" + SHOW}, CONVERSATION, None
    yield {**one, "chat_template.jinja": "F" + SHOW, "additional_chat_templates/rag.jinja": "R" + SHOW}, CONVERSATION, "rag"
    tokens = json.dumps({"bos_token": {"content": "<m>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}, "pad_token": "<p>"})
    yield {**one, "special_tokens_map.json": tokens}, CONVERSATION, None
    listed = {"tokenizer_config.json": config(bos_token="<s>", chat_template=SHOW, added_tokens_decoder={})}
    yield {**listed, "special_tokens_map.json": tokens}, CONVERSATION, None
    yield {"tokenizer_config.json": config(chat_template=SHOW, extra_special_tokens={"image_token": "<i>"})}, CONVERSATION, None
    yield {**one, "chat_template.jinja": "a\r\nb\r{{ bos_token }}\n\n"}, CONVERSATION, None


def render(files, conversation, template):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0}, [])).save(str(folder / "tokenizer.json"))
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(text.encode())
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        return tokenizer.apply_chat_template(tokenize=False, add_generation_prompt=True, chat_template=template,
                                             conversation=conversation["messages"], tools=conversation.get("tools"))


def main():
    out = []
    for files, conversation, template in rows():
        try:
            text = render(files, conversation, template)
        except ValueError:
            text = None
        out.append({"files": files, "conversation": conversation, "template": template, "text": text})
    path = pathlib.Path(__file__).with_name("formats.json")
    path.write_text(json.dumps(out, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
