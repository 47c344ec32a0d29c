import type { BenchServers } from "./bench-servers.ts";
import { type CpuTimes, countCpu } from "./cpu-time.ts";
import type { ScenarioOptions } from "./figure.ts";
import { type Arrivals, countArrivals, inspectTopic, requireEachOnce } from "./kafka-consumer.ts";
import type { KafkaTarget, RelayRun } from "./relay-order.ts";
import { runRelay } from "./relay-run.ts";

export type LogStage = ScenarioOptions & Pick<BenchServers, "postgres" | "kafka" | "freshTopic">;

interface LogDelivered {
  readonly ms: number;
  readonly warmPerS: number;
  readonly rssMb: number;
  readonly cpu: CpuTimes;
}

type Way = Pick<KafkaTarget, "delivery" | "transactionSize"> & Pick<RelayRun, "kind" | "wal">;

/** From the log as it is, until its end; counted at a consumer. */
export async function deliverLog(
  stage: LogStage,
  rows: number,
  { delivery, transactionSize, ...source }: Way,
): Promise<LogDelivered> {
  await using topic = await stage.freshTopic();
  const { brokers } = stage.kafka;
  using consumer = countArrivals(brokers, topic.name, rows);
  const target = { brokers, topic: topic.name, service: topic.name, delivery };
  const kafka = transactionSize === undefined ? target : { ...target, transactionSize };
  const usedCpu = countCpu(stage.postgres, stage.kafka);
  const result = await runRelay(stage.postgres, { ...source, until: "drained", kafka });
  const arrivals = await consumer.all;
  const cpu = usedCpu(result);
  const content = await inspectTopic(brokers, topic.name, "event-id");
  requireEachOnce(content, rows);
  if (content.transactionEnds > 0 !== (delivery === "exactly-once")) {
    throw new Error(`${content.transactionEnds} ends of transactions, delivery ${delivery}`);
  }
  return {
    ms: arrivals.reachedMs(1) - result.startedAtMs,
    warmPerS: warmPerS(arrivals, rows),
    rssMb: result.rssMb,
    cpu,
  };
}

/** Over the last two thirds of the events, when everything is warm. */
export function warmPerS(arrivals: Arrivals, rows: number): number {
  return ((rows * 2) / 3 / (arrivals.reachedMs(1) - arrivals.reachedMs(1 / 3))) * 1_000;
}
