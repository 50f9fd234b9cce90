// A real server for the tests, and a proxy before it that injects faults.

import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Server as TcpServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../../../..");
const BINARY = process.env["SERVER_BINARY"] ?? join(ROOT, "target/debug/cogn");

/** `cogn serve` on a free port, with a scripted model. It can be killed and restarted. */
export class Server {
  port = 0;
  #folder = mkdtempSync(join(tmpdir(), "cogn-"));
  #process: ChildProcess | undefined;

  static async with(reply: string, delayMs: number): Promise<Server> {
    const server = new Server();
    const script = [{ reply, delay_ms: delayMs, chunk_bytes: 16 }];
    writeFileSync(join(server.#folder, "script.yaml"), JSON.stringify(script));
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    const place = ["--listen", `127.0.0.1:${this.port}`, "--journal", join(this.#folder, "journal.db")];
    const parts = ["--modules", join(ROOT, "examples/modules")];
    const backend = ["--backend", `scripted:${join(this.#folder, "script.yaml")}`];
    const child = spawn(BINARY, ["serve", ...place, ...parts, ...backend], { stdio: ["ignore", "pipe", "ignore"] });
    this.#process = child;
    let said = "";
    for await (const piece of child.stdout) {
      said += String(piece);
      const found = /127\.0\.0\.1:(\d+)/.exec(said);
      if (found !== null) {
        this.port = Number(found[1]);
        return;
      }
    }
    throw new Error("the server printed no address");
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** How many runs it has recorded. */
  async runs(): Promise<number> {
    const page: any = await (await fetch(`${this.url}/v1/runs?limit=200`)).json();
    return page.data.runs.length;
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Forwards this many bytes, then stalls without closing the connection. */
export class Hold {
  constructor(readonly bytes: number) {}
}

/** Responds in place of the server, with a pause after each piece, and closes the connection. */
export class Say {
  constructor(
    readonly pieces: string[],
    readonly pauseMs = 0,
  ) {}
}

/** A number is how many bytes of the response are forwarded before the connection is cut. */
export type Fault = number | Hold | Say;

export interface Request {
  headers: { [name: string]: string };
  body: any;
}

/** Applies the next fault of the list to each connection; after the last one it forwards everything. */
export class Proxy {
  /** The first request of each connection. */
  requests: Request[] = [];
  #listener: TcpServer;
  #server: Server | undefined;
  #faults: Fault[];

  private constructor(server: Server | undefined, faults: Fault[]) {
    this.#server = server;
    this.#faults = [...faults];
    this.#listener = createServer((client) => void this.#serve(client));
  }

  static async before(server: Server | undefined, faults: Fault[]): Promise<Proxy> {
    const proxy = new Proxy(server, faults);
    await new Promise<void>((resolve) => proxy.#listener.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#listener.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#listener.close();
  }

  async #serve(client: Socket): Promise<void> {
    client.on("error", () => client.destroy());
    const request = await this.#read(client);
    // Only after a request: `fetch` also opens connections that it does not use.
    const fault = this.#faults.shift();
    if (fault instanceof Say) {
      for (const piece of fault.pieces) {
        client.write(piece);
        await new Promise((resolve) => setTimeout(resolve, fault.pauseMs));
      }
      client.end();
    } else {
      pass(client, request, this.#server?.port ?? 0, fault);
    }
  }

  /** The request as received. */
  #read(client: Socket): Promise<Buffer> {
    return new Promise((resolve) => {
      let bytes = Buffer.alloc(0);
      const more = (piece: Buffer) => {
        bytes = Buffer.concat([bytes, piece]);
        const end = bytes.indexOf("\r\n\r\n");
        if (end < 0) return;
        const lines = bytes.subarray(0, end).toString().split("\r\n").slice(1);
        const headers = Object.fromEntries(lines.map((line) => line.toLowerCase().split(": ", 2)));
        const body = bytes.subarray(end + 4);
        if (body.length < Number(headers["content-length"] ?? 0)) return;
        client.off("data", more);
        this.requests.push({ headers, body: JSON.parse(body.toString()) });
        resolve(bytes);
      };
      client.on("data", more);
    });
  }
}

function pass(client: Socket, request: Buffer, port: number, fault: number | Hold | undefined): void {
  const upstream = connect(port, "127.0.0.1");
  let left = fault instanceof Hold ? fault.bytes : (fault ?? Number.POSITIVE_INFINITY);
  const end = () => {
    client.destroy();
    upstream.destroy();
  };
  for (const socket of [client, upstream]) socket.on("error", end).on("close", end);
  if (left <= 0 && !(fault instanceof Hold)) return end();
  upstream.write(request);
  client.on("data", (data) => upstream.write(data));
  upstream.on("data", (data) => {
    const piece = data.subarray(0, left);
    left -= piece.length;
    client.write(piece, () => {
      if (left <= 0 && !(fault instanceof Hold)) end();
    });
  });
  // With `Hold`, the connection stays open when the server closes its side.
  if (fault instanceof Hold) upstream.off("close", end);
}

/** A complete response: an envelope, or the page of a proxy. */
export function answer(status: string, body: string | object, headers = ""): Say {
  const [type, text] = typeof body === "string" ? ["text/html", body] : ["application/json", JSON.stringify(body)];
  const length = Buffer.byteLength(text);
  const head = `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\nconnection: close\r\n`;
  return new Say([`${head}${headers}\r\n${text}`]);
}

export type Told = [kind: string, body: object];

export const STREAM_HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/** Events as they are sent. */
export function sent(...events: Told[]): string {
  return events.map(([kind, body]) => `event: ${kind}\ndata: ${JSON.stringify(body)}\n\n`).join("");
}

/** A stream that is cut after these events. */
export function streamed(...events: Told[]): Say {
  return new Say([STREAM_HEAD + sent(...events)]);
}
