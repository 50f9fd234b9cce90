// Whether to retry, and how long to wait before: as long as the server requests, or with backoff.

import type { Envelope } from "./envelope.js";
import { ConnectionLost } from "./errors.js";

/** The longest wait that a server may request; a longer one is cut to it. */
const WAIT_MS_MAX = 60_000;
/** Short after a disconnect, and finally long enough for a server restart. */
const FIRST_PAUSE_MS = 200;
const GROWTH = 5;
const PAUSE_MS_MAX = 10_000;
const TRIES = 3;

// Temporary refusals by the server or a proxy. `recoverable` does not identify them: an invalid input is
// recoverable too, with another input.
const NOT_NOW = [408, 429, 502, 503, 504];

/** A temporary refusal. It is the final answer when the retries are used up. */
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

/** Counts consecutive failures. Progress resets the count. */
export class Retries {
  #own: number | undefined;
  #allowed: number;
  #failures = 0;

  /** The limit of the caller takes precedence over that of the server. */
  constructor(maxRetries?: number) {
    this.#own = maxRetries;
    this.#allowed = maxRetries ?? TRIES;
  }

  /** Resets the count after progress. */
  forget(): void {
    this.#failures = 0;
  }

  /** How long to wait before the next try; `undefined` when no retry is left. */
  pauseMs(lost: ConnectionLost): number | undefined {
    const refusal = lost instanceof NotNow ? lost : undefined;
    this.#allowed = this.#own ?? refusal?.maxRetries ?? this.#allowed;
    if (this.#failures >= this.#allowed) return undefined;
    // Jitter: clients that were disconnected together do not reconnect together.
    const pause = Math.min(FIRST_PAUSE_MS * GROWTH ** this.#failures, PAUSE_MS_MAX) * (0.5 + Math.random() / 2);
    this.#failures += 1;
    const waitMs = refusal?.waitMs ?? 0;
    return waitMs > 0 ? Math.min(waitMs, WAIT_MS_MAX) : pause;
  }
}

/** The refusal in this response, if it is temporary. */
export function notNow(response: Response, said: Envelope | undefined): NotNow | undefined {
  // A response with a session is the answer of a run; a retry would return the same.
  if (!NOT_NOW.includes(response.status) || response.headers.has("x-cognitive-session")) return undefined;
  const told = (said?.error?.details as any)?.retry_after_ms;
  const waitMs = typeof told === "number" ? told : headerMs(response.headers.get("retry-after"));
  return new NotNow(`server temporarily unavailable: HTTP ${response.status}`, said, waitMs);
}

/** `Retry-After` is a number of seconds or a date. */
function headerMs(value: string | null): number | undefined {
  if (value === null) return undefined;
  const ms = /^\s*\d+\s*$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : ms;
}

/** Waits, unless the caller aborts before. */
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
