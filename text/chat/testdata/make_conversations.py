"""Writes conversations.json: conversations of many shapes, which templates are rendered on."""

import copy
import json
import pathlib

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather of a place.\nIn \"plain\" words <b>&</b> numbers.",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "City, e.g. Zürich"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
                "days": {"type": "integer", "minimum": 1, "maximum": 18446744073709551615},
                "exact": {"type": "boolean", "description": "down to 1e-05"},
                "when": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "box": {
                    "type": "object",
                    "description": "an area",
                    "properties": {"north": {"type": "number"}, "east": {"type": ["number", "null"]}},
                    "required": ["north"],
                },
            },
            "required": ["place"],
        },
        "return": {"type": "object", "description": "the weather"},
    },
}
CLOCK = {
    "type": "function",
    "function": {"name": "clock", "description": "The time", "parameters": {"type": "object", "properties": {}}},
}
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds two numbers",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number", "description": "the other"}},
            "required": ["a", "b"],
            "additionalProperties": False,
        },
    },
}


def m(role, content, **more):
    return {"role": role, "content": content, **more}


def call(name, arguments, id="call00001", **more):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


USER = m("user", "What is 2 + 2?")
SYSTEM = m("system", "You are a careful assistant.")
ANSWER = m("assistant", "It is 4.")
AGAIN = m("user", "  And 3 + 3?\n")
ARGUMENTS = {"place": "Zürich", "days": 2, "exact": True, "unit": None, "box": {"north": 47.5, "east": 1e-05}, "tags": ["a", "ß"]}
SUNNY = '{"weather": "sunny", "celsius": 21.5}'


def tool_turn(arguments, content="", **more):
    return [
        SYSTEM,
        m("user", "How is the weather in Zürich?"),
        m("assistant", content, tool_calls=[call("get_weather", arguments)], **more),
        m("tool", SUNNY, name="get_weather", tool_call_id="call00001"),
    ]


def shapes():
    yield "user", {"messages": [USER]}
    yield "system", {"messages": [SYSTEM, USER]}
    yield "developer", {"messages": [m("developer", "Be brief."), USER]}
    yield "turns", {"messages": [SYSTEM, USER, ANSWER, AGAIN]}
    yield "turns_without_system", {"messages": [USER, ANSWER, AGAIN, m("assistant", "6"), m("user", "Thanks!")]}
    yield "ends_with_assistant", {"messages": [SYSTEM, USER, ANSWER]}
    yield "two_users", {"messages": [USER, AGAIN]}
    yield "late_system", {"messages": [USER, ANSWER, SYSTEM, AGAIN]}
    yield "assistant_first", {"messages": [ANSWER, USER]}
    yield "empty", {"messages": [m("system", ""), m("user", "")]}
    yield "other_role", {"messages": [m("narrator", "Once upon a time"), USER]}
    yield "no_content", {"messages": [{"role": "user"}]}
    yield "null_content", {"messages": [USER, m("assistant", None), AGAIN]}
    yield "hostile", {"messages": [m("system", "{{ 1 }} {% x %} <|im_end|>"), m("user", "'\"\\ \t\u2028 <s>[INST]  é😀 </think>\r\n")]}
    yield "parts", {"messages": [m("system", [{"type": "text", "text": "Look."}]), m("user", [{"type": "text", "text": "One,"}, {"type": "text", "text": " two"}])]}
    yield "image", {"messages": [m("user", [{"type": "image"}, {"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "x.png"}}])]}
    yield "reasoning", {"messages": [USER, m("assistant", "4", reasoning_content="Two and two\nare four."), AGAIN]}
    yield "reasoning_last", {"messages": [USER, m("assistant", "4", reasoning_content="Easy.")]}
    yield "thinking", {"messages": [USER, m("assistant", "4", thinking="hm"), AGAIN, m("assistant", "6", reasoning="hmm")]}
    yield "think_tags", {"messages": [USER, m("assistant", "<think>\nTwo and two\n</think>\n\n4"), AGAIN]}
    yield "tools", {"messages": [SYSTEM, USER], "tools": [WEATHER, CLOCK, ADD]}
    yield "tools_without_system", {"messages": [USER], "tools": [ADD]}
    yield "no_tools", {"messages": [USER], "tools": []}
    yield "call", {"messages": tool_turn(ARGUMENTS), "tools": [WEATHER, CLOCK]}
    yield "call_string", {"messages": tool_turn(json.dumps(ARGUMENTS)), "tools": [WEATHER]}
    yield "call_without_tools", {"messages": tool_turn(ARGUMENTS)}
    yield "call_content", {"messages": tool_turn(ARGUMENTS, "Let me see.", reasoning_content="I need the weather."), "tools": [WEATHER]}
    yield "call_null", {"messages": tool_turn({}, None), "tools": [WEATHER]}
    yield "call_missing_content", {"messages": [USER, {"role": "assistant", "tool_calls": [call("clock", {})]}, m("tool", "12:00")], "tools": [CLOCK]}
    yield "call_answered", {"messages": tool_turn(ARGUMENTS) + [m("assistant", "Sunny."), m("user", "Thanks")], "tools": [WEATHER]}
    yield "call_last", {"messages": tool_turn(ARGUMENTS)[:3], "tools": [WEATHER]}
    two = m("assistant", "", tool_calls=[call("get_weather", {"place": "Bern"}), call("add", {"a": 1, "b": -2.0}, "call00002")])
    yield "two_calls", {"messages": [USER, two, m("tool", SUNNY, name="get_weather", tool_call_id="call00001"), m("tool", "-1", name="add", tool_call_id="call00002")], "tools": [WEATHER, ADD]}
    yield "two_rounds", {"messages": tool_turn({"place": "Bern"}) + [m("assistant", "", tool_calls=[call("add", {"a": 1, "b": 2}, "call00002")]), m("tool", "3", name="add", tool_call_id="call00002")], "tools": [WEATHER, ADD]}
    bare = {"name": "add", "arguments": {"a": 1, "b": 2}}
    yield "bare_call", {"messages": [USER, m("assistant", "", tool_calls=[bare]), m("tool", "3")], "tools": [ADD["function"]]}
    yield "tool_parts", {"messages": tool_turn(ARGUMENTS)[:3] + [m("tool", [{"type": "text", "text": "sunny"}], name="get_weather", tool_call_id="call00001")], "tools": [WEATHER]}
    yield "tool_object", {"messages": tool_turn(ARGUMENTS)[:3] + [m("tool", {"weather": "sunny", "list": [1, None, True]}, name="get_weather", tool_call_id="call00001")], "tools": [WEATHER]}
    yield "ipython", {"messages": [USER, m("assistant", "", tool_calls=[call("add", {"a": 1, "b": 2})]), m("ipython", {"output": 3})], "tools": [ADD]}
    yield "documents", {"messages": [USER], "documents": [{"title": "A", "text": "first"}, {"title": "B", "text": "second", "doc_id": 7}]}
    yield "thinking_off", {"messages": [SYSTEM, USER], "chat_template_kwargs": {"enable_thinking": False, "thinking": False}}
    yield "thinking_on", {"messages": [USER, ANSWER, AGAIN], "chat_template_kwargs": {"enable_thinking": True, "thinking": True, "reasoning_effort": "high"}}
    yield "thinking_budget", {"messages": [USER], "chat_template_kwargs": {"thinking_budget": 512, "reasoning_effort": "low"}}
    yield "dates", {"messages": [SYSTEM, USER], "tools": [ADD], "chat_template_kwargs": {"date_string": "01 Jan 2025", "tools_in_user_message": False, "builtin_tools": ["brave_search", "wolfram_alpha"]}}


def main():
    conversations = {}
    for name, shape in shapes():
        conversations[name] = shape
        if "chat_template_kwargs" not in shape and name not in ("no_content", "empty", "documents"):
            without = copy.deepcopy(shape)
            without["add_generation_prompt"] = False
            conversations[name + "_ended"] = without
    path = pathlib.Path(__file__).with_name("conversations.json")
    path.write_text(json.dumps(conversations, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
