// Vercel's `ai` with its OpenAI provider, unmodified, against cogn: over responses, its default,
// and over chat completions.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import { generateObject, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";

import * as scene from "./scene.mjs";

const openai = createOpenAI({ baseURL: `${scene.OPEN}/v1`, apiKey: "anything" });
const ways = { responses: (name) => openai.responses(name), chat: (name) => openai.chat(name) };
const usual = { maxRetries: 0, temperature: 0 };

for (const [way, model] of Object.entries(ways)) {
  for (const name of scene.REAL) {
    test(`text of ${name} over ${way}, unstreamed and streamed`, async () => {
      const asked = { ...usual, model: model(name), prompt: "Name a colour.", maxOutputTokens: 16 };
      const whole = await generateText(asked);
      assert.ok(whole.text);
      assert.ok(whole.usage.outputTokens > 0);
      const stream = streamText(asked);
      let text = "";
      for await (const piece of stream.textStream) text += piece;
      assert.ok(text);
      assert.equal(await stream.text, text);
      assert.match(await stream.finishReason, /^(stop|length)$/);
      assert.ok((await stream.usage).outputTokens > 0);
    });

    test(`an object of ${name} over ${way}`, async () => {
      const prompt = "I was charged twice. Label this ticket.";
      const asked = { ...usual, model: model(name), schema: scene.Ticket, prompt, maxOutputTokens: 60 };
      scene.Ticket.parse((await generateObject(asked)).object);
    });
  }

  for (const name of scene.SCRIPTED) {
    test(`tools of ${name} over ${way}`, async () => {
      const cities = [];
      const weather = tool({
        inputSchema: jsonSchema(scene.PLACE),
        execute: async ({ city }) => {
          cities.push(city);
          return "22 degrees";
        },
      });
      const asked = { ...usual, model: model(name), tools: { weather }, stopWhen: stepCountIs(3) };
      const answer = await generateText({ ...asked, prompt: scene.WEATHER });
      assert.equal(answer.text, scene.ANSWER);
      const stream = streamText({ ...asked, prompt: scene.WEATHER });
      assert.equal(await stream.text, scene.ANSWER);
      assert.deepEqual(cities, ["Bern", "Bern"]);
    });

    test(`an interrupted stream of ${name} over ${way} is an error`, async () => {
      const errors = [];
      const onError = ({ error }) => errors.push(error);
      const stream = streamText({ ...usual, model: model(name), prompt: scene.DYING, onError });
      let text = "";
      for await (const piece of stream.textStream) text += piece;
      assert.ok(text);
      assert.equal(errors.length, 1);
      assert.notEqual(await stream.finishReason, "stop");
    });
  }
}
