import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type JetStreamManager, jetstream, jetstreamManager, type StreamConfig } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { installPrograms } from "./debian-programs.ts";
import { freePort } from "./free-port.ts";
import { startPlainServer } from "./plain-server.ts";
import type { ServerProcess } from "./server-process.ts";

/** A message as it lies in a stream. */
export interface NatsStored {
  readonly subject: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Buffer;
}

type NatsOptions = {
  /** More lines of the server's configuration; `{folder}` stands for its folder. */
  readonly config?: string;
  readonly jetStream?: boolean;
};

export const NATS = { "nats-server": "nats-server" };

/** A private NATS server with JetStream on 127.0.0.1. */
export type NatsServer = ServerProcess & { readonly url: string; readonly port: number };

export async function startNats(options: NatsOptions = {}): Promise<NatsServer> {
  await installPrograms("NATS", NATS);
  const [port, monitorPort] = [await freePort(), await freePort()];
  const store = options.jetStream === false ? "" : 'jetstream { store_dir: "js", max_mem: 64MB, max_file: 1GB }\n';
  const server = await startPlainServer({
    name: "nats",
    prepare(folder) {
      const lines = `listen: 127.0.0.1:${port}\nhttp: 127.0.0.1:${monitorPort}\n${store}${options.config ?? ""}\n`;
      writeFileSync(join(folder, "nats.conf"), lines.replaceAll("{folder}", folder));
    },
    command: (folder) => ({ program: "nats-server", args: ["-c", join(folder, "nats.conf")] }),
    isReady: async () => (await fetch(`http://127.0.0.1:${monitorPort}/healthz?js-enabled-only=true`)).ok || !store,
  });
  return Object.assign(server, { port, url: `nats://127.0.0.1:${port}` });
}

/** The other side of the tests: makes streams and reads what lies in them. Each call has a connection of its own. */
export async function createStream(
  port: number,
  name: string,
  config: Partial<StreamConfig> & { readonly subjects: string[] },
): Promise<void> {
  await managing(port, (manager) => manager.streams.add({ name, ...config }));
}

export async function deleteStream(port: number, name: string): Promise<void> {
  await managing(port, (manager) => manager.streams.delete(name));
}

/** Everything that a stream holds, in its order. */
export async function readStream(port: number, name: string): Promise<readonly NatsStored[]> {
  return await managing(port, async (manager, nats) => {
    const { state } = await manager.streams.info(name);
    const stored: NatsStored[] = [];
    if (state.messages === 0) return stored;
    const consumer = await jetstream(nats).consumers.get(name);
    for await (const message of await consumer.consume({ max_messages: 1_000 })) {
      const headers = [...(message.headers ?? [])].map(([key, values]) => [key, values[0] ?? ""] as const);
      const payload = Buffer.from(message.data);
      stored.push({ subject: message.subject, headers: Object.fromEntries(headers), payload });
      if (message.seq >= state.last_seq) break;
    }
    return stored;
  });
}

export async function countMessages(port: number, name: string): Promise<number> {
  return await managing(port, async (manager) => (await manager.streams.info(name)).state.messages);
}

async function managing<T>(
  port: number,
  use: (manager: JetStreamManager, nats: NatsConnection) => Promise<T>,
): Promise<T> {
  const nats = await connect({ servers: `127.0.0.1:${port}`, reconnect: false });
  try {
    return await use(await jetstreamManager(nats), nats);
  } finally {
    await nats.close();
  }
}
