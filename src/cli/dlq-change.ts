import { createInterface } from "node:readline/promises";
import type { ChangeReport } from "../operations/dead-letter-change.ts";
import type { DeadLetterChoice } from "../operations/dead-letter-choice.ts";
import { discardDeadLetters } from "../operations/dead-letter-discard.ts";
import type { OperationTarget } from "../operations/event-source.ts";
import { replay } from "../operations/replay.ts";
import { planReplay, type ReplayPlan } from "../operations/replay-plan.ts";
import { type ChangeFlags, choiceOf, type Form } from "./dlq-flags.ts";
import { printJson } from "./events-commands.ts";
import { EXIT, Exit } from "./exit.ts";
import { withTarget } from "./operation-target.ts";
import { userName } from "./pause-commands.ts";
import { countBar } from "./progress.ts";

/** `outbox-relay dlq replay|discard`: tells what it would do, asks, does it, and tells what came of it. */
export async function changeCommand(
  verb: "replay" | "discard",
  ids: readonly string[],
  flags: ChangeFlags,
): Promise<number> {
  const choice = choiceOf(ids, flags);
  requireMeant(verb, choice, flags);
  if (!flags.dryRun && !flags.yes && !(process.stdin.isTTY && process.stderr.isTTY)) {
    throw new Exit(EXIT.usage, [`dlq ${verb} asks before it acts, and here is nobody to ask: add --yes, or --dry-run`]);
  }
  return await withTarget(async (target) => {
    const plan = await planReplay(target.database, choice);
    if (flags.dryRun) {
      if (flags.output === "json") printJson(plan);
      else process.stdout.write(planText(verb, plan));
      return EXIT.ok;
    }
    if (!flags.yes && plan.count > 0) {
      process.stderr.write(planText(verb, plan));
      if (!(await isConfirmed(`${verb} ${plan.count} dead letters?`)))
        throw new Exit(EXIT.failed, ["nothing was changed"]);
    }
    const report = await carryOut(verb, target, choice, flags);
    tell(verb, report, flags.output);
    return exitCodeOf(report, ids.length > 0);
  });
}

function requireMeant(verb: string, choice: DeadLetterChoice, { all }: ChangeFlags): void {
  const isChosen = Object.values(choice).some((part) => part !== undefined);
  if (isChosen && all)
    throw new Exit(EXIT.usage, ["--all means every dead letter: leave the ids and filters out, or it"]);
  if (isChosen || all) return;
  const ways =
    verb === "replay" ? "ids, --group, --type, --key, --source or --all" : "ids, --group, --type, --key or --source";
  throw new Exit(EXIT.usage, [`dlq ${verb} needs to know which dead letters: ${ways}`]);
}

async function carryOut(
  verb: "replay" | "discard",
  target: OperationTarget,
  choice: DeadLetterChoice,
  { all = false, reason }: ChangeFlags,
): Promise<ChangeReport> {
  const bar = countBar(process.stderr);
  const author = { by: userName(), reason };
  try {
    if (verb === "replay") {
      return await replay(target, { choice, all, author, progress: bar.show });
    }
    return await discardDeadLetters(target, {
      choice,
      author: { ...author, reason: reason ?? "" },
      progress: bar.show,
    });
  } finally {
    bar.end();
  }
}

export async function isConfirmed(question: string): Promise<boolean> {
  const dialogue = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await dialogue.question(`${question} [y/N] `);
  dialogue.close();
  return /^y(es)?$/i.test(answer.trim());
}

function planText(verb: string, plan: ReplayPlan): string {
  const part = (name: string, counts: Readonly<Record<string, number>>) =>
    Object.entries(counts).map(([what, count]) => `  ${name.padEnd(7)} ${String(count).padStart(6)}  ${what}\n`);
  return [
    `would ${verb} ${plan.count} dead letters of ${plan.keys} keys\n`,
    ...part("source", plan.bySource),
    ...part("type", plan.byType),
    ...part("error", plan.byError),
    ...(verb === "replay" ? plan.warnings.map((warning) => `! ${warning}\n`) : []),
  ].join("");
}

function tell(verb: "replay" | "discard", report: ChangeReport, output: Form): void {
  if (output === "json") {
    printJson(report);
    return;
  }
  const past = verb === "replay" ? "replayed: running relays try them within seconds" : "discarded";
  process.stdout.write(`${report.done} dead letters ${past}\n`);
  for (const { id, reason, source } of report.left) process.stderr.write(`left: ${id} of ${source}: ${reason}\n`);
  for (const id of report.unknown) process.stderr.write(`no dead letter waits under ${id}\n`);
}

function exitCodeOf({ done, leftCount, unknown }: ChangeReport, isByIds: boolean): number {
  if (done === 0 && leftCount === 0) return isByIds ? EXIT.notFound : EXIT.ok;
  return leftCount > 0 || unknown.length > 0 ? EXIT.partly : EXIT.ok;
}
