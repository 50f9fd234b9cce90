// The client against a real server: whole answers, streams, cuts at any byte, a killed server.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client, ConnectionLost, type Stream } from "../src/index.js";
import { stepsOf } from "../src/field.js";
import { Cutter, Server } from "./server.js";

const SENTENCES = Array.from({ length: 24 }, (_, number) => `sentence ${number} of the answer.`).join(" ");
const DATA = { issues: [], rationale: `Größe, 𝄞 and "quotes": ${SENTENCES}` };
const META = { confidence: 0.9, risk: "low", explain: "Looks fine." };
const REPLY = JSON.stringify({ ok: true, meta: META, data: DATA });
const INPUT = { code: "def f(): pass", language: "python" };
const MODULE = "code-reviewer";

let server: Server;
before(async () => {
  server = await Server.with(REPLY, 1);
});
after(() => server.close());

const client = (url = `http://127.0.0.1:${server.port}`) => new Client(url);

async function kindsOf(stream: Stream): Promise<string[]> {
  const kinds: string[] = [];
  for await (const event of stream) kinds.push(event.kind);
  return kinds;
}

/** The same numbers each time. */
function dice(seed: number): (from: number, to: number) => number {
  let state = seed;
  return (from, to) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return from + (state % (to - from));
  };
}

test("a whole answer is an envelope", async () => {
  const envelope = await client().execute(MODULE, INPUT);
  assert.equal(envelope.ok, true);
  assert.deepEqual(envelope.data, DATA);
});

test("a stream folds to the whole answer", async () => {
  const stream = client().executeStream(MODULE, INPUT);
  const kinds = await kindsOf(stream);
  assert.equal(kinds[0], "meta");
  assert.equal(kinds.at(-1), "final");
  assert.deepEqual(stream.data, DATA);
  assert.deepEqual(stream.envelope?.data, DATA);
  assert.equal(stream.recoveries, 0);
});

test("cuts at any byte lose and double nothing", async () => {
  const roll = dice(7);
  for (let round = 0; round < 12; round += 1) {
    const cuts = [roll(150, 3000), roll(150, 3000), roll(150, 3000)];
    const cutter = await Cutter.before(server, cuts);
    const stream = client(cutter.url).executeStream(MODULE, INPUT);
    const seqs: number[] = [];
    for await (const event of stream) if (event.kind === "chunk") seqs.push(event.body.chunk.seq);
    cutter.close();
    assert.deepEqual(stream.data, DATA, `cuts ${cuts}`);
    assert.deepEqual(stream.envelope?.data, DATA, `cuts ${cuts}`);
    assert.deepEqual(seqs, Array.from(seqs, (_, at) => at + 1), `cuts ${cuts}`);
  }
});

test("a bad input is an envelope too", async () => {
  const stream = client().executeStream(MODULE, { code: 7 });
  assert.deepEqual(await kindsOf(stream), ["error"]);
  assert.equal(stream.envelope?.ok, false);
  const unknown = await client().execute("no-such-module", {});
  assert.equal(unknown.error?.code, "E4006");
});

test("a server that is not there is an error", async () => {
  const cutter = await Cutter.before(server, Array.from({ length: 10 }, () => 0));
  await assert.rejects(kindsOf(client(cutter.url).executeStream(MODULE, INPUT)), ConnectionLost);
  await assert.rejects(client(cutter.url).execute(MODULE, INPUT), ConnectionLost);
  cutter.close();
});

test("a killed server goes on after its restart", async () => {
  const mortal = await Server.with(REPLY, 20);
  const stream = client(`http://127.0.0.1:${mortal.port}`).executeStream(MODULE, INPUT);
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

test("every spelling of a field is read", () => {
  assert.deepEqual(stepsOf("data"), ["data"]);
  assert.deepEqual(stepsOf("data.items[0].label"), ["data", "items", 0, "label"]);
  assert.deepEqual(stepsOf('data["a.b"][2]["]"].c'), ["data", "a.b", 2, "]", "c"]);
  for (const wrong of ["", ".", "data[", "data[x]", 'data["a']) assert.throws(() => stepsOf(wrong), RangeError);
});
