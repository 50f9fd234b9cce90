// A real server for the tests, and a proxy before it that cuts connections after so many bytes.

import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Server as TcpServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../../../..");
const BINARY = process.env["SERVER_BINARY"] ?? join(ROOT, "target/debug/cogn");

/** `cogn serve` on a free port, with a scripted model. It can be killed and started again. */
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
    throw new Error("the server said no address");
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

/** Passes bytes on, and cuts each answer after so many of them; behind the last cut it passes all. */
export class Cutter {
  #listener: TcpServer;

  private constructor(listener: TcpServer) {
    this.#listener = listener;
  }

  static async before(server: Server, cuts: number[]): Promise<Cutter> {
    const left = [...cuts];
    const listener = createServer((client) => pass(client, server.port, left.shift()));
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
    return new Cutter(listener);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#listener.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#listener.close();
  }
}

function pass(client: Socket, port: number, cut: number | undefined): void {
  const upstream = connect(port, "127.0.0.1");
  let left = cut ?? Number.POSITIVE_INFINITY;
  const end = () => {
    client.destroy();
    upstream.destroy();
  };
  for (const socket of [client, upstream]) socket.on("error", end).on("close", end);
  client.on("data", (data) => upstream.write(data));
  upstream.on("data", (data) => {
    const piece = data.subarray(0, left);
    left -= piece.length;
    client.write(piece, () => {
      if (left <= 0) end();
    });
  });
  if (left <= 0) end();
}
