import { Redis } from "ioredis";
import { installPrograms } from "./debian-programs.ts";
import { freePort } from "./free-port.ts";
import { startPlainServer } from "./plain-server.ts";
import type { ServerProcess } from "./server-process.ts";

/** A private Redis on 127.0.0.1 that writes every change to its append-only file before it answers. */
export type RedisServer = ServerProcess & { readonly url: string; readonly port: number };

export const REDIS = { "redis-server": "redis-server" };

export async function startRedis(flags: readonly string[] = []): Promise<RedisServer> {
  await installPrograms("Redis", REDIS);
  const port = await freePort();
  const server = await startPlainServer({
    name: "redis",
    command: (folder) => ({
      program: "redis-server",
      args: [
        ...["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""],
        // The title would hide the folder, by which the process is found.
        ...["--set-proc-title", "no", "--appendonly", "yes", "--appendfsync", "always", ...flags],
      ],
    }),
    isReady: () => answers(port),
  });
  return Object.assign(server, { port, url: `redis://127.0.0.1:${port}/0` });
}

async function answers(port: number): Promise<boolean> {
  const redis = new Redis({
    host: "127.0.0.1",
    port,
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  redis.on("error", () => {});
  try {
    await redis.connect();
    return (await redis.ping()) === "PONG";
  } finally {
    redis.disconnect();
  }
}
