// One relay as a process of its own, from the flag tables of a database to the test sink. Started by relay-fleet.ts.
// It prints every technical event as a line of JSON, but for those that come once per delivered event or batch.
import type { TechnicalEventName } from "../../src/ports/technical-events.ts";
import { relayOfProcess, say, startUntilSigterm, variable } from "./relay-of-process.ts";
import { sinkPublisher } from "./sink-publisher.ts";

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

const publisher = sinkPublisher(Number(variable("SINK_PORT")), variable("INSTANCE_NAME"));
const relay = relayOfProcess("sink", publisher);
for (const name of TOLD) relay.on(name, say);
await startUntilSigterm(relay);
