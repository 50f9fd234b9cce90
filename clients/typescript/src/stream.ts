// A recovering stream: it requests the rest when the connection or the server is lost, and starts over
// when the server cannot resume there. It yields the chunks as the server wrote them.

import { Assembly, type Checkpoint, type Chunk } from "./assembly.js";
import { envelopeOf, type Envelope } from "./envelope.js";
import { ConnectionLost, ProtocolError } from "./errors.js";
import type { Json } from "./field.js";
import { NotNow, Retries, sleep } from "./retry.js";
import { frames } from "./sse.js";
import type { Answer } from "./transport.js";

/** One event. After `restart`, everything received before is void. */
export interface Event {
  kind: "meta" | "chunk" | "progress" | "final" | "error" | "restart";
  body: any;
}

/** The resume point of a lost stream, as the server expects it. */
export interface Place {
  session_id: string;
  last_seq: number;
  last_checkpoint?: Checkpoint;
}

export type Open = (place: Place | undefined, signal: AbortSignal) => Promise<Answer>;

export class Stream implements AsyncIterable<Event> {
  sessionId: string | undefined;
  /** The complete answer, set when the stream has ended. */
  envelope: Envelope | undefined;
  /** How often the stream was reopened. */
  recoveries = 0;
  #open: Open;
  #retries: Retries;
  #caller: AbortSignal | undefined;
  #assembly = new Assembly();
  #furthest = 0;
  #abort = new AbortController();

  constructor(open: Open, retries = new Retries(), signal?: AbortSignal) {
    this.#open = open;
    this.#retries = retries;
    this.#caller = signal;
  }

  /** The data received so far. */
  get data(): Json | undefined {
    return this.#assembly.data;
  }

  /** Closes the stream for good; no more events follow. The server continues the run for a while, or ends it,
   * depending on its settings. */
  close(): void {
    this.#abort.abort();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event> {
    const { signal } = this.#abort;
    this.#caller?.throwIfAborted();
    this.#caller?.addEventListener("abort", () => this.close(), { signal });
    try {
      while (this.envelope === undefined && !signal.aborted) {
        try {
          yield* this.#connection();
        } catch (lost) {
          if (signal.aborted) break;
          if (!(lost instanceof ConnectionLost)) throw lost;
          yield* this.#askAgain(lost);
        }
      }
    } finally {
      this.close();
    }
    // `close` ends the iteration without an error; an aborted signal throws, since other code may own it.
    if (this.envelope === undefined) this.#caller?.throwIfAborted();
  }

  /** Waits for the next try. When no retry is left, the last refusal is the answer. */
  async *#askAgain(lost: ConnectionLost): AsyncGenerator<Event> {
    const pauseMs = this.#retries.pauseMs(lost);
    if (pauseMs !== undefined) {
      this.recoveries += 1;
      await sleep(pauseMs, this.#abort.signal).catch(() => {});
    } else if (lost instanceof NotNow && lost.said !== undefined) {
      this.envelope = envelopeOf(lost.said);
      yield { kind: "error", body: lost.said };
    } else {
      throw lost;
    }
  }

  /** The events of one connection, up to the end of the answer or of the connection. */
  async *#connection(): AsyncGenerator<Event> {
    const answer = await this.#open(this.#place(), this.#abort.signal);
    try {
      if (!answer.isStream) {
        // A module that does not stream, or a refusal: the envelope is the whole answer.
        this.envelope = await answer.envelope();
        yield { kind: this.envelope.ok ? "final" : "error", body: this.envelope };
        return;
      }
      // Set before the first event, so that even a stream that is lost at once can be resumed.
      this.sessionId ??= answer.sessionId;
      for await (const { event, data } of frames(answer.pieces())) {
        try {
          yield* this.#take(event as Event["kind"], JSON.parse(data));
        } catch (cause) {
          if (cause instanceof ConnectionLost) throw cause;
          throw new ProtocolError(`malformed event ${JSON.stringify(event)}`, { cause });
        }
        if (this.envelope !== undefined || this.#abort.signal.aborted) return;
      }
    } finally {
      answer.close();
    }
    throw new ConnectionLost("stream closed early");
  }

  *#take(kind: Event["kind"], body: any): Generator<Event> {
    if (kind === "meta") {
      const sessionId: unknown = body.session_id;
      if (typeof sessionId !== "string") throw new TypeError("missing session_id");
      if (!this.#goesOn(sessionId, body.resume_from_seq ?? 1)) {
        this.#assembly.clear();
        yield { kind: "restart", body };
      }
      this.sessionId = sessionId;
    } else if (kind === "chunk") {
      if (typeof body.chunk.seq !== "number") throw new TypeError("missing seq");
      if (!this.#assembly.add(body.chunk as Chunk)) {
        // Not the expected continuation, so nothing in it is used.
        this.#assembly.clear();
        this.sessionId = undefined;
        yield { kind: "restart", body: {} };
        throw new ConnectionLost("stream resumed at another position");
      }
      if (this.#assembly.lastSeq > this.#furthest) {
        // Repeated chunks are not progress: a stream that fails at the same chunk each time must run out of
        // retries.
        this.#furthest = this.#assembly.lastSeq;
        this.#retries.forget();
      }
    } else if (kind === "final") {
      this.envelope = envelopeOf({ ...body, final: true });
    } else if (kind === "error") {
      this.#fail({ ...body, streaming: true });
    }
    yield { kind, body };
  }

  /** Whether a meta chunk is the first one, or the expected one after a recovery. */
  #goesOn(sessionId: string, resumeFromSeq: number): boolean {
    const expected = this.#assembly.lastSeq + 1;
    return expected === 1 || (sessionId === this.sessionId && resumeFromSeq === expected);
  }

  #fail(body: any): void {
    const { message, recoverable, recovery } = body.error;
    if (recoverable === true && recovery !== undefined) {
      throw new NotNow(message, body, recovery.retry_after_ms, recovery.max_retries);
    }
    this.envelope = envelopeOf(body);
  }

  #place(): Place | undefined {
    if (this.sessionId === undefined) return undefined;
    const place: Place = { session_id: this.sessionId, last_seq: this.#assembly.lastSeq };
    if (this.#assembly.lastCheckpoint !== undefined) place.last_checkpoint = this.#assembly.lastCheckpoint;
    return place;
  }
}
