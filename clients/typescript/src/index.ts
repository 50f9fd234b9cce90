// Calls cogn modules over HTTP. Streams recover from lost connections and server restarts.

export { Assembly, type Checkpoint, type Chunk } from "./assembly.js";
export { Client, type Call, type Settings } from "./client.js";
export type { Envelope } from "./envelope.js";
export { ConnectionLost, ProtocolError } from "./errors.js";
export type { Json } from "./field.js";
export { Stream, type Event } from "./stream.js";
