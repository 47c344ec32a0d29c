import { setTimeout as pauseMs } from "node:timers/promises";
import { SeededRandom } from "../../../src/testing/simulator/seeded-random.ts";
import type { LateCounts } from "../../servers/kafka-proxy-watch.ts";
import { until } from "../../servers/until.ts";
import { drain, judgeScene, readOn } from "./drain.ts";
import type { EventWriter } from "./event-writer.ts";
import { failOver } from "./failover.ts";
import { keepEvidence } from "./kept-evidence.ts";
import { transactionsAt } from "./log-segments.ts";
import type { SourceKind } from "./proved-outbox.ts";
import { describeState, openScene, REQUEST_TIMEOUT_MS, type Scene, type SceneOptions } from "./scene.ts";
import { type Blow, LOG_WEIGHTS, Striker } from "./strikes.ts";
import type { Verdict } from "./verdict.ts";
import { wireFaults } from "./wire-faults.ts";

export interface ProofOptions extends SceneOptions {
  /** The strikes end after so many kill -9 of relays. */
  readonly kills: number;
  /** The strikes end after so long at the latest. */
  readonly secondsMax: number;
  /** But not before so many blows. */
  readonly blowsMin?: number;
  /** The blows to deal, from the first again after the last. Absent: drawn by the seed. */
  readonly plan?: readonly Blow[];
  /** How far the standby lags behind that is promoted. */
  readonly behindMs?: number;
  readonly log: (line: string) => void;
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  readonly kills: number;
  readonly restarts: number;
  readonly written: number;
  readonly cutOpen: number;
  readonly late: number;
}

export interface ProofReport {
  readonly source: SourceKind;
  readonly verdict: Verdict;
  readonly blows: Readonly<Record<Blow, number>>;
  readonly cutOpen: number;
  readonly late: LateCounts;
  /** How often the transactions of a lane went on at another broker than before. */
  readonly coordinatorMoves: number;
  /** PostgreSQL ended at once and came back. */
  readonly restarts: number;
  readonly failovers: number;
  /** Settled batches of one lane, at most, that the promoted standby had never heard of. */
  readonly settlesLost: number;
  /** Events of a log that waited beside it when their topic was made at last. */
  readonly parked: number;
  /** Healthy events that were on their way at three kills in a row, and were replayed by hand. */
  readonly buried: number;
  readonly takeOvers: number;
  readonly healedBatches: number;
  readonly seconds: number;
  /** What the brokers' logs say about the records of violations. */
  readonly transactions: readonly string[];
}

/** A write-ahead log has one lane, and all of it waits for each mistreated request. */
const WIRE_FAULT_EVERY_MS: Readonly<Record<SourceKind, number>> = { flag: 400, managed: 400, wal: 2_000 };
const FLOW_MS_MAX = 120_000;
const TRANSACTIONS_SHOWN_MAX = 20;

/** Everything that can happen happens, many times; then all that was written must have arrived once and in order. */
export async function proveExactlyOnce(options: ProofOptions): Promise<ProofReport> {
  const startedMs = performance.now();
  await using scene = await openScene(options);
  const { stand, fleet } = scene;
  const isLog = scene.outbox.source !== "flag";
  const random = new SeededRandom(options.seed, 1);
  const striker = new Striker({
    ...{ fleet, stand, server: () => scene.server, random: random.fork(), log: options.log },
    ...(isLog ? { weights: LOG_WEIGHTS } : {}),
  });
  const writer = scene.write();
  let struck = { settlesLost: 0, parked: 0 };
  try {
    await flow(scene, 50);
    stand.mistreat(
      wireFaults({
        random: random.fork(),
        everyMs: WIRE_FAULT_EVERY_MS[scene.outbox.source],
        requestTimeoutMs: REQUEST_TIMEOUT_MS,
        transactionTimeoutMs: options.transactionTimeoutMs,
      }),
    );
    struck = await strikeOn(scene, striker, writer, options, random.fork());
  } finally {
    await writer.stop();
  }
  const buried = await drain(scene, options.log);
  if (isLog) await readOn(scene, writer, options.log);
  options.log("reading the topics");
  const isolation = options.sabotage === "read-uncommitted" ? "read_uncommitted" : "read_committed";
  const verdict = await judgeScene(scene, writer, isolation);
  const isSurprise = verdict.violations.length > 0 && options.sabotage === undefined;
  if (isSurprise) options.log(`kept for you to look at: ${keepEvidence(scene, verdict)}`);
  return {
    source: scene.outbox.source,
    verdict,
    blows: striker.blows,
    cutOpen: striker.cutOpen,
    late: stand.watch.lateCounts,
    coordinatorMoves: stand.watch.coordinatorMoves,
    restarts: striker.restarts,
    failovers: writer.eras - 1,
    ...struck,
    buried,
    takeOvers: fleet.told("LaneTaken").length,
    healedBatches: healedBatches(scene),
    transactions: await transactionsOf(scene, verdict),
    seconds: (performance.now() - startedMs) / 1_000,
  };
}

async function strikeOn(
  scene: Scene,
  striker: Striker,
  writer: EventWriter,
  options: ProofOptions,
  random: SeededRandom,
): Promise<{ readonly settlesLost: number; readonly parked: number }> {
  const endMs = performance.now() + options.secondsMax * 1_000;
  const isHalfOver = () =>
    striker.blows.kill >= options.kills / 2 || performance.now() > endMs - options.secondsMax * 500;
  let settlesLost = 0;
  let parked: number | null = scene.outbox.source === "flag" ? 0 : null;
  let dealt = 0;
  while ((striker.blows.kill < options.kills && performance.now() < endMs) || dealt < (options.blowsMin ?? 0)) {
    if (scene.pair !== null && writer.eras === 1 && isHalfOver()) {
      options.log("fail over to the standby");
      settlesLost = await failOver(scene.pair, scene.stage, options.behindMs);
      await until("the writer has found the new primary", () => writer.eras === 2);
    }
    if (isHalfOver()) parked ??= await openTheWay(scene, options.log);
    await striker.strike(options.plan?.[dealt % options.plan.length]);
    dealt += 1;
    await flow(scene, random.int(1, 80));
    await pauseMs(random.between(0, 500));
    options.onProgress?.({
      kills: striker.blows.kill,
      restarts: striker.restarts,
      written: writer.diary.size,
      cutOpen: striker.cutOpen,
      late: scene.stand.watch.lateCounts.late,
    });
  }
  parked ??= await openTheWay(scene, options.log);
  return { settlesLost, parked };
}

/** For the events that have waited for their topic. The blows that follow meet relays which let them go. */
export async function openTheWay({ createLateTopic, stage }: Scene, log: (line: string) => void): Promise<number> {
  const parked = await until("events are parked", async () => {
    const [row] = await stage.sql<{ count: number }>("select count(*)::int from outbox_relay.parked");
    return row!.count;
  });
  log(`create the late topic, ${parked} events are parked`);
  await createLateTopic();
  return parked;
}

/** Returns when so many more events are delivered: no blow may bring it all to a standstill. */
export async function flow(scene: Scene, events: number): Promise<void> {
  const look = async () =>
    await scene
      .deliveredCount()
      .then((delivered) => ({ delivered }))
      .catch(() => undefined);
  const before = await until("the database answers", look);
  const hasMoved = async () => {
    const now = await look();
    if (now === undefined) return false;
    // A failover sets the count back.
    return now.delivered >= before.delivered + events || now.delivered < before.delivered;
  };
  await until(`${events} events are delivered`, hasMoved, FLOW_MS_MAX).catch(async (cause) => {
    throw new Error(`nothing moves any more:\n${await describeState(scene)}`, { cause });
  });
}

function healedBatches({ fleet }: Scene): number {
  return fleet.processes
    .flatMap(({ told }) => told)
    .filter(({ name }) => name === "LaneHealed")
    .reduce((sum, { batches }) => sum + Number(batches), 0);
}

/** By the log of the first broker: in a cluster each of the three has a copy of everything. */
async function transactionsOf(scene: Scene, { violations }: Verdict): Promise<string[]> {
  const places = violations.flatMap((violation) => violation.places).slice(0, TRANSACTIONS_SHOWN_MAX);
  const folder = scene.stand.nodes[0]?.folder;
  return folder === undefined || places.length === 0 ? [] : await transactionsAt(folder, places);
}
