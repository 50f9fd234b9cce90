// A stream that survives: it asks for the rest when the connection or the server is lost, and starts over
// when the server cannot go on from where it was. What it yields are the chunks as the server wrote them.

import { Assembly, type Chunk } from "./assembly.js";
import { ConnectionLost, ProtocolError } from "./errors.js";
import type { Json } from "./field.js";
import { frames } from "./sse.js";

/** One thing that happened. After `restart` all that was received before is void. */
export interface Event {
  kind: "meta" | "chunk" | "progress" | "final" | "error" | "restart";
  body: any;
}

export interface Envelope {
  ok: boolean;
  meta?: { [key: string]: Json };
  data?: { [key: string]: Json };
  error?: { code: string; message: string; recoverable?: boolean; suggestion?: string; details?: Json };
  partial_data?: { [key: string]: Json };
  /** What the server adds beside the envelope, such as `_warnings` and `_usage`. */
  [annotation: `_${string}`]: Json;
}

/** Where a stream was lost, as the server wants to hear it. */
export interface Place {
  session_id: string;
  last_seq: number;
  last_checkpoint?: { offset: number; hash: string };
}

export type Open = (place: Place | undefined, signal: AbortSignal) => Promise<Response>;

interface Recovery {
  retry_after_ms?: number;
  max_retries?: number;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;
const TRIES = 3;

export class Stream implements AsyncIterable<Event> {
  sessionId: string | undefined;
  /** The whole answer, once the stream is over. */
  envelope: Envelope | undefined;
  /** How often the stream was picked up again. */
  recoveries = 0;
  #open: Open;
  #sleep: (ms: number) => Promise<void>;
  #assembly = new Assembly();
  #abort = new AbortController();
  #failures = 0;
  #tries = TRIES;

  constructor(open: Open, sleep = pause) {
    this.#open = open;
    this.#sleep = sleep;
  }

  /** The data as far as it has come. */
  get data(): Json | undefined {
    return this.#assembly.data;
  }

  /** Hangs up. The server keeps the run for a while, or ends it, as its settings say. */
  close(): void {
    this.#abort.abort();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event> {
    try {
      while (this.envelope === undefined) {
        try {
          yield* this.#connection();
        } catch (error) {
          if (error instanceof ProtocolError || error instanceof RangeError || this.#abort.signal.aborted) throw error;
          await this.#pause(error);
        }
      }
    } finally {
      this.close();
    }
  }

  /** The events of one connection, up to the end of the answer or of the connection. */
  async *#connection(): AsyncGenerator<Event> {
    const response = await this.#open(this.#place(), this.#abort.signal);
    if (!response.headers.get("content-type")?.startsWith("text/event-stream") || response.body === null) {
      // A module that does not stream, or a refusal: the envelope is the whole answer.
      this.envelope = await envelopeOf(response);
      yield { kind: this.envelope.ok ? "final" : "error", body: this.envelope };
      return;
    }
    // Known before the first event, so that even a stream that is lost at once is found again.
    this.sessionId ??= response.headers.get("x-cognitive-session") ?? undefined;
    for await (const { event, data } of frames(response.body)) {
      const body = parse(data);
      if (event === "meta") {
        if (!this.#continues(body)) yield { kind: "restart", body };
        this.sessionId = body.session_id;
        yield { kind: "meta", body };
      } else if (event === "chunk") {
        if (!this.#assembly.add(body.chunk as Chunk)) {
          // Not the continuation that was expected, so nothing here can be trusted.
          this.#assembly.clear();
          this.sessionId = undefined;
          yield { kind: "restart", body: {} };
          throw new ConnectionLost("the stream went on at another place");
        }
        this.#failures = 0;
        yield { kind: "chunk", body };
      } else if (event === "final") {
        this.envelope = { ok: true, meta: body.meta, data: body.data };
        yield { kind: "final", body };
        return;
      } else if (event === "error") {
        if (await this.#mayGoOn(body.error)) return;
        const { streaming, session_id, ...envelope } = body;
        this.envelope = envelope as Envelope;
        yield { kind: "error", body };
        return;
      } else {
        yield { kind: event as Event["kind"], body };
      }
    }
    throw new ConnectionLost("the stream broke off");
  }

  /** A meta chunk is the first of all, the first after a recovery, or the first of another stream. */
  #continues(body: { session_id: string; resume_from_seq?: number }): boolean {
    const expected = this.#assembly.lastSeq + 1;
    const same = body.session_id === this.sessionId && (body.resume_from_seq ?? 1) === expected;
    if (same || expected === 1) return true;
    this.#assembly.clear();
    return false;
  }

  async #mayGoOn(error: { recoverable?: boolean; recovery?: Recovery }): Promise<boolean> {
    if (error.recoverable !== true || error.recovery === undefined) return false;
    this.#tries = error.recovery.max_retries ?? TRIES;
    if (this.#failures >= this.#tries) return false;
    this.#failures += 1;
    this.recoveries += 1;
    await this.#sleep(error.recovery.retry_after_ms ?? 1000);
    return true;
  }

  #place(): Place | undefined {
    if (this.sessionId === undefined) return undefined;
    const place: Place = { session_id: this.sessionId, last_seq: this.#assembly.lastSeq };
    if (this.#assembly.lastCheckpoint !== undefined) place.last_checkpoint = this.#assembly.lastCheckpoint;
    return place;
  }

  async #pause(cause: unknown): Promise<void> {
    if (this.#failures >= this.#tries) throw new ConnectionLost("the server cannot be reached", { cause });
    await this.#sleep(Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, LONGEST_PAUSE_MS));
    this.#failures += 1;
    this.recoveries += 1;
  }
}

export async function envelopeOf(response: Response): Promise<Envelope> {
  const value = parse(await response.text());
  if (typeof value?.ok !== "boolean") throw new ProtocolError(`HTTP ${response.status} without an envelope`);
  return value as Envelope;
}

function parse(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    throw new ProtocolError("an answer without JSON");
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
