// The client: one call for a whole answer, one for a stream. It uses `fetch`, so it runs in browsers too.

import type { Envelope } from "./envelope.js";
import { ConnectionLost } from "./errors.js";
import type { Json } from "./field.js";
import { NotNow, Retries, sleep } from "./retry.js";
import { Stream, type Place } from "./stream.js";
import { Answer } from "./transport.js";

export interface Settings {
  /** The key that the server knows us by. */
  key?: string;
  /** How long a stream may be silent, 60 seconds if left out; heartbeats count as a sound. */
  timeoutMs?: number;
  /** How long a whole answer, which has no heartbeats, may take; ten minutes if left out. */
  answerTimeoutMs?: number;
  /** How often in a row a call is tried again; left out, the server decides, or it is three times. */
  maxRetries?: number;
  /** In place of the global `fetch`. */
  fetch?: typeof fetch;
}

/** What one call may have of its own. */
export interface Call {
  /** In place of a random one. However often a call has to ask, the module runs once under its key. */
  idempotencyKey?: string;
  /** Gives the call up; it then throws the signal's reason. */
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
   * is asked for. */
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

/** `randomUUID` would do, but browsers have it on secure pages only. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
