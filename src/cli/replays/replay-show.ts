import { plural } from "../../core/plural.ts";
import { type FrozenPlan, listPlanItems, listPlans, showPlan } from "../../operations/replay/frozen-plan.ts";
import { type PlanStratum, type Stratum, stratumText } from "../../operations/replay/plan-strata.ts";
import { EXIT, Exit } from "../../service/exit.ts";
import { limitOf, oneLine } from "../events/events-commands.ts";
import { withTarget } from "../operation-target.ts";
import { printJson, textTable } from "../terminal/output.ts";
import type { PageFlags, PlanFlags, PlanListFlags } from "./replay-commands.ts";

/** `outbox-relay replay list`. */
export async function listCommand({ output, limit, ...choice }: PlanListFlags): Promise<number> {
  return await withTarget(async ({ database }) => {
    const page = await listPlans(database, { ...choice, limit: limitOf(limit) });
    if (output === "json") printJson(page);
    else if (page.plans.length === 0) process.stderr.write("no plans\n");
    else {
      const rows = page.plans.map((it) => [
        it.createdAt,
        it.id,
        it.state,
        it.action,
        `${it.progress.done}/${it.count}`,
        it.createdBy,
        oneLine(it.filter),
      ]);
      process.stdout.write(textTable(["CREATED", "PLAN", "STATE", "ACTION", "DONE", "BY", "FILTER"], rows));
      printNextPage(page.cursor);
    }
    return EXIT.ok;
  });
}

/** `outbox-relay replay show`. */
export async function showCommand(id: string, { output }: Pick<PlanFlags, "output">): Promise<number> {
  return await withTarget(async ({ database }) => {
    const plan = requirePlan(id, await showPlan(database, id));
    if (output === "json") printJson(plan);
    else process.stdout.write(planText(plan));
    return EXIT.ok;
  });
}

/** `outbox-relay replay items`. */
export async function itemsCommand(id: string, flags: PageFlags): Promise<number> {
  return await withTarget(async ({ database }) => {
    const plan = requirePlan(id, await showPlan(database, id));
    const { cursor, state } = flags;
    const page = await listPlanItems(database, plan.id, { limit: limitOf(flags.limit), cursor, state });
    if (flags.output === "json") printJson(page);
    else if (page.items.length === 0) process.stderr.write("no events match\n");
    else {
      const rows = page.items.map((it) => [
        it.seq,
        it.state,
        it.type,
        it.key ?? "-",
        it.id,
        it.source,
        oneLine(it.reason ?? "-"),
      ]);
      process.stdout.write(textTable(["NO", "STATE", "TYPE", "KEY", "ID", "SOURCE", "REASON"], rows));
      printNextPage(page.cursor);
    }
    return EXIT.ok;
  });
}

function printNextPage(cursor: string | null): void {
  if (cursor !== null) process.stderr.write(`next page: --cursor ${cursor}\n`);
}

/** Ends the command where the plan does not exist. */
export function requirePlan(id: string, plan: FrozenPlan | null): FrozenPlan {
  if (plan !== null) return plan;
  throw new Exit(EXIT.notFound, [`no replay plan with id ${id}. \`outbox-relay replay list\` lists them.`]);
}

/** A plan as text for the terminal. */
export function planText(plan: FrozenPlan): string {
  const { action, count, keys, progress, state, subject } = plan;
  const part = (name: string, counts: Readonly<Record<string, number>>) =>
    Object.entries(counts).map(([what, number]) => `  ${name.padEnd(7)} ${String(number).padStart(6)}  ${what}\n`);
  const what = subject === "dead" ? "dead letter" : "delivered event";
  const stages = state === "planned" ? "" : `, stage ${plan.stage}`;
  return [
    `plan ${plan.id}, ${state}${stages}: ${action} ${plural(count, what)} of ${plural(keys, "key")}\n`,
    ...part("source", plan.bySource),
    ...part("type", plan.byType),
    ...part("error", plan.byError),
    ...(action === "replay" ? [strataText(plan.strata, true)] : []),
    ...plan.warnings.map((warning) => `! ${warning}\n`),
    ...(state === "planned" ? [] : [`  ${progressText(progress)}\n`]),
    ...(plan.stopReason === null ? [] : [`stopped: ${plan.stopReason}\n`]),
  ].join("");
}

/** The groups from which the canary is taken, or that a change without canary touches. */
export function strataText(strata: readonly (Stratum & Partial<PlanStratum>)[], hasCanary = false): string {
  const lines = strata.map((it) => {
    const { count, done = 0, error, failed = 0, failure = null } = it;
    const state = done + failed === 0 ? "" : `, ${done} done, ${failed} failed`;
    const why = failure === null ? (error === null ? "" : `: ${oneLine(error)}`) : `: stopped: ${oneLine(failure)}`;
    return `  ${String(count).padStart(14)}  ${stratumText(it)}${state}${why}\n`;
  });
  const first = hasCanary ? ", one event of each goes first" : "";
  return `  by type, destination and error${first}:\n${lines.join("")}`;
}

/** The progress of a plan in one line. */
export function progressText({ done, failed, left, sent, waiting }: FrozenPlan["progress"]): string {
  return `${done} done, ${sent} in flight, ${failed} failed, ${left} skipped, ${waiting} waiting`;
}
