import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Author } from "../operations/author.ts";
import { type OperationTarget, operationReadSettings } from "../operations/event-source.ts";
import { type FrozenPlan, showPlan } from "../operations/replay/frozen-plan.ts";
import { makePlan } from "../operations/replay/plan-replay.ts";
import { cancelPlan, pausePlan, startPlan } from "../operations/replay/plan-state.ts";
import { runPlan } from "../operations/replay/replay-runner.ts";
import type { Database } from "../postgres/pool.ts";
import { statement } from "../postgres/transaction.ts";
import { isConfirmed } from "./dlq-change.ts";
import { printJson } from "./events-commands.ts";
import { EXIT, Exit } from "./exit.ts";
import { withTarget } from "./operation-target.ts";
import { userName } from "./pause-commands.ts";
import { countBar } from "./progress.ts";
import type { PlanFlags } from "./replay-commands.ts";
import { planText, progressText, requirePlan } from "./replay-look.ts";

const LOOK_MS = 300;
/** So long a running service has to take the plan up before this process does it itself. */
const PATIENCE_MS = 4_000;

export async function planCommand(words: readonly string[], flags: PlanFlags): Promise<number> {
  return await withTarget(async (target) => {
    const plan = await planned(target, words, flags);
    if (flags.output === "json") printJson(plan);
    else process.stdout.write(`${planText(plan)}run it with: outbox-relay replay run ${plan.id}\n`);
    return EXIT.ok;
  });
}

/** Plans, shows what would be done, asks, and runs. */
export async function replayNow(words: readonly string[], flags: PlanFlags): Promise<number> {
  if (!flags.yes && !(process.stdin.isTTY && process.stderr.isTTY)) {
    const ways = "add --yes, or look first with `replay plan`";
    throw new Exit(EXIT.usage, [`replay asks before it acts, and here is nobody to ask: ${ways}`]);
  }
  return await withTarget(async (target) => {
    const plan = await planned(target, words, flags);
    process.stderr.write(planText(plan));
    if (plan.count === 0) return EXIT.ok;
    if (!flags.yes && !(await isConfirmed(`${plan.action} ${plan.count} events?`))) {
      await cancelPlan(target.database, plan.id, authorOf({ reason: "not confirmed" }));
      throw new Exit(EXIT.failed, ["nothing was changed"]);
    }
    return await carryOut(target, plan.id, flags);
  });
}

export async function runCommand(id: string, flags: Pick<PlanFlags, "output" | "reason">): Promise<number> {
  return await withTarget((target) => carryOut(target, id, flags));
}

export async function endCommand(verb: "pause" | "cancel", id: string, flags: PlanFlags): Promise<number> {
  return await withTarget(async ({ database }) => {
    const act = verb === "pause" ? pausePlan : cancelPlan;
    const plan = requirePlan(id, await act(database, id, authorOf(flags)));
    if (flags.output === "json") printJson(plan);
    else process.stdout.write(`plan ${plan.id} is ${plan.state}: ${progressText(plan.progress)}\n`);
    return EXIT.ok;
  });
}

async function planned(target: OperationTarget, words: readonly string[], flags: PlanFlags): Promise<FrozenPlan> {
  const { all, delivered, discard, pipeline, rate } = flags;
  return await makePlan(target, {
    action: discard ? "discard" : "replay",
    subject: delivered ? "delivered" : "dead",
    q: words.join(" "),
    all,
    pipeline,
    ratePerSecond: rate === undefined ? undefined : rateOf(rate),
    author: authorOf(flags),
  });
}

function rateOf(text: string): number {
  const [, number] = /^(\d{1,7}(?:\.\d{1,3})?)(?:\/s)?$/.exec(text) ?? [];
  if (number !== undefined && Number(number) > 0) return Number(number);
  throw new Exit(EXIT.usage, [`--rate ${JSON.stringify(text)} is no rate: write events a second, as 100`]);
}

function authorOf({ reason }: { readonly reason?: string | undefined }): Author {
  return { by: userName(), reason, via: "cli" };
}

async function carryOut(
  target: OperationTarget,
  id: string,
  flags: Pick<PlanFlags, "output" | "reason">,
): Promise<number> {
  const { database } = target;
  const started = requirePlan(id, await startPlan(database, id, authorOf(flags)));
  if (started.action === "replay" && !(await isDelivering(database))) {
    process.stderr.write("no relay runs at present: the plan goes on as soon as one does\n");
    if (flags.output === "json") printJson(started);
    else process.stdout.write(planText(started));
    return EXIT.partly;
  }
  const plan = await followed(target, started.id);
  if (flags.output === "json") printJson(plan);
  else process.stdout.write(`plan ${plan.id} is ${plan.state}: ${progressText(plan.progress)}\n`);
  if (plan.stopReason !== null) process.stderr.write(`stopped: ${plan.stopReason}\n`);
  if (plan.state === "stopped") return EXIT.failed;
  return plan.state === "done" && plan.progress.failed + plan.progress.left === 0 ? EXIT.ok : EXIT.partly;
}

async function isDelivering(database: Database): Promise<boolean> {
  const settings = operationReadSettings(database, "looking for relays");
  const text = `select 1 from ${database.tables.instances} where alive_until > clock_timestamp() limit 1`;
  return (await statement(database.pool, settings, text)).length > 0;
}

/** Watches the plan to its end. Where no service takes it up, this process does. */
async function followed(target: OperationTarget, id: string): Promise<FrozenPlan> {
  const bar = countBar(process.stderr);
  const patienceEndsMs = performance.now() + PATIENCE_MS;
  try {
    for (;;) {
      const plan = requirePlan(id, await showPlan(target.database, id));
      const { done, failed, left } = plan.progress;
      bar.show(done + failed + left, plan.count);
      if (plan.state !== "running") return plan;
      const mayDoIt = plan.action === "discard" || performance.now() >= patienceEndsMs;
      if (!plan.isServed && mayDoIt) await runSelf(target, id, bar);
      else await sleep(LOOK_MS);
    }
  } finally {
    bar.end();
  }
}

async function runSelf(target: OperationTarget, id: string, bar: ReturnType<typeof countBar>): Promise<void> {
  const { signal } = new AbortController();
  const onProgress = ({ count, progress: { done, failed, left } }: FrozenPlan) => bar.show(done + failed + left, count);
  await runPlan(target, id, { runner: randomUUID(), signal, onProgress });
}
