// Calls cogn modules over HTTP. Streams survive lost connections and restarted servers.

export { Assembly, type Checkpoint, type Chunk } from "./assembly.js";
export { Client, type Call, type Settings } from "./client.js";
export type { Envelope } from "./envelope.js";
export { ConnectionLost, ProtocolError } from "./errors.js";
export type { Json } from "./field.js";
export { Stream, type Event } from "./stream.js";
