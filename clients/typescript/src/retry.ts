// Whether to ask again, and how long to wait before it: as long as the server wants, or ever longer.

import type { Envelope } from "./envelope.js";
import { ConnectionLost } from "./errors.js";

/** The longest wait that a server may ask for; beyond it the next try comes all the same. */
const WAIT_MS_MAX = 60_000;
/** Short after a cut, and long enough in the end for a server that is started again. */
const FIRST_PAUSE_MS = 200;
const GROWTH = 5;
const PAUSE_MS_MAX = 10_000;
const TRIES = 3;

// "Not now", said by the server or by a proxy before it. `recoverable` does not tell them apart: a bad input
// is recoverable too, with another input.
const NOT_NOW = [408, 429, 502, 503, 504];

/** An answer that asks to come back later. It is the last word when the tries are used up. */
export class NotNow extends ConnectionLost {
  /** `said` is the envelope or the error chunk; `undefined` for the page of a proxy. */
  constructor(
    message: string,
    readonly said: any,
    readonly waitMs: number | undefined,
    readonly maxRetries?: number,
  ) {
    super(message);
  }
}

/** Counts the failures that follow each other. Progress begins the count anew. */
export class Retries {
  #own: number | undefined;
  #allowed: number;
  #failures = 0;

  /** What the caller allows goes before what the server allows. */
  constructor(maxRetries?: number) {
    this.#own = maxRetries;
    this.#allowed = maxRetries ?? TRIES;
  }

  /** There was progress. */
  forget(): void {
    this.#failures = 0;
  }

  /** How long to wait before the next try; `undefined` when there is none left. */
  pauseMs(lost: ConnectionLost): number | undefined {
    const refusal = lost instanceof NotNow ? lost : undefined;
    this.#allowed = this.#own ?? refusal?.maxRetries ?? this.#allowed;
    if (this.#failures >= this.#allowed) return undefined;
    // Clients that were cut off together do not come back together.
    const pause = Math.min(FIRST_PAUSE_MS * GROWTH ** this.#failures, PAUSE_MS_MAX) * (0.5 + Math.random() / 2);
    this.#failures += 1;
    const waitMs = refusal?.waitMs ?? 0;
    return waitMs > 0 ? Math.min(waitMs, WAIT_MS_MAX) : pause;
  }
}

/** The refusal in this answer, if it is one that may pass. */
export function notNow(response: Response, said: Envelope | undefined): NotNow | undefined {
  // The answer of a run is its answer, however it ended: asked for again, it would be the same.
  if (!NOT_NOW.includes(response.status) || response.headers.has("x-cognitive-session")) return undefined;
  const told = (said?.error?.details as any)?.retry_after_ms;
  const waitMs = typeof told === "number" ? told : headerMs(response.headers.get("retry-after"));
  return new NotNow(`the server cannot be reached now: HTTP ${response.status}`, said, waitMs);
}

/** `Retry-After` is a number of seconds or a date. */
function headerMs(value: string | null): number | undefined {
  if (value === null) return undefined;
  const ms = /^\s*\d+\s*$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : ms;
}

/** Waits, unless the caller gives up before. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", giveUp);
      resolve();
    }, ms);
    if (signal?.aborted === true) giveUp();
    else signal?.addEventListener("abort", giveUp, { once: true });
  });
}
