// One relay as a process of its own, from the flag tables of a database to the test sink. Started by relay-fleet.ts.
// It prints every technical event as a line of JSON, but for those that come once per delivered event or batch.
// SIGTERM stops it in good order; then it ends by itself, so that anything left open shows as a process that stays.
import type { Limits, Timing } from "../../src/core/limits.ts";
import { type ExponentialOptions, exponential } from "../../src/core/retry-policy.ts";
import type { TechnicalEventName } from "../../src/ports/technical-events.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { sinkPublisher } from "./sink-publisher.ts";
import { tableSources } from "./table-sources.ts";

const TOLD = [
  "IntentRelayFailed",
  "IntentDeadLettered",
  "RelayMismatch",
  "EventVanished",
  "SettleDelayed",
  "InstanceJoined",
  "InstanceLost",
  "InstanceReaped",
  "LaneTaken",
  "LaneReleased",
  "LaneFailed",
  "LaneBraked",
  "CircuitOpened",
  "CircuitClosed",
  "SourceBroken",
  "SourceRecovered",
  "ChoreFailed",
] as const satisfies readonly TechnicalEventName[];

function variable(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`the environment variable ${name} is missing`);
  return value;
}

function say(line: object): void {
  process.stdout.write(`${JSON.stringify(line, (_, value) => (typeof value === "bigint" ? String(value) : value))}\n`);
}

const timing = JSON.parse(variable("TIMING")) as Partial<Timing>;
const relay = createRelay({
  sources: tableSources({
    url: variable("DATABASE_URL"),
    relaySchema: variable("RELAY_SCHEMA"),
    tables: JSON.parse(variable("TABLES")),
    leaseMs: Number(variable("LEASE_MS")),
  }),
  destinations: { sink: sinkPublisher(Number(variable("SINK_PORT")), variable("INSTANCE_NAME")) },
  routes: [{ destination: "sink", retry: exponential(JSON.parse(variable("RETRY")) as ExponentialOptions) }],
  lanes: Number(variable("LANES")),
  limits: JSON.parse(variable("LIMITS")) as Partial<Limits>,
  timing: { ...timing, leaseMs: Number(variable("LEASE_MS")) },
  instanceName: variable("INSTANCE_NAME"),
});

for (const name of TOLD) relay.on(name, say);
process.on("SIGTERM", async () => {
  say({ name: "Stopping" });
  await relay.stop();
  say({ name: "Stopped" });
});
await relay.start();
say({ name: "Started" });
