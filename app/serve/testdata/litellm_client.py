"""Asks through litellm: litellm_client.py URL RANDOM_URL AGENT_URL. What is not as it should be is an assertion, or an
error of litellm.

All servers have the model "m". The first decodes, and has the names of litellm's README too; the second draws tokens at
random; the third calls weather, and answers once a tool has.
"""

import asyncio
import contextlib
import importlib.metadata
import io
import json
import os
import re
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch prices
README = importlib.metadata.metadata("litellm").get_payload()  # which is empty once it is imported

import litellm
import pydantic

ASK = {"model": "openai/m", "api_key": "none", "max_tokens": 12, "temperature": 0, "num_retries": 0,
       "messages": [{"role": "user", "content": "def fib(n):"}]}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "of a place", "parameters": {
    "type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}}}]


class Warm(pydantic.BaseModel):
    warm: bool
    degrees: int = pydantic.Field(ge=-60, le=60)


def chat(base):
    whole = litellm.completion(api_base=base, **ASK)
    text, usage = whole.choices[0].message.content, whole.usage
    assert whole.choices[0].finish_reason in ("stop", "length"), whole
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens > usage.prompt_tokens > 0, usage
    stream = litellm.completion(api_base=base, stream=True, stream_options={"include_usage": True}, **ASK)
    chunks = list(stream)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == text, chunks
    assert chunks[-1].usage.completion_tokens == usage.completion_tokens, chunks[-1]
    assert litellm.stream_chunk_builder(chunks).choices[0].message.content == text
    cut = litellm.completion(api_base=base, stop=[text[2:5]], **ASK)
    assert cut.choices[0].message.content == text[:text.index(text[2:5])], cut

    async def later():
        parts = [c.choices[0].delta.content or "" async for c in await litellm.acompletion(
            api_base=base, stream=True, **ASK)]
        assert "".join(parts) == text, parts
    asyncio.run(later())
    after = litellm.text_completion(model="text-completion-openai/m", api_base=base, api_key="none", prompt="def f",
                                    max_tokens=5, temperature=0)
    assert after.choices[0].text, after
    vectors = litellm.embedding(model="openai/m", api_base=base, api_key="none", input=["a", "b"])
    assert len(vectors.data) == 2 and vectors.data[0]["embedding"], vectors


def messages(url):
    """The same answer in the form of Anthropic's API."""
    want = litellm.completion(api_base=url + "/v1", **ASK).choices[0].message.content
    ask = ASK | {"model": "anthropic/m", "api_base": url}
    assert litellm.completion(**ask).choices[0].message.content == want
    parts = [c.choices[0].delta.content or "" for c in litellm.completion(stream=True, **ask)]
    assert "".join(parts) == want, parts


def responses(base):
    said = litellm.responses(model="openai/m", api_base=base, api_key="none", input="def fib(n):", max_output_tokens=12,
                             temperature=0)
    assert said.output[0].content[0].text, said


def tools(base):
    ask = {"model": "openai/m", "api_base": base, "api_key": "none", "tools": TOOLS, "response_format": Warm}
    asked = [{"role": "user", "content": "Is it warm in Bern?"}]
    whole = litellm.completion(messages=asked, **ask).choices[0]
    call, = whole.message.tool_calls
    assert whole.finish_reason == "tool_calls" and call.function.name == "weather", whole
    assert json.loads(call.function.arguments) == {"place": "Bern"}, call
    chunks = list(litellm.completion(messages=asked, stream=True, **ask))
    streamed, = litellm.stream_chunk_builder(chunks).choices[0].message.tool_calls
    assert json.loads(streamed.function.arguments) == {"place": "Bern"}, streamed
    answered = asked + [whole.message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "31"}]
    warm = Warm.model_validate_json(litellm.completion(messages=answered, **ask).choices[0].message.content)
    assert warm == Warm(warm=True, degrees=31), warm


def typed(base):
    """Tokens at random follow the schema."""
    for seed in range(4):
        said = litellm.completion(api_base=base, response_format=Warm, seed=seed,
                                  **ASK | {"max_tokens": 400, "temperature": 2}).choices[0]
        if said.finish_reason == "stop":
            Warm.model_validate_json(said.message.content)
            return
    raise AssertionError(said)


def errors(base):
    for wanted, more in [(litellm.NotFoundError, {"model": "openai/x"}),
                         (litellm.ContextWindowExceededError, {"messages": [{"role": "user", "content": "x " * 9000}]}),
                         (litellm.BadRequestError, {"extra_body": {"no_such_field": 1}})]:
        try:
            litellm.completion(api_base=base, **ASK | more)
        except wanted:
            continue
        raise AssertionError(wanted)


def readme(url):
    """The first example of the README of litellm, as it is: it asks OpenAI and Anthropic."""
    os.environ |= {"OPENAI_BASE_URL": url + "/v1", "OPENAI_API_BASE": url + "/v1", "ANTHROPIC_API_BASE": url}
    example = re.search(r"^```python\n(from litellm import completion\n.*?)^```$", README, re.MULTILINE | re.DOTALL)
    names = {}
    exec(compile(example[1], "README", "exec"), names)
    assert names["response"].choices[0].message.content, names["response"]


def main(url, random_url, agent_url):
    litellm.suppress_debug_info = True
    with contextlib.redirect_stdout(io.StringIO()):  # it says how to get help
        chat(url + "/v1")
        messages(url)
        responses(url + "/v1")
        typed(random_url + "/v1")
        tools(agent_url + "/v1")
        errors(url + "/v1")
        readme(url)


if __name__ == "__main__":
    main(*sys.argv[1:])
