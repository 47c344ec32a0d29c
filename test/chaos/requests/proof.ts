import { systemClock } from "../../../src/core/clock.ts";
import { SeededRandom } from "../../../src/testing/simulator/seeded-random.ts";
import { until } from "../../servers/until.ts";
import { giveCommands } from "./commands.ts";
import { planRequests, SECRET } from "./plan.ts";
import { historyOf } from "./redis-history.ts";
import { CHECKPOINT, openScene, type Scene, type SceneOptions } from "./scene.ts";
import { storedEvents } from "./stored-log.ts";
import { type Blow, FAILOVER_WEIGHTS, Striker } from "./strikes.ts";
import { judge, type Verdict } from "./verdict.ts";

export interface ProofOptions extends SceneOptions {
  readonly requests: number;
  /** How long commands are given and blows fall. */
  readonly seconds: number;
  readonly seed: number;
  /** Dealt first, in this order. */
  readonly plan?: readonly Blow[];
  /** Whether Redis also comes back without its last writes, as after a failover. */
  readonly failovers?: boolean;
  /** For the proof of the proof: markers are deleted in the middle and all is read again, and the run must fail. */
  readonly forgets?: boolean;
  readonly log: (line: string) => void;
}

export interface ProofReport {
  readonly verdict: Verdict;
  readonly blows: Readonly<Record<Blow, number>>;
  readonly turns: number;
  readonly bankCalls: number;
  readonly bankRepeats: number;
  readonly cutOff: number;
  readonly seconds: number;
  readonly drainSeconds: number;
}

const QUEUE = "payment.payout";
const GAP_MS_MAX = 900;
const DRAIN_MS = 180_000;

/** The example from command to outcome, with everything but the bank killed and frozen at random. */
export async function proveRequests(options: ProofOptions): Promise<ProofReport> {
  const { log, requests: count, seconds, seed } = options;
  const startedMs = performance.now();
  const requests = planRequests(count, seed);
  await using scene = await openScene(options);
  const random = new SeededRandom(seed, 2);
  const striker = new Striker(scene, random, log, options.failovers ? FAILOVER_WEIGHTS : undefined);
  let given = 0;
  const commands = giveCommands(scene.log, requests, seconds * 900, () => {
    given += 1;
  });
  const plan = [...(options.plan ?? [])];
  let isForgetful = options.forgets ?? false;
  const untilMs = performance.now() + seconds * 1_000;
  // A busy machine needs longer for the planned blows than there is time.
  while (plan.length > 0 || performance.now() < untilMs) {
    await systemClock.sleep(random.between(0, GAP_MS_MAX));
    if (isForgetful && given > count / 2) {
      await forget(scene);
      isForgetful = false;
    }
    await striker.strike(plan.shift());
  }
  await Promise.all([commands, striker.settle()]);
  log(`all ${given} commands are given; everybody is back`);
  const drainMs = performance.now();
  const undone = await drained(scene, count);
  const drainSeconds = (performance.now() - drainMs) / 1_000;
  const { bank, redis, store } = scene;
  const troubles = [...undone, ...(await troublesOf(scene))];
  const turns = Number(await scene.admin.get(`${CHECKPOINT}:turns`));
  const evidence = { requests, events: storedEvents(store.folder), history: historyOf(redis.folder, QUEUE) };
  const verdict = judge({ ...evidence, transfers: bank.transfers, calls: bank.calls });
  return {
    verdict: { ...verdict, violations: [...verdict.violations, ...troubles] },
    blows: striker.blows,
    turns,
    bankCalls: [...bank.calls.values()].reduce((sum, calls) => sum + calls, 0),
    bankRepeats: bank.repeated,
    cutOff: bank.cutOff,
    seconds: (performance.now() - startedMs) / 1_000,
    drainSeconds,
  };
}

/** Every request has an outcome and nothing waits in the queue; else it is told what does. */
async function drained({ admin, store }: Scene, requests: number): Promise<string[]> {
  const key = (part: string) => `bull:${QUEUE}:${part}`;
  const look = async () => {
    const finals = storedEvents(store.folder).filter(
      ({ data, type }) => type === "PayoutCompleted.v1" || (type === "PayoutFailed.v1" && data.final === true),
    ).length;
    const [wait, active, delayed] = await Promise.all([
      admin.llen(key("wait")),
      admin.llen(key("active")),
      admin.zcard(key("delayed")),
    ]);
    return { finals, wait, active, delayed };
  };
  let last: Awaited<ReturnType<typeof look>> | null = null;
  const isDrained = async () => {
    last = await look();
    return last.finals >= requests && last.wait + last.active + last.delayed === 0;
  };
  return await until("all is done", isDrained, DRAIN_MS).then(
    () => [],
    () => [`not done within ${DRAIN_MS} ms: ${JSON.stringify(last)}`],
  );
}

async function troublesOf({ admin, relays, workers }: Scene): Promise<string[]> {
  const broken = await admin.zcard(`bull:${QUEUE}:failed`);
  const dead = await admin.hlen(`${CHECKPOINT}:dead`);
  const halted = relays
    .logs(({ state }) => state === "halted")
    .map((line) => `a relay halted: ${JSON.stringify(line)}`);
  const jobs = workers
    .logs(({ outcome }) => outcome === "broken")
    .map((line) => `a job broke: ${JSON.stringify(line)}`);
  const deserters = [...(await relays.deserters()), ...(await workers.deserters())];
  const told = [relays, workers].some((crew) => crew.says(SECRET));
  await Promise.all([relays.stopAll(), workers.stopAll()]);
  return [
    ...(broken > 0 ? [`${broken} jobs are in the failed set`] : []),
    ...(dead > 0 ? [`${dead} events are dead`] : []),
    ...(told ? ["a log tells what only the event store and the bank may know"] : []),
    ...[...halted, ...jobs, ...deserters],
  ];
}

async function forget({ admin }: Scene): Promise<void> {
  const markers = await admin.keys("payment.payout:v1:*:dispatched:*");
  await admin
    .multi()
    .del(CHECKPOINT, ...markers)
    .set(CHECKPOINT, "beginning")
    .exec();
}
