// One relay as a process of its own, from a Redis outbox to the test sink. Started by relay-fleet.ts.
import type { Limits, Timing } from "../../src/core/limits.ts";
import { redisSource } from "../../src/redis-outbox.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { say, startUntilSigterm, variable } from "../e2e/relay-of-process.ts";
import { sinkPublisher } from "../e2e/sink-publisher.ts";

const leaseMs = Number(variable("LEASE_MS"));
const relay = createRelay({
  sources: [redisSource({ url: variable("REDIS_URL"), name: variable("OUTBOX_NAME") })],
  destinations: { sink: sinkPublisher(Number(variable("SINK_PORT")), variable("INSTANCE_NAME")) },
  lanes: Number(variable("LANES")),
  limits: JSON.parse(variable("LIMITS")) as Partial<Limits>,
  timing: { ...(JSON.parse(variable("TIMING")) as Partial<Timing>), leaseMs },
  instanceName: variable("INSTANCE_NAME"),
});
for (const name of ["InstanceLost", "LaneTaken", "LaneFailed", "SourceBroken", "EventVanished"] as const) {
  relay.on(name, say);
}
await startUntilSigterm(relay);
