// Setup of the tests of vendors' clients: the servers started for them.

import { z } from "zod";

/** A server that asks for no key, in front of everything below. */
export const OPEN = process.env.OPEN_URL;
/** A server that asks for keys, in front of the embedded model alone. */
export const CLOSED = process.env.CLOSED_URL;

/** Models that really answer: a model server, and the one in the process. */
export const REAL = ["llama", "embedded"];
/** Scripts that speak either dialect, for what a small model cannot be trusted to do. */
export const SCRIPTED = ["scripted-openai", "scripted-anthropic"];

export const WEATHER = "What is the weather in Bern?";
export const ANSWER = "It is 22 degrees in Bern.";
export const DYING = "Please die in the middle.";
export const BUSY = "This is one too many.";
export const PLACE = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
/** What the module `counter` answers. */
export const COUNTED = {
  rationale: 'Größe und "quotes", 日本',
  n: 3,
  list: ["a", "b"],
  deep: { text: "end" },
};

/** An answer that even a small model can give, once it is held to its schema. */
export const Ticket = z.object({ label: z.enum(["billing", "bug", "other"]), urgent: z.boolean() });

export const ask = (content) => [{ role: "user", content }];
