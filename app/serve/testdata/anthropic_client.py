"""Talks to three servers with Anthropic's client: anthropic_client.py URL TOOLS_URL THINKING_URL. What is not as it
should be is an assertion.

The first has the API key "k" and the model "m", which decodes; the second answers "Let me see." and a call of a tool; the
third thinks "As so." and says "It is.". The second has the name that the example of the client's README asks for, too.
"""

import asyncio
import contextlib
import importlib.metadata
import io
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import anthropic
import pydantic

ASK = {"model": "m", "max_tokens": 12, "messages": [{"role": "user", "content": "def fib(n):"}]}
LONG = ASK | {"max_tokens": 100}
GREEDY = {"extra_body": {"temperature": 0}}
TOOLS = [{"name": "weather", "description": "of a place",
          "input_schema": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}}]


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def messages(client):
    whole = client.messages.create(**ASK, **GREEDY)
    assert whole.type == "message" and whole.role == "assistant" and whole.model == "m", whole
    assert whole.stop_reason in ("end_turn", "max_tokens") and whole.stop_sequence is None, whole
    text = text_of(whole)
    with client.messages.stream(**ASK, **GREEDY) as stream:
        assert "".join(stream.text_stream) == text
        final = stream.get_final_message()
    assert text_of(final) == text and final.stop_reason == whole.stop_reason, final
    assert final.usage.output_tokens == whole.usage.output_tokens, final.usage
    assert final.usage.cache_read_input_tokens > 0 and final.usage.input_tokens == 1, final.usage
    kinds = [event.type for event in client.messages.create(stream=True, **ASK, **GREEDY)]
    assert kinds[:2] == ["message_start", "content_block_start"], kinds
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"], kinds
    stop = text[2:5]
    cut = client.messages.create(stop_sequences=[stop], **ASK, **GREEDY)
    assert cut.stop_reason == "stop_sequence" and cut.stop_sequence == stop, cut
    assert text_of(cut) == text[:text.index(stop)], cut
    # An answer goes on where the assistant has begun.
    begun = ASK | {"messages": ASK["messages"] + [{"role": "assistant", "content": text[:4]}]}
    assert client.messages.create(**begun, **GREEDY).content[0].type == "text"
    count = client.messages.count_tokens(model="m", messages=ASK["messages"], system="Be brief.")
    plain = client.messages.count_tokens(model="m", messages=ASK["messages"])
    assert count.input_tokens > plain.input_tokens == final.usage.cache_read_input_tokens + 1, (count, plain)
    cancelled = client.messages.create(stream=True, **ASK)
    next(iter(cancelled))
    cancelled.close()
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(client.messages.create, **ASK, **GREEDY) for _ in range(16)]
        assert {text_of(a.result()) for a in asked} == {text}


class Person(pydantic.BaseModel):
    adult: bool


def parsed(client):
    message = client.messages.parse(output_format=Person, **LONG)
    assert isinstance(message.parsed_output, Person), message


async def later(url):
    async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as client:
        async with client.messages.stream(**ASK, **GREEDY) as stream:
            parts = [text async for text in stream.text_stream]
        assert parts and text_of(await client.messages.create(**ASK, **GREEDY)) == "".join(parts), parts


def errors(client, url):
    for wanted, kind, call in [
            (anthropic.NotFoundError, "not_found_error", lambda: client.messages.create(**ASK | {"model": "x"})),
            (anthropic.BadRequestError, "invalid_request_error", lambda: client.messages.create(**ASK | {"messages": []})),
            (anthropic.BadRequestError, "invalid_request_error", lambda: client.messages.create(**ASK | {
                "messages": [{"role": "user", "content": "x " * 1000}]})),
            (anthropic.BadRequestError, "invalid_request_error", lambda: client.messages.create(**ASK | {"messages": [
                {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://a/b"}}]}]})),
            (anthropic.AuthenticationError, "authentication_error",
             lambda: anthropic.Anthropic(base_url=url, api_key="x").messages.create(**ASK))]:
        try:
            call()
        except wanted as e:
            assert e.body["type"] == "error" and e.body["error"]["type"] == kind, e.body
            assert e.body["error"]["message"] and e.body["request_id"] == e.response.headers["x-request-id"], e.body
        else:
            raise AssertionError(wanted)
    bearer = anthropic.Anthropic(base_url=url, auth_token="k", max_retries=0)
    assert bearer.messages.create(**ASK).role == "assistant"
    assert [m.id for m in client.models.list()] == ["m"]


def tools(client):
    ask = LONG | {"tools": TOOLS}
    whole = client.messages.create(**ask)
    said, call = whole.content
    assert whole.stop_reason == "tool_use" and said.text == "Let me see.", whole
    assert call.type == "tool_use" and call.name == "weather" and call.input == {"place": "Bern"}, call
    with client.messages.stream(**ask) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_message()
    assert "input_json" in kinds and final.content[1].input == call.input, final
    assert final.stop_reason == "tool_use", final
    answered = ask["messages"] + [{"role": "assistant", "content": whole.content}, {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call.id, "content": "31", "is_error": False}]}]
    assert client.messages.create(**ask | {"messages": answered}).role == "assistant"
    one = client.messages.create(tool_choice={"type": "auto", "disable_parallel_tool_use": True}, **ask)
    assert len(one.content) == 2, one


def runner(client):
    """A loop of the client's own, which calls the function and sends its result, until the model calls nothing."""
    called = []

    @anthropic.beta_tool
    def weather(place: str) -> str:
        """of a place"""
        called.append(place)
        return "31"

    for turn, message in enumerate(client.beta.messages.tool_runner(tools=[weather], **LONG)):
        assert message.content[1].input == {"place": "Bern"}, message
        if turn == 1:
            break
    assert called == ["Bern"], called


def thinking(client):
    whole = client.messages.create(**LONG)
    thought, said = whole.content
    assert thought.type == "thinking" and thought.thinking == "As so." and said.text == "It is.", whole
    with client.messages.stream(**LONG) as stream:
        thoughts = "".join(e.thinking for e in stream if e.type == "thinking")
        final = stream.get_final_message()
    assert thoughts == "As so." and [b.to_dict() for b in final.content] == [b.to_dict() for b in whole.content], final
    ask = ASK | {"max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 1024}}
    assert client.messages.create(**ask).content[0].thinking == "As so."
    ask["messages"] = ASK["messages"] + [{"role": "assistant", "content": whole.content},
                                         {"role": "user", "content": "And now?"}]
    assert client.messages.create(**ask).content[1].text == "It is."


def readme(url):
    """The examples of the README of the client, as they are."""
    os.environ |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none"}
    text = importlib.metadata.metadata("anthropic").get_payload()
    examples = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert examples, text
    for example in examples:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(example, "README", "exec"), {"__name__": "__main__"})
        assert "Let me see." in printed.getvalue(), printed.getvalue()


def main(url, tools_url, thinking_url):
    client = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)
    messages(client)
    parsed(client)
    asyncio.run(later(url))
    errors(client, url)
    caller = anthropic.Anthropic(base_url=tools_url, api_key="none", max_retries=0)
    tools(caller)
    runner(caller)
    readme(tools_url)
    thinking(anthropic.Anthropic(base_url=thinking_url, api_key="none", max_retries=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
