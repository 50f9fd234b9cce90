// Anthropic's JavaScript client, unmodified, against cogn.

import assert from "node:assert/strict";
import { test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";

import * as scene from "./scene.mjs";

const client = new Anthropic({ baseURL: scene.OPEN, apiKey: "anything", maxRetries: 0 });
const { ask } = scene;
const tools = [{ name: "weather", input_schema: scene.PLACE }];

for (const model of ["llama-messages", ...scene.REAL]) {
  test(`messages of ${model}, unstreamed and streamed`, async () => {
    const asked = { model, max_tokens: 8, messages: ask("Name a colour.") };
    const whole = await client.messages.create(asked);
    assert.ok(whole.content[0].text);
    assert.ok(whole.usage.output_tokens > 0);
    let text = "";
    const stream = client.messages.stream(asked).on("text", (piece) => (text += piece));
    const final = await stream.finalMessage();
    assert.ok(text);
    assert.equal(final.content.map((block) => block.text).join(""), text);
    assert.match(final.stop_reason, /^(end_turn|max_tokens)$/);
    const count = await client.messages.countTokens({ model, messages: ask("Name a colour.") });
    assert.ok(count.input_tokens > 3);
  });
}

for (const model of scene.SCRIPTED) {
  test(`tools of ${model}`, async () => {
    const asked = { model, max_tokens: 100, tools };
    const whole = await client.messages.create({ ...asked, messages: ask(scene.WEATHER) });
    assert.equal(whole.stop_reason, "tool_use");
    const call = whole.content.find((block) => block.type === "tool_use");
    assert.deepEqual(call.input, { city: "Bern" });
    const result = { type: "tool_result", tool_use_id: call.id, content: "22 degrees" };
    const turns = [
      ...ask(scene.WEATHER),
      { role: "assistant", content: whole.content },
      { role: "user", content: [result] },
    ];
    const answer = await client.messages.create({ ...asked, messages: turns });
    assert.equal(answer.content[0].text, scene.ANSWER);
    const streamed = await client.messages.stream({ ...asked, messages: ask(scene.WEATHER) }).finalMessage();
    assert.deepEqual(streamed.content.find((block) => block.type === "tool_use").input, { city: "Bern" });
  });

  test(`an interrupted stream of ${model} is an error`, async () => {
    const asked = { model, max_tokens: 100, messages: ask(scene.DYING) };
    const seen = [];
    const read = async () => {
      for await (const event of await client.messages.create({ ...asked, stream: true })) seen.push(event.type);
    };
    await assert.rejects(read, Anthropic.APIError);
    assert.ok(seen.includes("content_block_delta") && !seen.includes("message_stop"));
  });

  test(`an error of ${model} has its class`, async () => {
    const refused = client.messages.create({ model: `${model}-busy`, max_tokens: 9, messages: ask(scene.BUSY) });
    await assert.rejects(refused, Anthropic.RateLimitError);
  });
}

test("errors have their classes", async () => {
  const create = (body, by = client) =>
    by.messages.create({ model: "scripted-anthropic", max_tokens: 9, messages: ask("x"), ...body });
  await assert.rejects(create({ model: "no-such-model" }), Anthropic.NotFoundError);
  await assert.rejects(create({ messages: "x" }), Anthropic.BadRequestError);
  const stranger = new Anthropic({ baseURL: scene.CLOSED, apiKey: "sk-wrong", maxRetries: 0 });
  await assert.rejects(create({ model: "embedded" }, stranger), Anthropic.AuthenticationError);
});

test("a module answers as a model", async () => {
  const messages = ask('{"text": "two words"}');
  const answer = await client.messages.create({ model: "module:counter", max_tokens: 500, messages });
  assert.deepEqual(JSON.parse(answer.content[0].text), scene.COUNTED);
  assert.equal(answer.cogn.ok, true);
});
