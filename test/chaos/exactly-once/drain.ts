import { crc32 } from "node:zlib";
import { runCommand } from "../../e2e/service-process.ts";
import { headerText, type KafkaRecord, readTopics } from "../../servers/kafka-reader.ts";
import { until } from "../../servers/until.ts";
import type { EventWriter } from "./event-writer.ts";
import { describeState, endInGoodOrder, type Scene } from "./scene.ts";
import { type Arrival, judge, type Verdict } from "./verdict.ts";

const DRAIN_MS = 180_000;
/** Beyond the timeout of a transaction that has lost its owner: the broker looks for those, and writes markers. */
const SETTLE_MS = 120_000;

/**
 * Waits until all is delivered and nothing is under way any more, then ends the relays in good order. Returns how many
 * events were sent again by hand: nobody can tell an event that is on its way at three kills in a row from one that ends
 * the process.
 */
export async function drain(scene: Scene, log: (line: string) => void): Promise<number> {
  const { stand, fleet } = scene;
  const settleMs = scene.options.transactionTimeoutMs + SETTLE_MS;
  log("no more blows: waiting for what is kept back");
  stand.mistreat(() => ({ kind: "pass" }));
  await until("nothing is kept back any more", () => stand.heldCount === 0, settleMs);
  log("waiting until all events are marked as delivered");
  let buried = 0;
  const isDrained = async () => {
    if ((await scene.pending()) === 0) return true;
    buried += await replayBuried(scene);
    return false;
  };
  await until("all events are marked", isDrained, DRAIN_MS).catch(async (cause) => {
    throw new Error(`what is left:\n${await describeState(scene)}`, { cause });
  });
  log("waiting until no transaction is open");
  await stand.settled(scene.topics, settleMs);
  log("ending the relays");
  await Promise.all(fleet.processes.filter(({ isRunning }) => isRunning).map(endInGoodOrder));
  return buried;
}

/** As an operator would: by the command, and only those of this reason. */
async function replayBuried({ stage }: Scene): Promise<number> {
  const dead = await stage.sql<{ id: string }>(
    "select event_id as id from outbox_relay.holds where state = 'dead' and reason like '%CRASH_POISON%'",
  );
  if (dead.length === 0) return 0;
  const words = [
    "dlq",
    "replay",
    ...dead.map(({ id }) => id),
    "--yes",
    "--reason",
    "the relay was killed, not the event's fault",
  ];
  const { code, stderr } = await runCommand(words, { DATABASE_URL: stage.url });
  if (code !== 0) throw new Error(`dlq replay: ${stderr}`);
  return dead.length;
}

/** One more relay and one more transaction: whatever a checkpoint has forgotten would come again now, or not at all. */
export async function readOn(scene: Scene, writer: EventWriter, log: (line: string) => void): Promise<void> {
  log("one more relay reads on");
  await scene.fleet.start("the-last");
  await writer.writeLast();
  await drain(scene, log);
}

/** By a reader that has nothing in common with the relay's client. */
export async function judgeScene(
  { outbox, stage, stand, topics }: Scene,
  { diary, eras }: EventWriter,
  isolation: "read_committed" | "read_uncommitted" = "read_committed",
): Promise<Verdict> {
  const records = await readTopics(stand.directBrokers, topics, { isolation });
  return judge({ diary, rows: await outbox.rows(stage.pool), arrivals: records.map(arrivalOf), eras });
}

export function arrivalOf(record: KafkaRecord): Arrival {
  const { topic, partition, offset, key, value } = record;
  return {
    topic,
    partition,
    offset,
    id: headerText(record, "event-id"),
    key: key?.toString() ?? null,
    crc: crc32(value ?? ""),
  };
}
