"""Talks to two servers with OpenAI's client: openai_client.py URL TOOLS_URL. What is not as it should be is an assertion.

The first has the API key "k" and the model "m", which decodes; the second answers "Let me see." and a call of a tool.
"""

import array
import sys
from concurrent.futures import ThreadPoolExecutor

import openai
import pydantic

MESSAGES = [{"role": "user", "content": "def fib(n):"}]
GREEDY = {"model": "m", "temperature": 0, "max_tokens": 12}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]


def chat(client):
    whole = client.chat.completions.create(messages=MESSAGES, **GREEDY)
    choice = whole.choices[0]
    assert choice.message.role == "assistant" and choice.finish_reason in ("stop", "length"), whole
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens, whole
    text, finish, usage = "", None, None
    for chunk in client.chat.completions.create(messages=MESSAGES, stream=True,
                                                stream_options={"include_usage": True}, **GREEDY):
        usage = chunk.usage or usage
        for part in chunk.choices:
            text += part.delta.content or ""
            finish = part.finish_reason or finish
    assert text == choice.message.content and finish == choice.finish_reason, text
    assert usage.completion_tokens == whole.usage.completion_tokens, usage
    assert usage.prompt_tokens_details.cached_tokens == usage.prompt_tokens - 1, usage

    likely = client.chat.completions.create(messages=MESSAGES, logprobs=True, top_logprobs=2, **GREEDY)
    rows = likely.choices[0].logprobs.content
    assert b"".join(bytes(r.bytes) for r in rows).decode() == choice.message.content, rows
    assert all(len(r.top_logprobs) == 2 and r.logprob == r.top_logprobs[0].logprob for r in rows), rows
    return choice.message.content


class Person(pydantic.BaseModel):
    adult: bool


def responses(client):
    """As the README of the client has it."""
    ask = {"model": "m", "instructions": "You are a coding assistant that talks like a pirate.",
           "input": "How do I check if a Python object is an instance of a class?", "temperature": 0,
           "max_output_tokens": 12}
    whole = client.responses.create(**ask)
    assert whole.output_text == whole.output[0].content[0].text and not whole.store, whole
    assert whole.status == "completed" or whole.incomplete_details.reason == "max_output_tokens", whole
    assert whole.usage.total_tokens == whole.usage.input_tokens + whole.usage.output_tokens, whole.usage
    text, kinds = "", []
    for n, event in enumerate(client.responses.create(stream=True, **ask)):
        assert event.sequence_number == n, event
        kinds.append(event.type)
        if event.type == "response.output_text.delta":
            text += event.delta
    assert text == whole.output_text and event.response.output_text == text, text
    assert kinds[:4] == ["response.created", "response.in_progress", "response.output_item.added",
                         "response.content_part.added"], kinds
    assert kinds[-4:] == ["response.output_text.done", "response.content_part.done", "response.output_item.done",
                          "response." + whole.status], kinds
    usage = event.response.usage
    assert usage.output_tokens == whole.usage.output_tokens and usage.output_tokens_details.reasoning_tokens == 0, usage
    assert usage.input_tokens_details.cached_tokens == usage.input_tokens - 1, usage
    response_logprobs(client)
    parsed = client.responses.parse(model="m", input="An adult:", text_format=Person, temperature=0)
    assert isinstance(parsed.output_parsed, Person), parsed
    try:
        client.responses.create(model="m", input="a", previous_response_id=whole.id)
    except openai.BadRequestError as e:
        assert e.param == "previous_response_id" and e.code == "unsupported_parameter", e
    else:
        raise AssertionError("a response that nobody has stored")
    cancelled = client.responses.create(model="m", input="a", stream=True, temperature=0)
    next(iter(cancelled))
    cancelled.close()


def response_logprobs(client):
    """Those of a chat, whole and in a stream."""
    likely = client.chat.completions.create(messages=MESSAGES, logprobs=True, top_logprobs=2, **GREEDY)
    want = [(r.token, r.logprob, r.bytes, [(t.token, t.logprob, t.bytes) for t in r.top_logprobs])
            for r in likely.choices[0].logprobs.content]
    ask = {"model": "m", "input": MESSAGES, "temperature": 0, "max_output_tokens": 12, "top_logprobs": 2,
           "include": ["message.output_text.logprobs"]}
    whole = client.responses.create(**ask)
    rows = whole.output[0].content[0].logprobs
    assert whole.top_logprobs == 2 and len(rows) > 0, whole
    assert [(r.token, r.logprob, r.bytes, [(t.token, t.logprob, t.bytes) for t in r.top_logprobs])
            for r in rows] == want, rows
    events = list(client.responses.create(stream=True, **ask))
    deltas = [r for e in events if e.type == "response.output_text.delta" for r in e.logprobs]
    done = [r for e in events if e.type == "response.output_text.done" for r in e.logprobs]
    for said in (deltas, done):
        assert [(r.token, r.logprob, [(t.token, t.logprob) for t in r.top_logprobs]) for r in said] == \
            [(token, p, [(t[0], t[1]) for t in top]) for token, p, _, top in want], said
    assert events[-1].response.output[0].content[0].logprobs == rows, events[-1]
    try:
        client.responses.create(model="m", input="a", top_logprobs=2)
    except openai.BadRequestError as e:
        assert e.param == "top_logprobs", e
    else:
        raise AssertionError("the likeliest tokens of nothing")


class Weather(pydantic.BaseModel):
    place: str


def response_tools(client):
    items = [{"role": "user", "content": "Warm?"}]
    ask = {"model": "m", "tools": [openai.pydantic_function_tool(Weather, name="weather")]}
    whole = client.responses.parse(input=items, **ask)
    said, call = whole.output
    assert whole.output_text == "Let me see." and said.type == "message", whole
    assert call.type == "function_call" and call.arguments == '{"place":"Bern"}', call
    assert call.parsed_arguments == Weather(place="Bern"), call
    with client.responses.stream(input=items, **ask) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert "response.function_call_arguments.done" in kinds, kinds
    assert final.output[1].parsed_arguments == Weather(place="Bern"), final
    items += whole.output
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": "31"})
    assert client.responses.create(model="m", input=items).status == "completed"


def completions(client):
    whole = client.completions.create(prompt="def fib(n):", logprobs=1, **GREEDY).choices[0]
    assert "".join(whole.logprobs.tokens) == whole.text, whole
    parts = client.completions.create(prompt="def fib(n):", stream=True, **GREEDY)
    assert "".join(p.choices[0].text for p in parts) == whole.text
    stop = whole.text[2:5]
    cut = client.completions.create(prompt="def fib(n):", stop=stop, **GREEDY).choices[0]
    assert cut.text == whole.text[:whole.text.index(stop)] and cut.finish_reason == "stop", cut
    drawn = {"model": "m", "prompt": "def ", "max_tokens": 16, "temperature": 1.3, "top_p": 0.9}
    texts = [client.completions.create(seed=seed, **drawn).choices[0].text for seed in (1, 2, 1)]
    assert texts[0] == texts[2] != texts[1], texts

    several = client.completions.create(n=2, seed=1, logprobs=1, **drawn | {"prompt": ["import ", "def "]})
    assert [c.index for c in several.choices] == [0, 1, 2, 3], several
    assert [c.text for c in several.choices[2:]] == texts[:2], several
    assert all(len(c.logprobs.token_logprobs) == len(c.logprobs.tokens) > 0 for c in several.choices), several
    streamed = [""] * 4
    for chunk in client.completions.create(n=2, seed=1, stream=True, **drawn | {"prompt": ["import ", "def "]}):
        for part in chunk.choices:
            streamed[part.index] += part.text
    assert streamed == [c.text for c in several.choices], streamed


def loglikelihoods(client):
    """As lm-evaluation-harness asks for them: how likely continuations are, and whether they are the likeliest."""
    texts = ["def fib(n):\n    return n", "import os\n"]
    whole = client.completions.create(prompt=texts, model="m", temperature=0, max_tokens=1, logprobs=1, seed=1234,
                                      echo=True)
    for choice, text in zip(sorted(whole.choices, key=lambda c: c.index), texts):
        said = choice.logprobs
        given, top = said.token_logprobs[3:-1], said.top_logprobs[3:-1]
        assert choice.text.startswith(text) and said.token_logprobs[0] is None and len(given) > 0, choice
        assert all(p <= max(t.values()) and max(t.values()) < 0 for p, t in zip(given, top)), choice
        for n in range(3, len(said.tokens) - 1):  # as many characters, and so the tokens, as behind the text so far
            assert choice.text[said.text_offset[n]:].startswith(said.tokens[n]), (n, choice)
        alone = client.completions.create(prompt=text, model="m", max_tokens=0, logprobs=1, echo=True).choices[0]
        assert alone.text == text and alone.logprobs.token_logprobs == said.token_logprobs[:-1], alone


def embeddings(client):
    asked = client.embeddings.create(model="m", input=["def fib(n):", "import os"])  # as base64, which the client reads
    first, second = (d.embedding for d in asked.data)
    assert len(first) == len(second) and abs(sum(x * x for x in first) - 1) < 1e-5, asked
    assert first != second and asked.usage.total_tokens == asked.usage.prompt_tokens > 0, asked.usage
    plain = client.embeddings.create(model="m", input="def fib(n):", encoding_format="float").data[0].embedding
    assert array.array("f", plain) == array.array("f", first), plain
    cut = client.embeddings.create(model="m", input="def fib(n):", dimensions=8).data[0].embedding
    assert len(cut) == 8 and abs(cut[0] / cut[1] - first[0] / first[1]) < 1e-3, cut


def errors(client, url):
    for wanted, call in [
            (openai.NotFoundError, lambda: client.chat.completions.create(model="other", messages=MESSAGES)),
            (openai.BadRequestError, lambda: client.chat.completions.create(model="m", messages=[])),
            (openai.BadRequestError, lambda: client.completions.create(model="m", prompt="x " * 1000)),
            (openai.AuthenticationError, lambda: openai.OpenAI(base_url=url, api_key="x").models.list())]:
        try:
            call()
        except wanted as e:
            assert e.body["message"] and e.code and e.request_id, e
        else:
            raise AssertionError(wanted)


def tools(client):
    ask = {"model": "m", "messages": MESSAGES, "tools": TOOLS}
    whole = client.chat.completions.create(**ask).choices[0]
    assert whole.finish_reason == "tool_calls" and whole.message.content == "Let me see.", whole
    call = whole.message.tool_calls[0]
    assert call.function.name == "weather" and call.function.arguments == '{"place":"Bern"}', call
    with client.chat.completions.stream(**ask) as stream:
        final = stream.get_final_completion().choices[0]
    assert final.finish_reason == "tool_calls" and final.message.tool_calls[0].function == call.function or \
        final.message.tool_calls[0].function.arguments == call.function.arguments, final
    answered = MESSAGES + [whole.message, {"role": "tool", "tool_call_id": call.id, "content": "31"}]
    client.chat.completions.create(model="m", messages=answered)


def main(url, tools_url):
    client = openai.OpenAI(base_url=url, api_key="k", max_retries=0)
    assert [m.id for m in client.models.list()] == ["m"] and client.models.retrieve("m").id == "m"
    text = chat(client)
    responses(client)
    completions(client)
    loglikelihoods(client)
    embeddings(client)
    errors(client, url)
    caller = openai.OpenAI(base_url=tools_url, api_key="none", max_retries=0)
    tools(caller)
    response_tools(caller)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(client.chat.completions.create, messages=MESSAGES, **GREEDY) for _ in range(16)]
        assert {a.result().choices[0].message.content for a in asked} == {text}
    cancelled = client.chat.completions.create(model="m", messages=MESSAGES, stream=True, temperature=0)
    next(iter(cancelled))
    cancelled.close()
    assert client.chat.completions.create(messages=MESSAGES, **GREEDY).choices[0].message.content == text


if __name__ == "__main__":
    main(*sys.argv[1:])
