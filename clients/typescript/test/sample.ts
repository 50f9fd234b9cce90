// The request of the tests, and its answer.

import type { Stream } from "../src/index.js";

const SENTENCES = Array.from({ length: 24 }, (_, number) => `sentence ${number} of the answer.`).join(" ");
export const DATA = { issues: [], rationale: `Größe, 𝄞 and "quotes": ${SENTENCES}` };
const META = { confidence: 0.9, risk: "low", explain: "Looks fine." };
export const REPLY = JSON.stringify({ ok: true, meta: META, data: DATA });
export const INPUT = { code: "def f(): pass", language: "python" };
export const MODULE = "code-reviewer";

export async function kindsOf(stream: Stream): Promise<string[]> {
  const kinds: string[] = [];
  for await (const event of stream) kinds.push(event.kind);
  return kinds;
}
