import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { freePort } from "../test/servers/free-port.ts";
import { until } from "../test/servers/until.ts";

const COMMAND = fileURLToPath(new URL("../bin/outbox-relay.js", import.meta.url));
const STARTS_MS = 60_000;

/**
 * The service as users start it, with its API, which shows all that the database knows of. It delivers these tables to
 * its standard output, which nobody reads.
 */
export async function startApi(
  url: string,
  tables: Readonly<Record<string, string>>,
): Promise<AsyncDisposable & { readonly address: string }> {
  const port = await freePort();
  const child = spawn(process.execPath, [COMMAND, "run"], {
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: url,
      ...tables,
      OUTBOX_DESTINATION: "stdout:",
      HOST: "127.0.0.1",
      PORT: String(port),
      LOG_LEVEL: "warn",
    },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const ended = once(child, "close");
  const address = `http://127.0.0.1:${port}`;
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  try {
    await until(
      "the service answers",
      async () => (await fetch(`${address}/readyz`).catch(() => null))?.ok ?? false,
      STARTS_MS,
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return { address, [Symbol.asyncDispose]: stop };
}
