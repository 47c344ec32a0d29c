import { plural } from "../../core/plural.ts";
import type { ChangeReport } from "../../operations/dead-letters/dead-letter-change.ts";
import type { DeadLetterChoice } from "../../operations/dead-letters/dead-letter-choice.ts";
import { requireFound } from "../../operations/dead-letters/letter-group.ts";
import type { OperationTarget } from "../../operations/events/event-source.ts";
import { planReplay, type ReplayPlan } from "../../operations/replay/replay-plan.ts";
import { EXIT, Exit } from "../../service/exit.ts";
import { withTarget } from "../operation-target.ts";
import { userName } from "../pipelines/pause-commands.ts";
import { strataText } from "../replays/replay-show.ts";
import { isConfirmed, requireInteractive } from "../terminal/confirm.ts";
import { printErrors } from "../terminal/error-output.ts";
import { type Form, printJson } from "../terminal/output.ts";
import { type ChangeFlags, choiceOf } from "./dlq-flags.ts";

type Verb = "replay" | "discard";

/**
 * `outbox-relay dlq replay|discard`: shows what it will do, asks, does it and reports the result. One event is changed
 * at once; several go through a plan.
 */
export async function changeCommand(verb: Verb, ids: readonly string[], flags: ChangeFlags): Promise<number> {
  const choice = choiceOf(ids, flags);
  requireSelection(verb, choice, flags);
  requireInteractive(flags.dryRun || flags.yes, `dlq ${verb}`, "add --yes, or --dry-run");
  if (flags.dryRun) return await withTarget((target) => dryRun(target, verb, choice, flags.output));
  if (ids.length !== 1) return await changeByPlan(verb, choice, flags);
  return await withTarget((target) => changeOne(target, verb, choice, flags));
}

function requireSelection(verb: Verb, choice: DeadLetterChoice, { all }: ChangeFlags): void {
  const isChosen = Object.values(choice).some((part) => part !== undefined);
  if (isChosen && all)
    throw new Exit(EXIT.usage, ["--all selects every dead letter: use either --all, or ids and filters"]);
  if (isChosen || all) return;
  const selectors = "ids, --group, --type, --key, --source or --all";
  throw new Exit(EXIT.usage, [`dlq ${verb} needs a selection of dead letters: ${selectors}`]);
}

async function dryRun(target: OperationTarget, verb: Verb, choice: DeadLetterChoice, output: Form): Promise<number> {
  const plan = await requirePlanned(target, choice, verb);
  if (output === "json") printJson(plan);
  else process.stdout.write(planText(verb, plan, choice.ids?.length !== 1));
  return EXIT.ok;
}

async function requirePlanned(
  { database }: OperationTarget,
  choice: DeadLetterChoice,
  verb: Verb,
): Promise<ReplayPlan> {
  const plan = await planReplay(database, choice, verb);
  await requireFound(database, plan.count, choice);
  return plan;
}

async function changeOne(
  target: OperationTarget,
  verb: Verb,
  choice: DeadLetterChoice,
  flags: ChangeFlags,
): Promise<number> {
  const plan = await requirePlanned(target, choice, verb);
  if (!flags.yes) {
    process.stderr.write(planText(verb, plan, false));
    if (!(await isConfirmed(`${verb} it?`))) throw new Exit(EXIT.failed, ["not confirmed; nothing was changed"]);
  }
  const report = await applyChange(verb, target, choice, flags);
  printReport(verb, report, flags.output);
  return report.leftCount > 0 ? EXIT.partly : EXIT.ok;
}

/**
 * Goes through a plan, which stores its events before the first change. A replay starts with canaries and stops if one
 * fails.
 */
async function changeByPlan(
  verb: Verb,
  { ids = [], ...filter }: DeadLetterChoice,
  flags: ChangeFlags,
): Promise<number> {
  const { filterText } = await import("../../operations/filter/filter-language.ts");
  const { unknownIds } = await import("../../operations/dead-letters/dead-letter-change.ts");
  const { runPlanned } = await import("../replays/replay-run.ts");
  const { all, output, reason, yes } = flags;
  const selection = ids.length === 0 ? { all } : { ids };
  const past = verb === "replay" ? "replayed and delivered" : "discarded";
  return await withTarget(async (target) => {
    const unknown = await unknownIds(target.database, { ids, ...filter });
    const words = [filterText(filter)];
    const code = await runPlanned(
      target,
      words,
      { discard: verb === "discard", ...selection, output, reason, yes },
      (plan) => {
        if (output === "text") process.stderr.write(`by plan ${plan.id}\n`);
        return `${plural(plan.progress.done, "dead letter")} ${past}\n`;
      },
    );
    printErrors(unknown.map((id) => `no open dead letter with id ${id}`));
    return code === EXIT.ok && unknown.length > 0 ? EXIT.partly : code;
  });
}

async function applyChange(
  verb: Verb,
  target: OperationTarget,
  choice: DeadLetterChoice,
  { reason }: ChangeFlags,
): Promise<ChangeReport> {
  const { discardDeadLetters } = await import("../../operations/dead-letters/dead-letter-discard.ts");
  const { replayDeadLetter } = await import("../../operations/replay/replay.ts");
  const [id = ""] = choice.ids ?? [];
  const author = { by: userName(), reason };
  if (verb === "replay") return await replayDeadLetter(target, { ...choice, ids: [id] }, author);
  return await discardDeadLetters(target, { choice, author: { ...author, reason: reason ?? "" } });
}

function planText(verb: Verb, plan: ReplayPlan, hasCanary: boolean): string {
  const part = (name: string, counts: Readonly<Record<string, number>>) =>
    Object.entries(counts).map(([what, count]) => `  ${name.padEnd(7)} ${String(count).padStart(6)}  ${what}\n`);
  return [
    `would ${verb} ${plural(plan.count, "dead letter")} of ${plural(plan.keys, "key")}\n`,
    ...part("source", plan.bySource),
    ...part("type", plan.byType),
    ...part("error", plan.byError),
    strataText(plan.strata, verb === "replay" && hasCanary),
    ...plan.warnings.map((warning) => `! ${warning}\n`),
  ].join("");
}

function printReport(verb: Verb, report: ChangeReport, output: Form): void {
  if (output === "json") {
    printJson(report);
    return;
  }
  const past = verb === "replay" ? "replayed: a running relay sends it within seconds" : "discarded";
  if (report.done > 0) process.stdout.write(`the dead letter is ${past}\n`);
  printErrors(report.left.map(({ id, reason, source }) => `unchanged: ${id} of ${source}: ${reason}`));
}
