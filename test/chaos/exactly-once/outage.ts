import { readFileSync } from "node:fs";
import { until } from "../../servers/until.ts";
import { drain, judgeScene } from "./drain.ts";
import { openScene, type Scene, type SceneOptions } from "./scene.ts";
import type { Verdict } from "./verdict.ts";

export interface OutageOptions extends Omit<SceneOptions, "replicated"> {
  /** All brokers are down for so long. */
  readonly seconds: number;
  readonly log: (line: string) => void;
}

export interface OutageReport {
  readonly verdict: Verdict;
  /** Events that waited when the brokers came back. */
  readonly backlog: number;
  /** Failures that were put down to an event. */
  readonly attemptsSpent: number;
  /** Failing and dead events in the relay's schema, at the end of the outage. */
  readonly holds: number;
  /** The most memory that any relay ever had: before the outage, at its end, and after the drain. */
  readonly memoryMbBefore: number;
  readonly memoryMbDuring: number;
  readonly memoryMbAfter: number;
  /** From the return of the brokers until all is marked as delivered. */
  readonly drainSeconds: number;
}

/** The brokers are gone for a while and the application goes on writing. Nobody helps afterwards. */
export async function surviveOutage(options: OutageOptions): Promise<OutageReport> {
  await using scene = await openScene({ ...options, replicated: false });
  const { stand, fleet } = scene;
  const writer = scene.write();
  let memoryMbBefore = 0;
  let memoryMbDuring = 0;
  let backlog = 0;
  let holds = 0;
  let backMs = 0;
  try {
    await until("events flow", async () => (await scene.deliveredCount()) > 500);
    memoryMbBefore = memoryMb(scene);
    options.log("stop all brokers");
    await Promise.all(stand.nodes.map((node) => node.stop()));
    const endMs = performance.now() + options.seconds * 1_000;
    await until("the outage is over", () => performance.now() >= endMs, options.seconds * 1_000 + 5_000);
    memoryMbDuring = memoryMb(scene);
    [backlog, holds] = [await scene.pending(), await holdCount(scene)];
    options.log(`start all brokers, ${backlog} events wait`);
    await Promise.all(stand.nodes.map((node) => node.restart()));
    backMs = performance.now();
  } finally {
    await writer.stop();
  }
  await until("all events are marked", async () => (await scene.pending()) === 0, 120_000);
  const drainSeconds = (performance.now() - backMs) / 1_000;
  const memoryMbAfter = memoryMb(scene);
  await drain(scene, options.log);
  const attemptsSpent = fleet.told("IntentRelayFailed").filter(({ scope }) => scope === "event").length;
  const verdict = await judgeScene(scene, writer);
  const memory = { memoryMbBefore, memoryMbDuring, memoryMbAfter };
  return { verdict, backlog, attemptsSpent, holds, ...memory, drainSeconds };
}

async function holdCount({ stage }: Scene): Promise<number> {
  const [row] = await stage.sql<{ count: string }>(
    "select (select count(*) from outbox_relay.holds) + (select count(*) from outbox_relay.failed_events) as count",
  );
  return Number(row?.count);
}

/** The kernel keeps the highest value, so that no peak between two looks is missed. */
function memoryMb({ fleet }: Scene): number {
  const peaks = fleet.processes.map(({ pid }) => {
    const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Number(kilobytes) / 1_024;
  });
  return Math.round(Math.max(...peaks));
}
