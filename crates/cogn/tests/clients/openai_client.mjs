// OpenAI's JavaScript client, unmodified, against cogn.

import assert from "node:assert/strict";
import { test } from "node:test";

import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";

import * as scene from "./scene.mjs";

const client = new OpenAI({ baseURL: `${scene.OPEN}/v1`, apiKey: "anything", maxRetries: 0 });
const { ask } = scene;
const tools = [{ type: "function", function: { name: "weather", parameters: scene.PLACE } }];

for (const model of scene.REAL) {
  test(`chat with ${model}, unstreamed and streamed`, async () => {
    const asked = { model, messages: ask("Name a colour."), max_tokens: 8, temperature: 0 };
    const whole = await client.chat.completions.create(asked);
    assert.ok(whole.choices[0].message.content);
    assert.equal(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens);
    const stream = client.chat.completions.stream({ ...asked, stream_options: { include_usage: true } });
    let text = "";
    for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
    const final = await stream.finalChatCompletion();
    assert.ok(text);
    assert.equal(final.choices[0].message.content, text);
    assert.ok(final.usage.completion_tokens > 0);
  });

  test(`an answer of ${model} matches its schema`, async () => {
    const answer = await client.chat.completions.parse({
      model,
      messages: ask("I was charged twice. Label this ticket."),
      response_format: zodResponseFormat(scene.Ticket, "ticket"),
      max_tokens: 60,
      temperature: 0,
    });
    scene.Ticket.parse(answer.choices[0].message.parsed);
  });

  test(`responses of ${model}, unstreamed and streamed`, async () => {
    const asked = { model, input: "Name a colour.", max_output_tokens: 16 };
    const whole = await client.responses.create(asked);
    assert.ok(whole.output_text);
    const types = [];
    let text = "";
    for await (const event of await client.responses.create({ ...asked, stream: true })) {
      types.push(event.type);
      if (event.type === "response.output_text.delta") text += event.delta;
    }
    assert.ok(text);
    assert.equal(types[0], "response.created");
    assert.match(types.at(-1), /^response\.(completed|incomplete)$/);
  });
}

for (const model of scene.SCRIPTED) {
  test(`tools of ${model}`, async () => {
    const messages = ask(scene.WEATHER);
    const whole = await client.chat.completions.create({ model, messages, tools });
    const call = whole.choices[0].message.tool_calls[0];
    assert.equal(whole.choices[0].finish_reason, "tool_calls");
    assert.deepEqual(JSON.parse(call.function.arguments), { city: "Bern" });
    messages.push(whole.choices[0].message, { role: "tool", tool_call_id: call.id, content: "22 degrees" });
    const answer = await client.chat.completions.create({ model, messages, tools });
    assert.equal(answer.choices[0].message.content, scene.ANSWER);
    const stream = client.chat.completions.stream({ model, messages: ask(scene.WEATHER), tools });
    const streamed = (await stream.finalChatCompletion()).choices[0].message.tool_calls[0];
    assert.deepEqual(JSON.parse(streamed.function.arguments), { city: "Bern" });
  });

  test(`an interrupted stream of ${model} is an error`, async () => {
    const stream = await client.chat.completions.create({ model, messages: ask(scene.DYING), stream: true });
    let text = "";
    const read = async () => {
      for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
    };
    await assert.rejects(read, OpenAI.APIError);
    assert.ok(text);
  });

  test(`an error of ${model} has its class`, async () => {
    const refused = client.chat.completions.create({ model: `${model}-busy`, messages: ask(scene.BUSY) });
    await assert.rejects(refused, OpenAI.RateLimitError);
  });
}

test("errors have their classes", async () => {
  const messages = ask("x");
  const create = (body) => client.chat.completions.create({ model: "scripted-openai", messages, ...body });
  await assert.rejects(create({ model: "no-such-model" }), OpenAI.NotFoundError);
  await assert.rejects(create({ messages: "x" }), OpenAI.BadRequestError);
  const stranger = new OpenAI({ baseURL: `${scene.CLOSED}/v1`, apiKey: "sk-wrong", maxRetries: 0 });
  await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
});

test("models and modules", async () => {
  const listed = (await client.models.list()).data.map((model) => model.id);
  assert.ok(["llama", "embedded", "module:counter"].every((known) => listed.includes(known)));
  const model = "module:counter";
  const answer = await client.chat.completions.create({ model, messages: ask('{"text": "two words"}') });
  assert.deepEqual(JSON.parse(answer.choices[0].message.content), scene.COUNTED);
  assert.equal(answer.cogn.ok, true);
});
