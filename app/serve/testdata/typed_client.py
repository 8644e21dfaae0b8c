"""Asks for typed answers as applications in Python do: typed_client.py URL AGENT_URL. What is not as it should be is an
assertion, or an error of the client, which validates each answer.

The first server draws tokens at random among those that may follow. The second calls weather, and answers once a tool
has. Both have the model "m". Each schema that pydantic writes is also given to jsonschema with the answers to it.
"""

import asyncio
import datetime
import enum
import ipaddress
import json
import sys
import uuid
from typing import Annotated, Literal, Optional, Union

import agents
import instructor
import jsonschema
import openai
import pydantic
from instructor.core.exceptions import IncompleteOutputException
from pydantic import Field

SEEDS = range(6)
# Tokens at random, among which a quote is likely: strings end.
DRAWN = {"temperature": 2, "logit_bias": {"3": 25}}


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Numbers(pydantic.BaseModel):
    age: int = Field(ge=0, le=150)
    year: int = Field(gt=1899, lt=2101)
    share: float = Field(ge=0, le=1)
    price: pydantic.PositiveFloat
    cold: float = Field(lt=-0.5, gt=-300)
    five: int = Field(multiple_of=5, ge=-50, le=50)


class Strings(pydantic.BaseModel):
    code: str = Field(pattern=r"^[A-Z]{2}-\d{3,5}$")
    short: str = Field(min_length=2, max_length=8)
    mail: pydantic.EmailStr
    site: pydantic.AnyUrl
    id: uuid.UUID
    fresh: pydantic.UUID4
    four: ipaddress.IPv4Address
    six: ipaddress.IPv6Address


class Times(pydantic.BaseModel):
    day: datetime.date
    at: datetime.datetime
    clock: datetime.time
    length: datetime.timedelta


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int = Field(ge=1, le=9)


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    loud: bool


class Tree(pydantic.BaseModel):
    leaf: Optional["Tree"] = None


class Structures(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    pet: Annotated[Union[Cat, Dog], Field(discriminator="kind")]
    colour: Colour
    pair: tuple[bool, int]
    some: list[Literal[1, 2]] = Field(min_length=1, max_length=3)
    maybe: Optional[int] = None
    tree: Tree


class Counts(pydantic.BaseModel):
    counts: dict[Annotated[str, Field(max_length=5)], bool]


MODELS = [Numbers, Strings, Times, Structures]


def parsed(ask, least):
    """Answers to several seeds, without those that were cut."""
    answers = []
    for seed in SEEDS:
        try:
            answers.append(ask(seed))
        except (openai.LengthFinishReasonError, IncompleteOutputException):
            pass
    assert len(answers) >= least, answers
    print(len(answers), "answers")
    return answers


def schemas(client):
    """What a model of pydantic says, as it is, and what OpenAI's client makes of it."""
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    for model in MODELS + [Counts]:
        schema = model.model_json_schema()
        asked = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
        whole = 0
        for seed in SEEDS:
            choice = client.chat.completions.create(model="m", messages=[{"role": "user", "content": str(seed)}],
                                                    response_format=asked, seed=seed, max_tokens=700, **DRAWN).choices[0]
            if choice.finish_reason == "length":
                continue
            value = model.model_validate_json(choice.message.content)
            jsonschema.validate(json.loads(choice.message.content), schema, format_checker=checker)
            assert isinstance(value, model)
            whole += 1
        assert whole >= 3, model
    for model in MODELS:
        parsed(lambda seed: client.chat.completions.parse(
            model="m", messages=[{"role": "user", "content": str(seed)}], response_format=model, seed=seed, **DRAWN,
            max_tokens=700).choices[0].message.parsed.model_dump(), 3)
    parsed(lambda seed: client.responses.parse(model="m", input=str(seed), text_format=Structures, temperature=2,
                                               max_output_tokens=700).output_parsed, 0)


def with_instructor(url):
    """A tool whose arguments are the answer, and a schema."""
    plain = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
        client = instructor.from_openai(plain, mode=mode)
        for model in (Numbers, Structures):
            answers = parsed(lambda seed: client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": str(seed)}], response_model=model, seed=seed, **DRAWN,
                max_tokens=700, max_retries=1), 3)
            assert all(isinstance(a, model) for a in answers), answers


class Answer(pydantic.BaseModel):
    warm: bool
    degrees: int = Field(ge=-60, le=60)


CALLED = []


@agents.function_tool
def weather(place: str) -> str:
    """The weather of a place."""
    CALLED.append(place)
    return "31 degrees"


async def agent(url):
    """A typed result, after a call of a tool, over chat completions and responses."""
    agents.set_tracing_disabled(True)
    client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    for kind in (agents.OpenAIChatCompletionsModel, agents.OpenAIResponsesModel):
        CALLED.clear()
        who = agents.Agent(name="weather", instructions="Say whether it is warm.", tools=[weather],
                           output_type=Answer, model=kind(model="m", openai_client=client))
        result = await agents.Runner.run(who, "Is it warm in Bern?")
        assert result.final_output == Answer(warm=True, degrees=31), (kind, result.final_output)
        assert CALLED == ["Bern"], (kind, CALLED)


def main(url, agent_url):
    client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    schemas(client)
    with_instructor(url)
    asyncio.run(agent(agent_url))


if __name__ == "__main__":
    main(*sys.argv[1:])
