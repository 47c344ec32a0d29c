import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { freePort } from "./free-port.ts";
import { startPlainServer } from "./plain-server.ts";
import type { ServerProcess } from "./server-process.ts";

/** A request as the receiver got it, in the order of arrival. */
export interface HttpArrival {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** A private receiver of events on 127.0.0.1; what it acknowledged survives its kill. */
export type HttpReceiver = ServerProcess & {
  readonly origin: string;
  readonly port: number;
  arrivals(): readonly HttpArrival[];
};

const PROGRAM = resolve(import.meta.dirname, "http-receiver-process.ts");

export async function startHttpReceiver(): Promise<HttpReceiver> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const server = await startPlainServer({
    name: "http-receiver",
    command: (folder) => ({ program: process.execPath, args: [PROGRAM, folder, String(port)] }),
    isReady: async () => (await fetch(origin)).ok,
  });
  const arrivals = () => {
    const file = resolve(server.folder, "arrivals");
    if (!existsSync(file)) return [];
    const lines = readFileSync(file, "utf8").split("\n").slice(0, -1);
    return lines.map((line) => {
      const { body, ...rest } = JSON.parse(line) as Omit<HttpArrival, "body"> & { readonly body: string };
      return { ...rest, body: Buffer.from(body, "base64") };
    });
  };
  return Object.assign(server, { port, origin, arrivals });
}
