"""Runs the examples of the README of OpenAI's client, each as it is: OPENAI_BASE_URL and OPENAI_API_KEY name the server,
whose model has the name that the examples ask for.

An example is known by the heading that it stands under, and its number there. Those that are neither run nor left out
are an error, so that a new one of a new client is not missed. What has no client of its own is given one.
"""

import ast
import asyncio
import contextlib
import importlib.metadata
import inspect
import io
import re

import openai

# Those that run, and whether they print something.
RUN = {
    "Usage 1": True, "Usage 2": True, "Async usage 1": True, "With aiohttp 1": False, "Streaming responses 1": True,
    "Streaming responses 2": True, "Nested params 1": False, "Handling errors 1": True, "Request IDs 1": True,
    "Request IDs 2": False, "Retries 1": False, "Timeouts 1": False,
    "Accessing raw response data (e.g. headers) 1": True, "`.with_streaming_response` 1": True,
    "Managing HTTP resources 1": False, "Managing HTTP resources 2": True,
    "Determining the installed version 1": True,
}
# Headings whose other examples are left out, and why.
LEFT_OUT = {
    "Kubernetes (service account tokens)": "an identity of a cloud",
    "Azure (managed identity)": "an identity of a cloud",
    "Google Cloud Platform (compute engine metadata)": "an identity of a cloud",
    "Custom subject token provider": "an identity of a cloud",
    "X.509 workload identity (mutual TLS)": "TLS", "Mutual TLS": "TLS",
    "Vision": "images", "Realtime API": "realtime", "Realtime error handling": "realtime",
    "Pagination": "fine-tuning", "File uploads": "files and audio",
    "Parsing webhook payloads": "webhooks", "Verifying webhook payloads directly": "webhooks",
    "How to tell whether `None` means `null` or missing": "a field that there is not",
    "Undocumented endpoints": "a path that there is not",
    "Configuring the HTTP client": "a proxy that there is not",
    "Microsoft Azure OpenAI": "another service", "Amazon Bedrock": "another service",
    "Legacy `BedrockOpenAI` client": "another service",
}


def examples():
    """The blocks of Python of the README, by name."""
    text, heading, found = importlib.metadata.metadata("openai").get_payload(), "", {}
    for m in re.finditer(r"^#+ ([^\n]*)$|^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if m[1]:
            heading, number = m[1], 0
        elif m[2] in ("python", "py"):
            number += 1
            found[f"{heading} {number}"] = heading, m[3]
    return found


def execute(name, source):
    """Runs an example, and returns what it prints."""
    code = compile(source, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    coroutine = code.co_flags & inspect.CO_COROUTINE
    # What has no client is the continuation of an example that has one.
    given = {"__name__": "__main__", "client": openai.AsyncOpenAI() if coroutine else openai.OpenAI()}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        if coroutine:
            asyncio.run(eval(code, given))
        else:
            exec(code, given)
    return printed.getvalue().strip()


def main():
    found = examples()
    assert set(RUN) <= set(found), f"examples that there are not: {set(RUN) - set(found)}"
    for name, (heading, source) in found.items():
        if name not in RUN:
            assert heading in LEFT_OUT, f"an example that nobody knows: {name}\n{source}"
            print(f"{name}: left out, {LEFT_OUT[heading]}")
            continue
        printed = execute(name, source)
        assert bool(printed) == RUN[name], f"{name} prints {printed!r}\n{source}"
        print(f"{name}: {printed[:100]!r}")
    unused = set(LEFT_OUT) - {heading for name, (heading, _) in found.items() if name not in RUN}
    assert not unused, f"headings without an example that is left out: {unused}"


if __name__ == "__main__":
    main()
