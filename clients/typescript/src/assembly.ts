// The data of a stream as it grows: chunks go in, the value so far is there at any time. Cost is in
// proportion to what arrives: the text of the growing field is joined only when somebody looks.

import { get, put, stepsOf, type Json } from "./field.js";

export interface Checkpoint {
  offset: number;
  hash: string;
}

export interface Chunk {
  seq: number;
  type: "delta" | "snapshot";
  field?: string;
  delta?: string;
  data?: Json;
  checkpoint?: Checkpoint;
}

const utf8 = new TextEncoder();

export class Assembly {
  lastSeq = 0;
  lastCheckpoint: Checkpoint | undefined;
  #root: { [key: string]: Json } = {};
  #field: string | undefined;
  #pieces: string[] = [];
  #bytes = 0;

  /** Forgets everything: the stream starts over. */
  clear(): void {
    this.lastSeq = 0;
    this.lastCheckpoint = undefined;
    this.#root = {};
    this.#field = undefined;
    this.#pieces = [];
    this.#bytes = 0;
  }

  /** The data so far; `undefined` before the first chunk. */
  get data(): Json | undefined {
    this.#join();
    return this.#root["data"];
  }

  /** Adds one chunk. `false` when it does not continue what is here. */
  add(chunk: Chunk): boolean {
    if (chunk.seq !== this.lastSeq + 1) return false;
    const field = chunk.field ?? "data";
    if (chunk.type === "snapshot") {
      this.#join();
      this.#field = undefined;
      put(this.#root, stepsOf(field), chunk.data ?? null);
    } else if (!this.#grow(field, chunk.delta ?? "", chunk.checkpoint)) {
      return false;
    }
    this.lastSeq = chunk.seq;
    this.lastCheckpoint = chunk.checkpoint;
    return true;
  }

  /** The length proves that nothing is missing; the hash goes back to the server, which proves the rest. */
  #grow(field: string, delta: string, checkpoint: Checkpoint | undefined): boolean {
    if (field !== this.#field) {
      this.#join();
      const before = get(this.#root, stepsOf(field));
      this.#field = field;
      this.#pieces = [typeof before === "string" ? before : ""];
      this.#bytes = utf8.encode(this.#pieces[0]).length;
    }
    this.#pieces.push(delta);
    this.#bytes += utf8.encode(delta).length;
    return checkpoint === undefined || checkpoint.offset === this.#bytes;
  }

  #join(): void {
    if (this.#field === undefined || this.#pieces.length < 2) return;
    const text = this.#pieces.join("");
    this.#pieces = [text];
    put(this.#root, stepsOf(this.#field), text);
  }
}
