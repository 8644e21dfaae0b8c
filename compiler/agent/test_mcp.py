#!/usr/bin/env python3
"""A client of `amkc mcp` in another language: a whole campaign by the MCP SDK of Python. `make mcp` runs it."""

import asyncio
import json
import os
import shutil
import tempfile
import unittest

from mcp import ClientSession, StdioServerParameters, stdio_client

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(os.path.dirname(os.path.dirname(HERE)), "testdata/models/zoo/llama-gqa")
AMKC = os.environ["AMKC"]


class Agent:
    """A session, whose tools return dictionaries."""

    def __init__(self, session):
        self.session = session
        self.told = []

    async def call(self, tool, **arguments):
        async def tell(progress, total, message):
            self.told.append((progress, message))
        result = await self.session.call_tool(tool, arguments, progress_callback=tell)
        text = result.content[0].text
        if result.is_error:
            raise ValueError(text)
        return json.loads(text)


class McpTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="amkc-mcp-")
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copytree(MODEL, os.path.join(self.root, "model"))

    def test_a_campaign(self):
        asyncio.run(asyncio.wait_for(self.campaign(), 300))

    async def campaign(self):
        key = os.path.join(self.root, "..", os.path.basename(self.root) + ".key")
        self.addCleanup(os.remove, key)
        # Without a g++, nvcc is not asked for registers, which would take longer than everything else.
        server = StdioServerParameters(command=AMKC, args=["mcp", "--root", self.root, "--key", key], env={"PATH": ""})
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            agent = Agent(session)
            program = await session.read_resource("amkc://docs/program.md")
            self.assertIn("# A campaign, step by step", program.contents[0].text)
            prompts = await session.list_prompts()
            self.assertEqual(sorted(p.name for p in prompts.prompts), ["campaign", "next_trial", "review"])

            model = {"model": "model", "target": "h200"}
            campaign = dict(model, campaign="camp", cold=True, positions=[0, 40])
            self.assertEqual((await agent.call("search", trials=1, **campaign))["stop"], "1 trials are made")
            self.assertTrue(agent.told)
            knobs = {knob["path"]: knob for knob in (await agent.call("space", **model))["knobs"]}
            # Hypotheses of an agent: one knob after another from its unoptimised value to its default.
            for path in ("tiling.loop.barrier", "tiling.exchange.flagged", "pipelining_depth"):
                knob = knobs[path]
                best = (await agent.call("campaign_status", campaign="camp"))["best"]
                candidate = {name: value for name, value in best.items() if name != path}
                self.assertNotEqual(knob["default"], knob["plain"])
                verdict = (await agent.call("eval", candidate=candidate, baseline=best, positions=[0, 40],
                                            save="verdict.json", **model))["verdict"]
                self.assertEqual((verdict["class"], verdict["device"]), ("PASS", "cost"), verdict)
                self.assertTrue(verdict["correctness"]["passed"])
                self.assertRegex(verdict["correctness"]["oracle"], "^reference VM")
                await agent.call("campaign_record", campaign="camp", verdict="verdict.json")
            status = await agent.call("campaign_status", campaign="camp")
            self.assertEqual(status["soundness"]["trials"], 4)
            self.assertNotIn("tiling.loop.barrier", status["best"])
            done = await agent.call("search", trials=10, **campaign)
            self.assertIsNotNone(done["confirmed"])
            verified = await agent.call("campaign_verify", campaign="camp")
            self.assertEqual(verified["soundness"]["accepted_unproved"], 0)
            await agent.call("campaign_report", campaign="camp")
            report = await session.read_resource("amkc://report/camp")
            self.assertIn("<html", report.contents[0].text)
            for want, tool, arguments in (("AMK6202", "space", {"model": "../model"}),
                                          ("AMK6202", "eval", {"model": "model", "save": "../x"}),
                                          ("latency_us", "space", {"model": "model", "latency_us": 1})):
                with self.assertRaisesRegex(Exception, want):
                    await agent.call(tool, **arguments)


if __name__ == "__main__":
    unittest.main()
