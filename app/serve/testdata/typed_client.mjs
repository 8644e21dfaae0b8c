// Asks for typed answers as applications in JavaScript do: typed_client.mjs URL AGENT_URL. What is not as it should be
// is an assertion, or an error of the client, which validates each answer with zod.
//
// The first server draws tokens at random among those that may follow. The second calls weather, and answers once a
// tool has. Both have the model "m".

import assert from "node:assert/strict";

import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool } from "@openai/agents";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject, generateText, Output, stepCountIs, tool as sdkTool } from "ai";
import OpenAI from "openai";
import { LengthFinishReasonError } from "openai/error";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";

const [url, agentURL] = process.argv.slice(2);
const seeds = [0, 1, 2, 3, 4, 5];
const drawn = { temperature: 2, logit_bias: { 3: 25 } }; // tokens at random, among which a quote is likely: strings end

const Numbers = z.object({
	age: z.int().min(0).max(150),
	any: z.int(),
	share: z.number().min(0).max(1),
	positive: z.number().positive(),
	cents: z.number().multipleOf(0.01).max(100).min(0),
	small: z.int32(),
});
const Strings = z.object({
	code: z.string().regex(/^[A-Z]{2}-\d{3,5}$/),
	short: z.string().min(2).max(8),
	mail: z.email(),
	id: z.uuid(),
	site: z.url().max(200),
	four: z.ipv4(),
	six: z.ipv6(),
	both: z.string().startsWith("a").endsWith("z").max(9),
});
const Times = z.object({ day: z.iso.date(), at: z.iso.datetime(), clock: z.iso.time(), length: z.iso.duration() });
const Tree = z.object({
	get leaf() {
		return Tree.nullable();
	},
});
const Structures = z.object({
	pet: z.discriminatedUnion("kind", [
		z.object({ kind: z.literal("cat"), lives: z.int().min(1).max(9) }),
		z.object({ kind: z.literal("dog"), loud: z.boolean() }),
	]),
	colour: z.enum(["red", "green"]),
	pair: z.tuple([z.boolean(), z.int()]),
	some: z.array(z.literal([1, 2])).min(1).max(3),
	maybe: z.int().nullable(),
	counts: z.record(z.string().max(5), z.boolean()),
	sizes: z.partialRecord(z.enum(["s", "m"]), z.int()),
	tree: Tree,
});
const all = { Numbers, Strings, Times, Structures };

// answers asks once for each seed, and leaves out answers that were cut.
async function answers(name, least, ask) {
	let whole = 0;
	for (const seed of seeds) {
		if (await ask(seed)) {
			whole++;
		}
	}
	console.log(name, whole);
	assert(whole >= least, `${name}: ${whole} answers`);
}

async function schemas() {
	const client = new OpenAI({ baseURL: url, apiKey: "none", maxRetries: 0 });
	for (const [name, schema] of Object.entries(all)) {
		await answers(name, 3, async (seed) => { // as zod writes it
			const json = { name, schema: z.toJSONSchema(schema) };
			const { choices } = await client.chat.completions.create({
				model: "m", seed, max_tokens: 700, ...drawn, messages: [{ role: "user", content: String(seed) }],
				response_format: { type: "json_schema", json_schema: json },
			});
			return choices[0].finish_reason === "stop" && schema.parse(JSON.parse(choices[0].message.content));
		});
	}
	const helped = { Numbers, Strings: Strings.omit({ both: true }), Times }; // the helper itself has no allOf
	for (const [name, schema] of Object.entries(helped)) { // as OpenAI's helper does
		await answers(name, 3, async (seed) => {
			try {
				const { choices } = await client.chat.completions.parse({
					model: "m", seed, max_tokens: 700, ...drawn, messages: [{ role: "user", content: String(seed) }],
					response_format: zodResponseFormat(schema, name),
				});
				return choices[0].message.parsed;
			} catch (e) {
				assert(e instanceof LengthFinishReasonError, e);
			}
		});
	}
}

const Answer = z.object({ warm: z.boolean(), degrees: z.int().min(-60).max(60) });

async function sdk() {
	const of = (baseURL) => createOpenAICompatible({ name: "amkc", baseURL, supportsStructuredOutputs: true })("m");
	for (const [name, schema] of Object.entries(all)) {
		await answers(name, 2, async (seed) => {
			const ask = { model: of(url), schema, prompt: String(seed), seed, temperature: 2, maxOutputTokens: 900 };
			try {
				return schema.parse((await generateObject({ ...ask, maxRetries: 0 })).object);
			} catch (e) {
				assert(e.finishReason === "length", e);
			}
		});
	}
	const called = [];
	const { output } = await generateText({
		model: of(agentURL), prompt: "Is it warm in Bern?", output: Output.object({ schema: Answer }),
		stopWhen: stepCountIs(3), maxRetries: 0,
		tools: {
			weather: sdkTool({
				description: "The weather of a place.", inputSchema: z.object({ place: z.string() }),
				execute: ({ place }) => { called.push(place); return "31 degrees"; },
			}),
		},
	});
	assert.deepEqual(output, { warm: true, degrees: 31 });
	assert.deepEqual(called, ["Bern"]);
}

async function agents() {
	setTracingDisabled(true);
	const client = new OpenAI({ baseURL: agentURL, apiKey: "none", maxRetries: 0 });
	for (const Kind of [OpenAIChatCompletionsModel, OpenAIResponsesModel]) {
		const called = [];
		const weather = tool({
			name: "weather", description: "The weather of a place.", parameters: z.object({ place: z.string() }),
			execute: ({ place }) => { called.push(place); return "31 degrees"; },
		});
		const agent = new Agent({
			name: "weather", instructions: "Say whether it is warm.", tools: [weather], outputType: Answer,
			model: new Kind(client, "m"),
		});
		const result = await run(agent, "Is it warm in Bern?");
		assert.deepEqual(result.finalOutput, { warm: true, degrees: 31 });
		assert.deepEqual(called, ["Bern"]);
	}
}

await schemas();
await sdk();
await agents();
