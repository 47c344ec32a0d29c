// One relay as a process of its own, from the outbox of a database to Kafka. Started by the fleet of a proof.
// It prints every technical event as a line of JSON, but for those that come once per delivered event, batch or run.
import type { Publisher } from "../../../src/ports/publisher.ts";
import type { TechnicalEventName } from "../../../src/ports/technical-events.ts";
import type { Transactions } from "../../../src/ports/transactions.ts";
import { kafkaPublisher } from "../../../src/publishers/kafka/kafka-publisher.ts";
import { relayOfProcess, say, startUntilSigterm, variable } from "../../e2e/relay-of-process.ts";
import { logsOfProcess } from "../log-sources.ts";

const TOO_MANY: readonly TechnicalEventName[] = ["IntentRelayed", "BatchSettled", "RunEnded", "SourceAnswered"];

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
const relay = relayOfProcess(
  "kafka",
  process.env.SABOTAGE === "forget-ledger" ? withoutMemory(publisher) : publisher,
  logsOfProcess(),
);

relay.onAny((event) => !TOO_MANY.includes(event.name) && say(event));
await startUntilSigterm(relay);
