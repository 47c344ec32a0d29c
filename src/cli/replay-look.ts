import { type FrozenPlan, listPlanItems, listPlans, showPlan } from "../operations/replay/frozen-plan.ts";
import { limitOf, oneLine, printJson } from "./events-commands.ts";
import { EXIT, Exit } from "./exit.ts";
import { withTarget } from "./operation-target.ts";
import type { PageFlags, PlanFlags } from "./replay-commands.ts";
import { textTable } from "./text-table.ts";

export async function listCommand(flags: PageFlags): Promise<number> {
  return await withTarget(async ({ database }) => {
    const page = await listPlans(database, { limit: limitOf(flags.limit), cursor: flags.cursor });
    if (flags.output === "json") printJson(page);
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
      tellMore(page.cursor);
    }
    return EXIT.ok;
  });
}

export async function showCommand(id: string, { output }: Pick<PlanFlags, "output">): Promise<number> {
  return await withTarget(async ({ database }) => {
    const plan = requirePlan(id, await showPlan(database, id));
    if (output === "json") printJson(plan);
    else process.stdout.write(planText(plan));
    return EXIT.ok;
  });
}

export async function itemsCommand(id: string, flags: PageFlags): Promise<number> {
  return await withTarget(async ({ database }) => {
    const plan = requirePlan(id, await showPlan(database, id));
    const { cursor, state } = flags;
    const page = await listPlanItems(database, plan.id, { limit: limitOf(flags.limit), cursor, state });
    if (flags.output === "json") printJson(page);
    else if (page.items.length === 0) process.stderr.write("no such events\n");
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
      tellMore(page.cursor);
    }
    return EXIT.ok;
  });
}

function tellMore(cursor: string | null): void {
  if (cursor !== null) process.stderr.write(`more: add --cursor ${cursor}\n`);
}

export function requirePlan(id: string, plan: FrozenPlan | null): FrozenPlan {
  if (plan !== null) return plan;
  throw new Exit(EXIT.notFound, [`There is no replay plan ${id}. \`outbox-relay replay list\` shows them.`]);
}

export function planText(plan: FrozenPlan): string {
  const { action, count, keys, progress, state, subject } = plan;
  const part = (name: string, counts: Readonly<Record<string, number>>) =>
    Object.entries(counts).map(([what, number]) => `  ${name.padEnd(7)} ${String(number).padStart(6)}  ${what}\n`);
  const what = subject === "dead" ? "dead letters" : "delivered events";
  const stages = state === "planned" ? "" : `, stage ${plan.stage}`;
  return [
    `plan ${plan.id}, ${state}${stages}: ${action} ${count} ${what} of ${keys} keys\n`,
    ...part("source", plan.bySource),
    ...part("type", plan.byType),
    ...part("error", plan.byError),
    ...plan.warnings.map((warning) => `! ${warning}\n`),
    ...(state === "planned" ? [] : [`  ${progressText(progress)}\n`]),
    ...(plan.stopReason === null ? [] : [`stopped: ${plan.stopReason}\n`]),
  ].join("");
}

export function progressText({ done, failed, left, sent, waiting }: FrozenPlan["progress"]): string {
  return `${done} done, ${sent} on their way, ${failed} failed, ${left} left alone, ${waiting} waiting`;
}
