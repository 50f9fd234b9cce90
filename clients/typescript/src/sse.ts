// Server-sent events out of a body, as far as a stream of chunks uses them. A cut event is left out: it
// was not received.

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
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
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
