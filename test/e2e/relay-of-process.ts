import type { Limits, Timing } from "../../src/core/limits.ts";
import { type ExponentialRetryOptions, exponentialRetry } from "../../src/core/retry-policy.ts";
import type { Publisher } from "../../src/ports/publisher.ts";
import type { QueueSource } from "../../src/ports/queue-store.ts";
import { createRelay, type Relay } from "../../src/relay/relay.ts";
import { tableSources } from "./table-sources.ts";

/** What a relay that is a process of its own is made of: its settings come by environment, what it says are JSON lines. */

export function variable(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`the environment variable ${name} is missing`);
  return value;
}

export function say(line: object): void {
  process.stdout.write(`${JSON.stringify(line, (_, value) => (typeof value === "bigint" ? String(value) : value))}\n`);
}

/** From the flag tables of a database, or from sources of the caller's, to one destination. */
export function relayOfProcess(destination: string, publisher: Publisher, sources?: readonly QueueSource[]): Relay {
  const leaseMs = Number(variable("LEASE_MS"));
  return createRelay({
    sources:
      sources ??
      tableSources({
        url: variable("DATABASE_URL"),
        relaySchema: variable("RELAY_SCHEMA"),
        tables: JSON.parse(variable("TABLES")),
        leaseMs,
      }),
    destinations: { [destination]: publisher },
    routes: [{ destination, retry: exponentialRetry(JSON.parse(variable("RETRY")) as ExponentialRetryOptions) }],
    lanes: Number(variable("LANES")),
    limits: JSON.parse(variable("LIMITS")) as Partial<Limits>,
    timing: { ...(JSON.parse(variable("TIMING")) as Partial<Timing>), leaseMs },
    instanceName: variable("INSTANCE_NAME"),
  });
}

/** SIGTERM stops it in good order; then the process ends by itself, so that anything left open shows as one that stays. */
export async function startUntilSigterm(relay: Relay): Promise<void> {
  process.on("SIGTERM", async () => {
    say({ name: "Stopping" });
    await relay.stop();
    say({ name: "Stopped" });
  });
  await relay.start();
  say({ name: "Started" });
}
