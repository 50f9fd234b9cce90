// Faults between a client and its server: the caller sees none of them, or sees the right error.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";

import { Client, ConnectionLost, ProtocolError, type Envelope } from "../src/index.js";
import { NotNow, notNow, Retries } from "../src/retry.js";
import { Sha256 } from "../src/sha256.js";
import { frames } from "../src/sse.js";
import { DATA, INPUT, kindsOf, MODULE, REPLY } from "./sample.js";
import { answer, Hold, Proxy, Say, sent, Server, STREAM_HEAD, streamed, type Fault, type Told } from "./server.js";

const LIMITED = {
  ok: false,
  meta: { confidence: 0, risk: "high", explain: "60/m" },
  error: { code: "E4002", message: "60/m", recoverable: true, details: { retry_after_ms: 10 } },
};
const PAGE = "<html>no upstream</html>";
const LIMITED_ANSWER = answer("429 Too Many Requests", LIMITED, "retry-after: 1\r\n");
const BAD_GATEWAY = answer("502 Bad Gateway", PAGE);
const BEGUN = { ok: true, streaming: true, session_id: "sess_1", meta: {} };
const META: Told = ["meta", BEGUN];
const FINAL: Told = ["final", { final: true, meta: {}, data: { text: "ab" }, usage: { total: 3 } }];
const A = chunk(1, "a", { offset: 1, hash: "ca9781" });
const B = chunk(2, "b", { offset: 2, hash: "fb8e20" });

function resumed(seq: number): Told {
  return ["meta", { ...BEGUN, resumed: true, resume_from_seq: seq }];
}

function chunk(seq: number, delta: string, checkpoint?: object): Told {
  return ["chunk", { chunk: { seq, type: "delta", field: "data.text", delta, checkpoint } }];
}

let server: Server;
before(async () => {
  server = await Server.with(REPLY, 1);
});
after(() => server.close());

/** Runs `use` with these faults between a client and the real server. */
async function between(faults: Fault[], use: (proxy: Proxy) => Promise<void>): Promise<void> {
  const proxy = await Proxy.before(server, faults);
  try {
    await use(proxy);
  } finally {
    proxy.close();
  }
}

test("a temporarily refused recovery is retried", async () => {
  const unavailable = answer("503 Service Unavailable", PAGE, "retry-after: 0\r\n");
  for (const refusal of [LIMITED_ANSWER, BAD_GATEWAY, unavailable, answer("504 Gateway Timeout", PAGE)]) {
    await between([900, refusal, refusal], async ({ url }) => {
      const stream = new Client(url).executeStream(MODULE, INPUT);
      assert.ok(!(await kindsOf(stream)).includes("error"));
      assert.deepEqual(stream.data, DATA);
      assert.equal(stream.recoveries, 3);
    });
  }
});

test("a temporarily refused first try is retried", async () => {
  await between([LIMITED_ANSWER, BAD_GATEWAY], async ({ url }) => {
    assert.equal((await kindsOf(new Client(url).executeStream(MODULE, INPUT))).at(-1), "final");
  });
  await between([LIMITED_ANSWER, BAD_GATEWAY], async ({ url }) => {
    assert.deepEqual((await new Client(url).execute(MODULE, INPUT)).data, DATA);
  });
});

test("a lost answer does not start a second run", async () => {
  const runs = await server.runs();
  await between([1, 20, 60], async ({ url }) => {
    assert.equal((await kindsOf(new Client(url).executeStream(MODULE, INPUT))).at(-1), "final");
  });
  assert.equal((await server.runs()) - runs, 1);
  await between([1, 60, 400], async ({ url }) => {
    assert.deepEqual((await new Client(url).execute(MODULE, INPUT)).data, DATA);
  });
  assert.equal((await server.runs()) - runs, 2);
});

test("an idempotency key of the caller is used", async () => {
  const runs = await server.runs();
  const client = new Client(server.url);
  for (let round = 0; round < 2; round += 1) {
    await client.execute(MODULE, INPUT, undefined, { idempotencyKey: "order-4711" });
    await kindsOf(client.executeStream(MODULE, INPUT, undefined, { idempotencyKey: "order-4712" }));
  }
  assert.equal((await server.runs()) - runs, 2);
});

test("a stalled connection times out", async () => {
  for (const bytes of [0, 60, 900]) {
    await between([new Hold(bytes)], async ({ url }) => {
      const stream = new Client(url, { timeoutMs: 1000 }).executeStream(MODULE, INPUT);
      await kindsOf(stream);
      assert.deepEqual(stream.data, DATA);
      assert.ok(stream.recoveries > 0);
    });
  }
  await between([new Hold(60)], async ({ url }) => {
    assert.deepEqual((await new Client(url, { answerTimeoutMs: 1000 }).execute(MODULE, INPUT)).data, DATA);
  });
});

test("a closed stream does not reconnect", async () => {
  await between([new Hold(900)], async (proxy) => {
    const stream = new Client(proxy.url).executeStream(MODULE, INPUT);
    let chunks = 0;
    for await (const event of stream) {
      // While the reader waits for the next chunk, which is never sent.
      if (event.kind === "chunk" && (chunks += 1) === 1) setTimeout(() => stream.close(), 100);
      assert.notEqual(event.kind, "final");
    }
    assert.deepEqual(await kindsOf(stream), []);
    assert.equal(proxy.requests.length, 1);
  });
});

test("a signal cancels a call in every wait", async () => {
  const late = { ...LIMITED, error: { ...LIMITED.error, details: { retry_after_ms: 60_000 } } };
  for (const fault of [new Hold(0), new Hold(900), answer("429 Too Many Requests", late)]) {
    await between([fault, fault], async (proxy) => {
      for (const call of [
        (signal: AbortSignal) => kindsOf(new Client(proxy.url).executeStream(MODULE, INPUT, undefined, { signal })),
        (signal: AbortSignal) => new Client(proxy.url).execute(MODULE, INPUT, undefined, { signal }),
      ]) {
        const caller = new AbortController();
        const reason = new Error("enough");
        setTimeout(() => caller.abort(reason), 200);
        await assert.rejects(call(caller.signal), reason);
        await assert.rejects(call(caller.signal), reason);
      }
      assert.equal(proxy.requests.length, 2);
    });
  }
});

test("a failed run returns the same envelope from both calls and is not retried", async (t) => {
  const error = { code: "E5001", message: "no such file", recoverable: false, details: { at: 3 } };
  const meta = { confidence: 0.5, risk: "low", explain: "Nothing there." };
  const failing = await Server.with(JSON.stringify({ ok: false, meta, error }), 0);
  t.after(() => failing.close());
  const client = new Client(failing.url);
  const whole = await client.execute(MODULE, INPUT);
  const stream = client.executeStream(MODULE, INPUT);
  await kindsOf(stream);
  assert.equal(whole.error?.code, "E5001");
  assert.deepEqual(stream.envelope?.error, whole.error);
  assert.equal(stream.envelope?.meta?.["explain"], whole.meta?.["explain"]);
  assert.equal(await failing.runs(), 2);
});

test("a persistent refusal is the answer", async () => {
  await between(Array(8).fill(answer("429 Too Many Requests", LIMITED)), async (proxy) => {
    const stream = new Client(proxy.url).executeStream(MODULE, INPUT);
    assert.deepEqual(await kindsOf(stream), ["error"]);
    assert.deepEqual(stream.envelope, LIMITED);
    assert.equal(proxy.requests.length, 4);
    assert.deepEqual(await new Client(proxy.url).execute(MODULE, INPUT), LIMITED);
    assert.equal(proxy.requests.length, 8);
    const keys = proxy.requests.map(({ headers }) => headers["idempotency-key"]);
    assert.deepEqual([keys, keys.slice(0, 4), keys.slice(4)].map((some) => new Set(some).size), [2, 1, 1]);
  });
  await between(Array(4).fill(BAD_GATEWAY), async ({ url }) => {
    const client = new Client(url, { maxRetries: 1 });
    await assert.rejects(client.execute(MODULE, INPUT), ConnectionLost);
    await assert.rejects(kindsOf(client.executeStream(MODULE, INPUT)), ConnectionLost);
  });
});

test("a permanent refusal is reported at once", async () => {
  const wrong = { ok: false, error: { code: "E1001", message: "text is missing", recoverable: true } };
  const failed = { ok: false, error: { code: "E4001", message: "no back-end", recoverable: true } };
  for (const [refusal, envelope] of [
    [answer("400 Bad Request", wrong), wrong],
    [answer("401 Unauthorized", wrong), wrong],
    // The answer of a run: a retry under the same key would return the same.
    [answer("503 Service Unavailable", failed, "x-cognitive-session: sess_1\r\n"), failed],
  ] as [Say, object][]) {
    await between([refusal, refusal], async (proxy) => {
      assert.deepEqual(await kindsOf(new Client(proxy.url).executeStream(MODULE, INPUT)), ["error"]);
      assert.deepEqual(await new Client(proxy.url).execute(MODULE, INPUT), envelope);
      assert.equal(proxy.requests.length, 2);
    });
  }
  const missing = answer("404 Not Found", PAGE);
  await between([missing, missing], async (proxy) => {
    await assert.rejects(kindsOf(new Client(proxy.url).executeStream(MODULE, INPUT)), ProtocolError);
    await assert.rejects(new Client(proxy.url).execute(MODULE, INPUT), ProtocolError);
    assert.equal(proxy.requests.length, 2);
  });
});

test("heartbeats reset the read timeout", async () => {
  const pieces = [STREAM_HEAD, ...Array<string>(10).fill(": hb\n\n"), sent(META, A, B, FINAL)];
  await between([new Say(pieces, 250)], async ({ url }) => {
    const stream = new Client(url, { timeoutMs: 2000 }).executeStream(MODULE, INPUT);
    assert.equal((await kindsOf(stream)).at(-1), "final");
    assert.equal(stream.recoveries, 0);
  });
});

test("a mismatched continuation is discarded and the new stream is used", async () => {
  const checkpoint = { offset: 1, hash: "ca9781" };
  for (const other of [
    chunk(2, "b", { offset: 2, hash: "000000" }),
    chunk(3, "b", { offset: 2, hash: "fb8e20" }),
    chunk(2, "b", { offset: 7, hash: "fb8e20" }),
  ]) {
    const faults = [streamed(META, A), streamed(resumed(2), other), streamed(META, A, B, FINAL)];
    await between(faults, async (proxy) => {
      const stream = new Client(proxy.url).executeStream(MODULE, INPUT);
      const expected = ["meta", "chunk", "meta", "restart", "meta", "chunk", "chunk", "final"];
      assert.deepEqual(await kindsOf(stream), expected);
      assert.deepEqual(stream.data, { text: "ab" });
      const places = proxy.requests.map(({ body }) => body._recovery);
      const place = { session_id: "sess_1", last_seq: 1, last_checkpoint: checkpoint };
      assert.deepEqual(places, [undefined, place, undefined]);
    });
  }
});

test("a restarted stream emits a restart event", async () => {
  for (const other of [["meta", { ...BEGUN, session_id: "sess_2" }], META] as Told[]) {
    await between([streamed(META, A), streamed(other, A, B, FINAL)], async ({ url }) => {
      const stream = new Client(url).executeStream(MODULE, INPUT);
      assert.deepEqual(await kindsOf(stream), ["meta", "chunk", "restart", "meta", "chunk", "chunk", "final"]);
      assert.deepEqual(stream.data, { text: "ab" });
      assert.deepEqual(stream.envelope, { ok: true, meta: {}, data: { text: "ab" }, _usage: { total: 3 } });
    });
  }
});

test("a final event alone completes a recovered stream", async () => {
  await between([streamed(META, A, B), streamed(resumed(3), FINAL)], async ({ url }) => {
    const stream = new Client(url).executeStream(MODULE, INPUT);
    assert.deepEqual(await kindsOf(stream), ["meta", "chunk", "chunk", "meta", "final"]);
  });
});

test("repeated chunks are not progress", async () => {
  const astray = streamed(META, A, chunk(2, "b", { offset: 2, hash: "000000" }));
  await between(Array(9).fill(astray), async (proxy) => {
    await assert.rejects(kindsOf(new Client(proxy.url).executeStream(MODULE, INPUT)), ConnectionLost);
    assert.equal(proxy.requests.length, 4);
  });
});

test("progress resets the retry count", async () => {
  const more = [2, 3, 4, 5, 6].map((seq) => streamed(resumed(seq), chunk(seq, "x")));
  await between([streamed(META, A), ...more, streamed(FINAL)], async ({ url }) => {
    const stream = new Client(url, { maxRetries: 1 }).executeStream(MODULE, INPUT);
    assert.equal((await kindsOf(stream)).at(-1), "final");
    assert.deepEqual(stream.data, { text: "axxxxx" });
  });
});

test("a recoverable error is retried as often as the server allows", async () => {
  const recovery = { last_seq: 1, retry_after_ms: 1, max_retries: 2 };
  const error = { code: "E2010", message: "cut", recoverable: true, recovery };
  const broke: Told = ["error", { ok: false, streaming: true, session_id: "sess_1", error }];
  const rest = [streamed(resumed(2), broke), streamed(resumed(2), B, FINAL)];
  await between([streamed(META, A, broke), ...rest], async ({ url }) => {
    const stream = new Client(url).executeStream(MODULE, INPUT);
    assert.deepEqual(await kindsOf(stream), ["meta", "chunk", "meta", "meta", "chunk", "final"]);
  });
  await between([streamed(META, A, broke), ...Array<Say>(5).fill(streamed(resumed(2), broke))], async (proxy) => {
    const stream = new Client(proxy.url).executeStream(MODULE, INPUT);
    assert.deepEqual(await kindsOf(stream), ["meta", "chunk", "meta", "meta", "error"]);
    assert.deepEqual(stream.envelope?.error, error);
    assert.equal(proxy.requests.length, 3);
  });
});

test("a malformed event raises a protocol error", async () => {
  const snapshot = { seq: 1, type: "snapshot", field: "data[", data: 1 };
  for (const event of [
    ["chunk", {}],
    ["chunk", { chunk: 7 }],
    ["chunk", { chunk: snapshot }],
    ["meta", {}],
    ["error", {}],
  ] as Told[]) {
    await between([streamed(event)], async ({ url }) => {
      await assert.rejects(kindsOf(new Client(url).executeStream(MODULE, INPUT)), ProtocolError);
    });
  }
});

test("pauses follow the server within bounds or back off", () => {
  const refusal = (ms: number) => new NotNow("later", undefined, ms);
  assert.equal(new Retries().pauseMs(refusal(2500)), 2500);
  assert.equal(new Retries().pauseMs(refusal(3_600_000)), 60_000);
  // A retry delay of zero or less still leads to a pause.
  for (const ms of [0, -1]) assert.ok((new Retries().pauseMs(refusal(ms)) ?? 0) >= 100);
  const retries = new Retries(50);
  for (let at = 0; at < 50; at += 1) {
    const full = Math.min(200 * 5 ** at, 10_000);
    const pause = retries.pauseMs(new ConnectionLost("cut"));
    assert.ok(pause !== undefined && full / 2 <= pause && pause <= full, `${at}: ${pause}`);
  }
  assert.equal(retries.pauseMs(new ConnectionLost("cut")), undefined);
  assert.equal(new Retries(0).pauseMs(refusal(1)), undefined);
});

test("retry after is read from the body or the header", () => {
  const waitMs = (status: number, after: string, said?: Envelope) =>
    notNow(new Response(null, { status, headers: { "retry-after": after } }), said)?.waitMs;
  assert.equal(waitMs(429, "9", LIMITED), 10);
  assert.equal(waitMs(503, "9"), 9000);
  assert.ok((waitMs(503, "Wed, 21 Oct 2015 07:28:00 GMT") ?? 1) < 0);
  assert.equal(waitMs(503, "soon"), undefined);
  assert.equal(notNow(new Response(null, { status: 500 }), undefined), undefined);
});

test("events are parsed with any split of their bytes and any line ending", async () => {
  const text = "event: a\ndata: Größe\ndata:𝄞\nid: 3\n\n: hb\n\ndata\n\nevent: cut\ndata: x\n";
  const expected = [
    { event: "a", data: "Größe\n𝄞" },
    { event: "message", data: "" },
  ];
  async function* pieces(bytes: Uint8Array, size: number) {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
  for (const ending of ["\n", "\r\n"]) {
    const bytes = new TextEncoder().encode(text.replaceAll("\n", ending));
    for (let size = 1; size <= bytes.length; size += 1) {
      const found = [];
      for await (const frame of frames(pieces(bytes, size))) found.push(frame);
      assert.deepEqual(found, expected, `${size} bytes at a time`);
    }
  }
});

test("an incremental hash equals the hash of all bytes", () => {
  const bytes = Uint8Array.from({ length: 300 }, (_, at) => at * 7);
  for (let size = 1; size <= 150; size += 1) {
    const hash = new Sha256();
    for (let at = 0; at < bytes.length; at += size) {
      assert.equal(hash.hex(), createHash("sha256").update(bytes.subarray(0, at)).digest("hex"));
      hash.update(bytes.subarray(at, at + size));
    }
    assert.equal(hash.bytes, bytes.length);
    assert.equal(hash.hex(), createHash("sha256").update(bytes).digest("hex"));
  }
});
