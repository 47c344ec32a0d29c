// One relay as a process of its own, from a log to the test sink. It prints every technical event as a line of JSON, but
// for those that come once per delivered event, batch or run.
import type { TechnicalEventName } from "../../src/ports/technical-events.ts";
import { relayOfProcess, say, startUntilSigterm, variable } from "../e2e/relay-of-process.ts";
import { sinkPublisher } from "../e2e/sink-publisher.ts";
import { logsOfProcess } from "./log-sources.ts";

const TOO_MANY: readonly TechnicalEventName[] = ["IntentRelayed", "BatchSettled", "RunEnded", "SourceAnswered"];

const publisher = sinkPublisher(Number(variable("SINK_PORT")), variable("INSTANCE_NAME"));
const relay = relayOfProcess("sink", publisher, logsOfProcess());
relay.onAny((event) => !TOO_MANY.includes(event.name) && say(event));
await startUntilSigterm(relay);
