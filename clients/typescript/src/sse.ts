// Parses server-sent events from a body, as far as a stream of chunks uses them. An incomplete event is
// dropped.

import { ProtocolError } from "./errors.js";

const LINE_CHARS_MAX = 64 * 1024 * 1024;

export interface Frame {
  event: string;
  data: string;
}

export async function* frames(body: AsyncIterable<Uint8Array>): AsyncGenerator<Frame> {
  const decoder = new TextDecoder();
  let rest = "";
  let event = "message";
  let data: string[] = [];
  for await (const bytes of body) {
    // Only new bytes are searched, so the cost of a long line is linear.
    const lines = decoder.decode(bytes, { stream: true }).split("\n");
    lines[0] = rest + lines[0];
    rest = lines.pop() ?? "";
    if (rest.length > LINE_CHARS_MAX) throw new ProtocolError(`line of more than ${LINE_CHARS_MAX} characters`);
    for (const line of lines.map((line) => line.replace(/\r$/, ""))) {
      if (line === "") {
        if (data.length > 0) yield { event, data: data.join("\n") };
        event = "message";
        data = [];
      } else if (!line.startsWith(":")) {
        const colon = line.indexOf(":");
        const key = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (key === "event") event = value;
        else if (key === "data") data.push(value);
      }
    }
  }
}
