// The client: one call for a whole answer, one for a stream. It uses `fetch`, so it runs in browsers too.

import { ConnectionLost } from "./errors.js";
import type { Json } from "./field.js";
import { envelopeOf, Stream, type Envelope, type Place } from "./stream.js";

export interface Settings {
  /** The key that the server knows us by. */
  key?: string;
  /** In place of the global `fetch`. */
  fetch?: typeof fetch;
}

export class Client {
  #base: string;
  #key: string | undefined;
  #fetch: typeof fetch;

  constructor(baseUrl: string, settings: Settings = {}) {
    this.#base = new URL(baseUrl).href.replace(/\/$/, "");
    this.#key = settings.key;
    this.#fetch = settings.fetch ?? ((...call) => globalThis.fetch(...call));
  }

  /** Runs a module and returns its envelope, with `ok` true or false. */
  async execute(module: string, input: Json, options?: { [key: string]: Json }): Promise<Envelope> {
    try {
      return await envelopeOf(await this.#post(module, body(input, options), "application/json"));
    } catch (cause) {
      if (cause instanceof TypeError) throw new ConnectionLost("the server cannot be reached", { cause });
      throw cause;
    }
  }

  /** Runs a module and yields its chunks while they are written. Nothing is sent before the first event
   * is asked for. */
  executeStream(module: string, input: Json, options?: { [key: string]: Json }): Stream {
    return new Stream((place, signal) =>
      this.#post(module, body(input, options, place), "text/event-stream", signal),
    );
  }

  #post(module: string, body: object, accept: string, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { "content-type": "application/json", accept };
    if (this.#key !== undefined) headers["authorization"] = `Bearer ${this.#key}`;
    const url = `${this.#base}/v1/modules/${encodeURIComponent(module)}/execute`;
    return this.#fetch(url, { method: "POST", headers, body: JSON.stringify(body), signal: signal ?? null });
  }
}

function body(input: Json, options?: { [key: string]: Json }, place?: Place): object {
  return {
    input,
    ...(options === undefined ? {} : { _options: options }),
    ...(place === undefined ? {} : { _recovery: place }),
  };
}
