// One relay as a process of its own, from the flag tables of a database to Kafka. Started by the fleet of a proof.
// It prints every technical event as a line of JSON, but for those that come once per delivered event, batch or run.
import type { Limits, Timing } from "../../../src/core/limits.ts";
import { type ExponentialOptions, exponential } from "../../../src/core/retry-policy.ts";
import type { Publisher } from "../../../src/ports/publisher.ts";
import type { TechnicalEventName } from "../../../src/ports/technical-events.ts";
import type { Transactions } from "../../../src/ports/transactions.ts";
import { kafkaPublisher } from "../../../src/publishers/kafka/kafka-publisher.ts";
import { createRelay } from "../../../src/relay/relay.ts";
import { tableSources } from "../../e2e/table-sources.ts";

const TOO_MANY: readonly TechnicalEventName[] = ["IntentRelayed", "BatchSettled", "RunEnded"];

function variable(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`the environment variable ${name} is missing`);
  return value;
}

function say(line: object): void {
  process.stdout.write(`${JSON.stringify(line, (_, value) => (typeof value === "bigint" ? String(value) : value))}\n`);
}

/** For the proof of the proof: whatever a former owner delivered without settling it is sent again. */
function withoutMemory(publisher: Publisher): Publisher {
  const { transactions } = publisher;
  if (transactions === undefined) return publisher;
  const forgetful = async (...[address, signal]: Parameters<Transactions["fence"]>) => {
    const lane = await transactions.fence(address, signal);
    lane.lastCommitted = async (after) => (after > 0n ? [{ batch: after, ids: [] }] : []);
    return lane;
  };
  const prepare = (slots: number) => transactions.prepare(slots);
  return { ...publisher, transactions: { ringSize: transactions.ringSize, prepare, fence: forgetful } };
}

const publisher = kafkaPublisher(JSON.parse(variable("KAFKA")));
const leaseMs = Number(variable("LEASE_MS"));
const relay = createRelay({
  sources: tableSources({
    url: variable("DATABASE_URL"),
    relaySchema: variable("RELAY_SCHEMA"),
    tables: JSON.parse(variable("TABLES")),
    leaseMs,
  }),
  destinations: { kafka: process.env.SABOTAGE === "forget-ledger" ? withoutMemory(publisher) : publisher },
  routes: [{ destination: "kafka", retry: exponential(JSON.parse(variable("RETRY")) as ExponentialOptions) }],
  lanes: Number(variable("LANES")),
  limits: JSON.parse(variable("LIMITS")) as Partial<Limits>,
  timing: { ...(JSON.parse(variable("TIMING")) as Partial<Timing>), leaseMs },
  instanceName: variable("INSTANCE_NAME"),
});

relay.onAny((event) => !TOO_MANY.includes(event.name) && say(event));
process.on("SIGTERM", async () => {
  say({ name: "Stopping" });
  await relay.stop();
  say({ name: "Stopped" });
});
await relay.start();
say({ name: "Started" });
