// The client against a real server: whole answers, streams, cuts at any byte, a killed server.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client, ConnectionLost } from "../src/index.js";
import { stepsOf } from "../src/field.js";
import { DATA, INPUT, kindsOf, MODULE, REPLY } from "./sample.js";
import { Proxy, Server } from "./server.js";

let server: Server;
before(async () => {
  server = await Server.with(REPLY, 1);
});
after(() => server.close());

const client = (url = server.url) => new Client(url);

/** Deterministic pseudo-random numbers. */
function dice(seed: number): (from: number, to: number) => number {
  let state = seed;
  return (from, to) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return from + (state % (to - from));
  };
}

test("execute returns an envelope", async () => {
  const envelope = await client().execute(MODULE, INPUT);
  assert.equal(envelope.ok, true);
  assert.deepEqual(envelope.data, DATA);
});

test("a stream folds to the answer of execute", async () => {
  const whole = await client().execute(MODULE, INPUT);
  const stream = client().executeStream(MODULE, INPUT);
  const kinds = await kindsOf(stream);
  assert.equal(kinds[0], "meta");
  assert.equal(kinds.at(-1), "final");
  assert.deepEqual(stream.data, DATA);
  assert.deepEqual(stream.envelope?.data, DATA);
  assert.deepEqual(Object.keys(stream.envelope), Object.keys(whole));
  assert.equal(stream.recoveries, 0);
});

test("cuts at any byte neither lose nor duplicate chunks", async () => {
  const roll = dice(7);
  const runs = await server.runs();
  for (let round = 0; round < 12; round += 1) {
    const cuts = [roll(1, 3000), roll(1, 3000), roll(1, 3000)];
    const proxy = await Proxy.before(server, cuts);
    const stream = client(proxy.url).executeStream(MODULE, INPUT);
    const seqs: number[] = [];
    for await (const event of stream) if (event.kind === "chunk") seqs.push(event.body.chunk.seq);
    proxy.close();
    assert.deepEqual(stream.data, DATA, `cuts ${cuts}`);
    assert.deepEqual(stream.envelope?.data, DATA, `cuts ${cuts}`);
    assert.deepEqual(seqs, Array.from(seqs, (_, at) => at + 1), `cuts ${cuts}`);
  }
  assert.equal((await server.runs()) - runs, 12, "each stream has one run");
});

test("an invalid input returns an error envelope", async () => {
  const stream = client().executeStream(MODULE, { code: 7 });
  assert.deepEqual(await kindsOf(stream), ["error"]);
  assert.equal(stream.envelope?.ok, false);
  const unknown = await client().execute("no-such-module", {});
  assert.equal(unknown.error?.code, "E4006");
});

test("an unreachable server throws ConnectionLost", async () => {
  const proxy = await Proxy.before(server, Array.from({ length: 10 }, () => 0));
  await assert.rejects(kindsOf(client(proxy.url).executeStream(MODULE, INPUT)), ConnectionLost);
  await assert.rejects(new Client(proxy.url, { maxRetries: 0 }).execute(MODULE, INPUT), ConnectionLost);
  assert.equal(proxy.requests.length, 5);
  proxy.close();
});

test("a stream resumes after a killed server restarts", async () => {
  const mortal = await Server.with(REPLY, 20);
  const stream = client(mortal.url).executeStream(MODULE, INPUT);
  let received = 0;
  for await (const event of stream) {
    if (event.kind !== "chunk") continue;
    received += 1;
    if (received === 3) {
      await mortal.kill();
      await mortal.start();
    }
  }
  assert.deepEqual(stream.envelope?.data, DATA);
  assert.deepEqual(stream.data, DATA);
  assert.ok(stream.recoveries > 0);
  await mortal.close();
});

test("every field path syntax is parsed", () => {
  assert.deepEqual(stepsOf("data"), ["data"]);
  assert.deepEqual(stepsOf("data.items[0].label"), ["data", "items", 0, "label"]);
  assert.deepEqual(stepsOf('data["a.b"][2]["]"].c'), ["data", "a.b", 2, "]", "c"]);
  for (const wrong of ["", ".", "data[", "data[x]", 'data["a']) assert.throws(() => stepsOf(wrong), RangeError);
});
