// Converts the last chunk of a stream to the envelope of a whole answer.

import type { Json } from "./field.js";

export interface Envelope {
  ok: boolean;
  meta?: { [key: string]: Json };
  data?: { [key: string]: Json };
  error?: { code: string; message: string; recoverable?: boolean; suggestion?: string; details?: Json };
  partial_data?: { [key: string]: Json };
  /** What the server adds beside the envelope, such as `_warnings` and `_usage`. */
  [annotation: `_${string}`]: Json;
}

const EXPLAIN_CHARS_MAX = 280;

/** Takes a final or an error chunk; an envelope is returned unchanged. */
export function envelopeOf(last: any): Envelope {
  const aside = Object.fromEntries(Object.entries(last).filter(([key]) => key.startsWith("_")));
  if (last.final === true) {
    const usage = last.usage === undefined ? {} : { _usage: last.usage };
    return { ok: true, meta: last.meta, data: last.data, ...usage, ...aside };
  }
  if (last.streaming !== true) return last;
  const error = widened(last.error);
  const explain = Array.from(error.message).slice(0, EXPLAIN_CHARS_MAX).join("");
  // An error chunk has no field for meta, so a meta with more detail is sent as an annotation.
  const { _meta: meta = { confidence: 0, risk: "high", explain }, ...others } = aside as { [key: string]: any };
  const partial = last.partial_data === undefined ? {} : { partial_data: last.partial_data };
  return { ok: false, meta, error, ...partial, ...others };
}

/** An error chunk has fewer fields than an envelope's error; the others are in its details. */
function widened({ details: narrow = {}, ...error }: any): any {
  const { module_code: word, suggestion, more = {}, ...rest } = narrow;
  const isCode = typeof word === "string" && /^E\d{4}$/.test(word);
  const details = word === undefined || isCode ? rest : { ...rest, module_code: word };
  return {
    ...error,
    ...(isCode ? { code: word } : {}),
    ...(suggestion === undefined ? {} : { suggestion }),
    ...(Object.keys(details).length === 0 ? {} : { details }),
    ...more,
  };
}
