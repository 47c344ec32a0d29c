import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { createCertificates } from "./certificates.ts";
import { freePort } from "./free-port.ts";
import { startPlainServer } from "./plain-server.ts";
import { programPath } from "./program-path.ts";
import type { ServerProcess } from "./server-process.ts";

export interface SeededEvent {
  readonly stream: string;
  readonly id?: string;
  readonly type: string;
  /** Text goes in as it is, JSON or not. */
  readonly data: object | string;
  readonly metadata: object | string;
}

/**
 * A fake of KurrentDB on 127.0.0.1, written after its protocol and its source, since no real server can be had where
 * these tests run. What it acknowledged survives its kill.
 */
export type KurrentDb = ServerProcess & {
  readonly url: string;
  readonly port: number;
  /** Writes many events at once, without any check. */
  seed(events: readonly SeededEvent[]): Promise<void>;
  /** Ends every subscription or the first few, with an error or as if there were nothing more to say. */
  dropSubscriptions(how?: "error" | "end", countMax?: number): Promise<void>;
  figures(): Promise<KurrentDbFigures>;
};

export interface KurrentDbFigures {
  readonly events: number;
  readonly subscriptions: number;
  /** Events given to the connections of subscriptions since the start. */
  readonly sent: number;
}

export interface KurrentDbOptions {
  /** Of the user `admin`; with it the server speaks TLS, since the client sends no password without. */
  readonly password?: string;
}

const PROGRAM = programPath(resolve(import.meta.dirname, "kurrentdb-process.ts"));
const SEEDED_AT_ONCE = 20_000;

export async function startKurrentDb({ password }: KurrentDbOptions = {}): Promise<KurrentDb> {
  const [port, steerPort] = [await freePort(), await freePort()];
  const ask = async (path: string, body = "") => {
    const response = await fetch(`http://127.0.0.1:${steerPort}${path}`, { method: "POST", body });
    return (await response.json()) as KurrentDbFigures;
  };
  const secret = password === undefined ? [] : [password];
  const server = await startPlainServer({
    name: "kurrentdb",
    prepare: async (folder) => {
      if (password !== undefined) await createCertificates(folder);
    },
    command: (folder) => ({
      program: process.execPath,
      args: [PROGRAM, folder, String(port), String(steerPort), ...secret],
    }),
    isReady: async () => (await ask("/figures")).events >= 0,
  });
  const seed = async (events: readonly SeededEvent[]) => {
    for (let from = 0; from < events.length; from += SEEDED_AT_ONCE) {
      const some = events.slice(from, from + SEEDED_AT_ONCE).map((event) => ({ id: randomUUID(), ...event }));
      await ask("/seed", JSON.stringify(some));
    }
  };
  const authority = resolve(server.folder, "authority.crt");
  const url =
    password === undefined
      ? `kurrentdb://127.0.0.1:${port}?tls=false`
      : `kurrentdb://admin:${encodeURIComponent(password)}@127.0.0.1:${port}?tls=true&tlsCAFile=${encodeURIComponent(authority)}`;
  return Object.assign(server, {
    url,
    port,
    seed,
    dropSubscriptions: async (how: "error" | "end" = "error", countMax = 1_000_000) => {
      await ask("/drop", JSON.stringify({ how, countMax }));
    },
    figures: () => ask("/figures"),
  });
}
