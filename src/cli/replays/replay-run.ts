import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { plural } from "../../core/plural.ts";
import type { Author } from "../../operations/audit/author.ts";
import { type OperationTarget, operationReadSettings } from "../../operations/events/event-source.ts";
import { type FrozenPlan, showPlan } from "../../operations/replay/frozen-plan.ts";
import { previewPatch } from "../../operations/replay/patch-items.ts";
import { makePlan } from "../../operations/replay/plan-replay.ts";
import { cancelPlan, pausePlan, startPlan } from "../../operations/replay/plan-state.ts";
import { runPlan } from "../../operations/replay/replay-runner.ts";
import type { Database } from "../../postgres/pool.ts";
import { statement } from "../../postgres/transaction.ts";
import { EXIT, Exit } from "../../service/exit.ts";
import { countBar } from "../../service/progress.ts";
import { oneLine } from "../events/events-commands.ts";
import { withTarget } from "../operation-target.ts";
import { userName } from "../pipelines/pause-commands.ts";
import { isConfirmed, requireInteractive } from "../terminal/confirm.ts";
import { printErrors } from "../terminal/error-output.ts";
import { type Form, printJson } from "../terminal/output.ts";
import { plainLine } from "../terminal/plain-text.ts";
import type { PlanFlags } from "./replay-commands.ts";
import { planText, progressText, requirePlan } from "./replay-show.ts";

const POLL_MS = 300;
const STAGES: Readonly<Record<FrozenPlan["stage"], string>> = {
  first: "canary: one event of each destination, error and type",
  ten: "ten events of each",
  rest: "the rest",
};
/** How long a running service gets to start the plan before this process runs it itself. */
const TAKE_UP_MS = 4_000;

/** `outbox-relay replay plan`. */
export async function planCommand(words: readonly string[], flags: PlanFlags): Promise<number> {
  return await withTarget(async (target) => {
    const plan = await planned(target, words, flags);
    const examples = await exampleText(target, plan);
    if (flags.output === "json") printJson(plan);
    else process.stdout.write(`${planText(plan)}${examples}run it with: outbox-relay replay run ${plan.id}\n`);
    return EXIT.ok;
  });
}

/** `outbox-relay replay now`: plans, shows what it will do, asks, and runs. */
export async function replayNow(words: readonly string[], flags: PlanFlags): Promise<number> {
  requireInteractive(flags.yes, "replay", "add --yes, or review it first with `replay plan`");
  return await withTarget((target) => runPlanned(target, words, flags));
}

/** Makes a plan, confirms and runs it. `resultText` is what to print at its end. */
export async function runPlanned(
  target: OperationTarget,
  words: readonly string[],
  flags: PlanFlags,
  resultText = endText,
): Promise<number> {
  const plan = await planned(target, words, flags);
  if (flags.output === "text" || !flags.yes) {
    process.stderr.write(`${planText(plan)}${await exampleText(target, plan)}`);
  }
  if (!flags.yes && !(await isConfirmed(`${plan.action} ${plural(plan.count, "event")}?`))) {
    await cancelPlan(target.database, plan.id, authorOf({ reason: "not confirmed" }));
    throw new Exit(EXIT.failed, ["not confirmed; nothing was changed"]);
  }
  return await startAndFollow(target, plan.id, flags, resultText);
}

/** The closing line for a plan. */
function endText({ id, progress, state }: FrozenPlan): string {
  return `plan ${id} is ${state}: ${progressText(progress)}\n`;
}

/** `outbox-relay replay run`. */
export async function runCommand(
  id: string,
  flags: Pick<PlanFlags, "output" | "reason" | "skipFailed">,
): Promise<number> {
  return await withTarget((target) => startAndFollow(target, id, flags));
}

/** `outbox-relay replay pause|cancel`. */
export async function endCommand(verb: "pause" | "cancel", id: string, flags: PlanFlags): Promise<number> {
  return await withTarget(async ({ database }) => {
    const act = verb === "pause" ? pausePlan : cancelPlan;
    const plan = requirePlan(id, await act(database, id, authorOf(flags)));
    if (flags.output === "json") printJson(plan);
    else process.stdout.write(endText(plan));
    return EXIT.ok;
  });
}

async function planned(target: OperationTarget, words: readonly string[], flags: PlanFlags): Promise<FrozenPlan> {
  const { all, delivered, discard, ids, patch, pipeline, rate } = flags;
  return await makePlan(target, {
    action: discard ? "discard" : "replay",
    subject: delivered ? "delivered" : "dead",
    q: words.join(" "),
    ids,
    all,
    pipeline,
    patch,
    ratePerSecond: rate === undefined ? undefined : rateOf(rate),
    author: authorOf(flags),
  });
}

/** Previews the patch on a few events. */
async function exampleText(target: OperationTarget, plan: FrozenPlan): Promise<string> {
  return (await previewPatch(target, plan))
    .map(({ after, before, id, problem }) => {
      const now = after === null ? `! ${problem}: it would stay unchanged` : `+ ${oneLine(after.text)}`;
      return `${plainLine(id)}\n- ${oneLine(before.text)}\n${now}\n`;
    })
    .join("");
}

function rateOf(text: string): number {
  const [, number] = /^(\d{1,7}(?:\.\d{1,3})?)(?:\/s)?$/.exec(text) ?? [];
  if (number !== undefined && Number(number) > 0) return Number(number);
  throw new Exit(EXIT.usage, [`--rate is ${JSON.stringify(text)}: write events per second, such as 100`]);
}

function authorOf({ reason }: { readonly reason?: string | undefined }): Author {
  return { by: userName(), reason, via: "cli" };
}

async function startAndFollow(
  target: OperationTarget,
  id: string,
  flags: Pick<PlanFlags, "output" | "reason" | "skipFailed">,
  resultText = endText,
): Promise<number> {
  const { database } = target;
  const started = requirePlan(id, await startPlan(database, id, authorOf(flags), flags));
  if (started.action === "replay" && !(await isDelivering(database))) {
    if (flags.output === "json") printJson(started);
    else {
      process.stderr.write("no relay is running: the next one that starts continues the plan\n");
      process.stdout.write(planText(started));
    }
    return EXIT.partly;
  }
  const plan = await followed(target, started.id, flags.output);
  if (flags.output === "json") printJson(plan);
  else {
    process.stdout.write(resultText(plan));
    const { left } = plan.progress;
    if (left > 0) process.stderr.write(`${left} skipped: outbox-relay replay items ${plan.id} --state left\n`);
    if (plan.stopReason !== null) {
      printErrors([`stopped: ${plan.stopReason}`]);
      process.stderr.write(nextSteps(plan));
    }
  }
  if (plan.state === "stopped") return EXIT.failed;
  return plan.state === "done" && plan.progress.failed + plan.progress.left === 0 ? EXIT.ok : EXIT.partly;
}

function nextSteps({ id, strata }: FrozenPlan): string {
  const again = `fix the cause, then run: outbox-relay replay run ${id}\n`;
  const hasOthers = strata.some(({ failure }) => failure === null) && strata.some(({ failure }) => failure !== null);
  return hasOthers
    ? `${again}or continue without the failed groups: outbox-relay replay run ${id} --skip-failed\n`
    : again;
}

async function isDelivering(database: Database): Promise<boolean> {
  const settings = operationReadSettings(database, "looking for relays");
  const text = `select 1 from ${database.tables.instances} where alive_until > clock_timestamp() limit 1`;
  return (await statement(database.pool, settings, text)).length > 0;
}

/** Follows the plan to its end. If no service starts it, this process runs it. */
async function followed(target: OperationTarget, id: string, output: Form): Promise<FrozenPlan> {
  const bar = countBar(process.stderr);
  let shownStage: string | null = null;
  const takeUpEndsMs = performance.now() + TAKE_UP_MS;
  try {
    for (;;) {
      const plan = requirePlan(id, await showPlan(target.database, id));
      const { done, failed, left } = plan.progress;
      const isNewStage = plan.stage !== shownStage && plan.state === "running";
      if (plan.action === "replay" && isNewStage && output === "text") {
        bar.end();
        process.stderr.write(`${STAGES[plan.stage]}; ${progressText(plan.progress)}\n`);
        shownStage = plan.stage;
      }
      bar.show(done + failed + left, plan.count);
      if (plan.state !== "running") return plan;
      const mayDoIt = plan.action === "discard" || performance.now() >= takeUpEndsMs;
      if (!plan.isServed && mayDoIt) await runSelf(target, id, bar);
      else await sleep(POLL_MS);
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
