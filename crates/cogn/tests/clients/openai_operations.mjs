// Unary operations of OpenAI's JavaScript client and Vercel's `ai`: embeddings, speech and transcription.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import { cosineSimilarity, embedMany } from "ai";
import OpenAI, { toFile } from "openai";

const baseURL = `${process.env.OPEN_URL}/v1`;
const client = new OpenAI({ baseURL, apiKey: "anything", maxRetries: 0 });
const texts = ["A cat sits on the mat.", "A kitten rests on a rug.", "Interest rates rose in March."];

test("embeddings", async () => {
  const made = await client.embeddings.create({ model: "all-minilm-l6-v2", input: texts });
  assert.deepEqual(made.data.map((item) => item.embedding.length), [384, 384, 384]);
  const model = createOpenAI({ baseURL, apiKey: "anything" }).embedding("all-minilm-l6-v2");
  const { embeddings } = await embedMany({ model, values: texts, maxRetries: 0 });
  const near = cosineSimilarity(embeddings[0], embeddings[1]);
  assert.ok(near > cosineSimilarity(embeddings[0], embeddings[2]) + 0.3);
  assert.ok(Math.abs(embeddings[0][0] - made.data[0].embedding[0]) < 1e-6);
});

test("a spoken sentence is transcribed back", async () => {
  const input = "The meeting is on Monday morning.";
  const asked = { model: "tts-1", voice: "alloy", input, response_format: "wav" };
  const spoken = await client.audio.speech.create(asked);
  const file = await toFile(Buffer.from(await spoken.arrayBuffer()), "said.wav", { type: "audio/wav" });
  const heard = await client.audio.transcriptions.create({ model: "whisper-1", file, language: "en" });
  assert.equal(heard.text, "the meeting is on monday morning");
});
