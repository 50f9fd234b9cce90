// The client: one call for a whole answer, one for a stream. It uses `fetch`, so it runs in browsers too.

import type { Envelope } from "./envelope.js";
import { ConnectionLost } from "./errors.js";
import type { Json } from "./field.js";
import { NotNow, Retries, sleep } from "./retry.js";
import { Stream, type Place } from "./stream.js";
import { Answer } from "./transport.js";

export interface Settings {
  /** The caller's key. */
  key?: string;
  /** How long a stream may send nothing, 60 seconds by default; heartbeats count as data. */
  timeoutMs?: number;
  /** How long a whole answer, which has no heartbeats, may take; ten minutes by default. */
  answerTimeoutMs?: number;
  /** How often in a row a call is retried; by default as often as the server allows, or three times. */
  maxRetries?: number;
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch;
}

/** Settings of a single call. */
export interface Call {
  /** Replaces the random one. Retries do not run the module again: every try has the same key. */
  idempotencyKey?: string;
  /** Cancels the call; it then throws the signal's reason. */
  signal?: AbortSignal;
}

type Options = { [key: string]: Json };

export class Client {
  #base: string;
  #settings: Settings;

  constructor(baseUrl: string, settings: Settings = {}) {
    this.#base = new URL(baseUrl).href.replace(/\/$/, "");
    this.#settings = settings;
  }

  /** Runs a module and returns its envelope, with `ok` true or false. */
  async execute(module: string, input: Json, options?: Options, call: Call = {}): Promise<Envelope> {
    const retries = new Retries(this.#settings.maxRetries);
    const post = this.#poster(module, "application/json", call);
    for (;;) {
      try {
        const silenceMs = this.#settings.answerTimeoutMs ?? 600_000;
        return await (await post(body(input, options), silenceMs, call.signal)).envelope();
      } catch (lost) {
        if (!(lost instanceof ConnectionLost)) throw lost;
        const pauseMs = retries.pauseMs(lost);
        if (pauseMs !== undefined) await sleep(pauseMs, call.signal);
        else if (lost instanceof NotNow && lost.said !== undefined) return lost.said as Envelope;
        else throw lost;
      }
    }
  }

  /** Runs a module and yields its chunks while they are written. Nothing is sent before the first event
   * is requested. */
  executeStream(module: string, input: Json, options?: Options, call: Call = {}): Stream {
    const post = this.#poster(module, "text/event-stream", call);
    const open = (place: Place | undefined, signal: AbortSignal) =>
      post(body(input, options, place), this.#settings.timeoutMs ?? 60_000, signal);
    return new Stream(open, new Retries(this.#settings.maxRetries), call.signal);
  }

  /** Sends the tries of one call, all under the same idempotency key. */
  #poster(module: string, accept: string, call: Call) {
    const { key, fetch: own } = this.#settings;
    const fetch: typeof globalThis.fetch = own ?? ((...request) => globalThis.fetch(...request));
    const url = `${this.#base}/v1/modules/${encodeURIComponent(module)}/execute`;
    const headers = new Headers({ "content-type": "application/json", accept });
    headers.set("idempotency-key", call.idempotencyKey ?? randomKey());
    if (key !== undefined) headers.set("authorization", `Bearer ${key}`);
    return (body: object, silenceMs: number, signal: AbortSignal | undefined): Promise<Answer> => {
      const request = { method: "POST", headers, body: JSON.stringify(body) };
      return Answer.to((signal) => fetch(url, { ...request, signal }), silenceMs, signal);
    };
  }
}

function body(input: Json, options?: Options, place?: Place): object {
  return {
    input,
    ...(options === undefined ? {} : { _options: options }),
    ...(place === undefined ? {} : { _recovery: place }),
  };
}

/** Not `randomUUID`: browsers have it on secure pages only. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
