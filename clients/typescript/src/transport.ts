// One HTTP exchange with the server, using only `fetch`. It is aborted by the caller, or when no data arrives
// for too long.

import type { Envelope } from "./envelope.js";
import { ConnectionLost, ProtocolError } from "./errors.js";
import { notNow } from "./retry.js";

const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** A timer with a longer delay fires at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** A connection with a read timeout. */
class Line {
  #hangUp = new AbortController();
  #silenceMs: number;
  #caller: AbortSignal | undefined;

  constructor(silenceMs: number, caller: AbortSignal | undefined) {
    this.#silenceMs = Math.min(silenceMs, TIMER_MS_MAX);
    this.#caller = caller;
    if (caller?.aborted === true) this.#hangUp.abort(caller.reason);
    // The listener is removed when the line is closed: the caller's signal may outlive it.
    caller?.addEventListener("abort", () => this.#hangUp.abort(caller.reason), { signal: this.signal });
  }

  get signal(): AbortSignal {
    return this.#hangUp.signal;
  }

  /** Waits for data until the read timeout. Time that the caller takes between two reads does not count. */
  async hear<T>(sound: Promise<T>): Promise<T> {
    const { signal } = this;
    const silence = new ConnectionLost(`no data for ${this.#silenceMs} ms`);
    const timer = setTimeout(() => this.#hangUp.abort(silence), this.#silenceMs);
    let cut = () => {};
    const end = new Promise<never>((_, reject) => (cut = () => reject(signal.reason)));
    signal.addEventListener("abort", cut);
    if (signal.aborted) cut();
    try {
      return await Promise.race([sound, end]);
    } catch (cause) {
      if (this.#caller?.aborted === true) throw this.#caller.reason;
      if (signal.aborted) throw signal.reason;
      throw new ConnectionLost("connection lost", { cause });
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", cut);
    }
  }

  close(): void {
    this.#hangUp.abort(new ConnectionLost("connection closed"));
  }
}

/** A response whose body has not been read yet. Closing it aborts the request. */
export class Answer {
  #response: Response;
  #line: Line;

  private constructor(response: Response, line: Line) {
    this.#response = response;
    this.#line = line;
  }

  static async to(
    call: (signal: AbortSignal) => Promise<Response>,
    silenceMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Answer> {
    const line = new Line(silenceMs, signal);
    try {
      return new Answer(await line.hear(call(line.signal)), line);
    } catch (error) {
      line.close();
      throw error;
    }
  }

  get isStream(): boolean {
    const type = this.#response.headers.get("content-type");
    return type?.startsWith("text/event-stream") === true && this.#response.body !== null;
  }

  get sessionId(): string | undefined {
    return this.#response.headers.get("x-cognitive-session") ?? undefined;
  }

  async *pieces(): AsyncGenerator<Uint8Array> {
    // Not every browser supports iteration over a body.
    const reader = this.#response.body?.getReader();
    try {
      while (reader !== undefined) {
        const { done, value } = await this.#line.hear(reader.read());
        if (done) return;
        yield value;
      }
    } finally {
      reader?.cancel().catch(() => {});
    }
  }

  /** The complete answer; throws for a temporary refusal. */
  async envelope(): Promise<Envelope> {
    const said = envelopeIn(await this.#text());
    const refusal = notNow(this.#response, said);
    if (refusal !== undefined) throw refusal;
    if (said === undefined) throw new ProtocolError(`HTTP ${this.#response.status} without an envelope`);
    return said;
  }

  async #text(): Promise<string> {
    const decoder = new TextDecoder();
    let [text, bytes] = ["", 0];
    try {
      for await (const piece of this.pieces()) {
        bytes += piece.length;
        if (bytes > ANSWER_BYTES_MAX) throw new ProtocolError(`response of more than ${ANSWER_BYTES_MAX} bytes`);
        text += decoder.decode(piece, { stream: true });
      }
    } finally {
      this.close();
    }
    return text + decoder.decode();
  }

  close(): void {
    this.#line.close();
  }
}

function envelopeIn(text: string): Envelope | undefined {
  try {
    const value = JSON.parse(text);
    return typeof value?.ok === "boolean" ? value : undefined;
  } catch {
    return undefined;
  }
}
