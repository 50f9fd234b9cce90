// Incremental SHA-256. The platform's own takes complete inputs only, and in browsers works on secure pages only.

const K = Uint32Array.of(
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
);
const START = Uint32Array.of(
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
);
const BLOCK_BYTES = 64;

export class Sha256 {
  /** How many bytes were hashed. */
  bytes = 0;
  #state = START.slice();
  #block = new Uint8Array(BLOCK_BYTES);

  update(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      const filled = this.bytes % BLOCK_BYTES;
      const piece = bytes.subarray(at, at + BLOCK_BYTES - filled);
      this.#block.set(piece, filled);
      this.bytes += piece.length;
      at += piece.length;
      if (filled + piece.length === BLOCK_BYTES) compress(this.#state, this.#block);
    }
  }

  /** The hash of all bytes so far; more may follow. */
  hex(): string {
    const state = this.#state.slice();
    const filled = this.bytes % BLOCK_BYTES;
    const end = new Uint8Array(filled < BLOCK_BYTES - 8 ? BLOCK_BYTES : 2 * BLOCK_BYTES);
    end.set(this.#block.subarray(0, filled));
    end[filled] = 0x80;
    new DataView(end.buffer).setBigUint64(end.length - 8, BigInt(this.bytes) * 8n);
    for (let at = 0; at < end.length; at += BLOCK_BYTES) compress(state, end.subarray(at, at + BLOCK_BYTES));
    return Array.from(state, (word) => word.toString(16).padStart(8, "0")).join("");
  }
}

const w = new Uint32Array(64);

function compress(state: Uint32Array, block: Uint8Array): void {
  const view = new DataView(block.buffer, block.byteOffset, BLOCK_BYTES);
  for (let t = 0; t < 64; t += 1) {
    if (t < 16) {
      w[t] = view.getUint32(t * 4);
      continue;
    }
    const [x, y] = [w[t - 15]!, w[t - 2]!];
    const s0 = turn(x, 7) ^ turn(x, 18) ^ (x >>> 3);
    const s1 = turn(y, 17) ^ turn(y, 19) ^ (y >>> 10);
    w[t] = w[t - 16]! + s0 + w[t - 7]! + s1;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
  for (let t = 0; t < 64; t += 1) {
    const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
    const one = (h + s1 + ((e & f) ^ (~e & g)) + K[t]! + w[t]!) | 0;
    const s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
    const two = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  for (const [at, word] of [a, b, c, d, e, f, g, h].entries()) state[at] = state[at]! + word;
}

function turn(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}
