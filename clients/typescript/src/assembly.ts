// Assembles the data of a stream from its chunks; the value so far is available at any time. Cost is
// linear in the bytes received: the text of the growing field is joined only when the data is read.

import { get, put, stepsOf, type Json } from "./field.js";
import { Sha256 } from "./sha256.js";

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
  #hash = new Sha256();

  /** Discards everything: the stream starts over. */
  clear(): void {
    this.lastSeq = 0;
    this.lastCheckpoint = undefined;
    this.#root = {};
    this.#field = undefined;
    this.#pieces = [];
    this.#hash = new Sha256();
  }

  /** The data so far; `undefined` before the first chunk. */
  get data(): Json | undefined {
    this.#join();
    return this.#root["data"];
  }

  /** Adds one chunk. `false` when it does not continue the previous ones. */
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

  #grow(field: string, delta: string, checkpoint: Checkpoint | undefined): boolean {
    if (field !== this.#field) {
      this.#join();
      const before = get(this.#root, stepsOf(field));
      const text = typeof before === "string" ? before : "";
      this.#field = field;
      this.#pieces = [text];
      this.#hash = new Sha256();
      this.#hash.update(utf8.encode(text));
    }
    this.#pieces.push(delta);
    this.#hash.update(utf8.encode(delta));
    if (checkpoint === undefined) return true;
    // Length and hash must match the server's checkpoint.
    return checkpoint.offset === this.#hash.bytes && this.#hash.hex().slice(0, 6) === checkpoint.hash;
  }

  #join(): void {
    if (this.#field === undefined || this.#pieces.length < 2) return;
    const text = this.#pieces.join("");
    this.#pieces = [text];
    put(this.#root, stepsOf(this.#field), text);
  }
}
