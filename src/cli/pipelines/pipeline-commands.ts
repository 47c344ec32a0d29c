import type { Command } from "commander";
import type { ForgetPlan } from "../../operations/pipelines/pipeline-forget.ts";
import { type End, EXIT, Exit } from "../../service/exit.ts";
import { type Form, printJson } from "../terminal/output.ts";
import { matchingPipelines, userName } from "./pause-commands.ts";

interface ForgetFlags {
  readonly giveUpEvents?: boolean;
  readonly dryRun?: boolean;
  readonly reason?: string;
  readonly yes?: boolean;
  readonly output: Form;
}

/** `outbox-relay pipeline forget`: removes what a change of routes left behind. */
export function addPipelineCommands(program: Command, end: End): void {
  const pipeline = program.command("pipeline").description("remove pipelines that are no longer configured");
  pipeline
    .command("forget")
    .description("delete an unserved pipeline with its lanes and position, as if it had never existed")
    .argument("<name>", "pipeline name from `outbox-relay status`")
    .option("--give-up-events", "also if this gives up undelivered events; --dry-run lists them")
    .option("--dry-run", "show what would be given up without changing anything")
    .option("--reason <text>", "reason, for the audit log")
    .option("--yes", "skip the confirmation")
    .action(async (name: string, flags: ForgetFlags) => end(await forget(name, flags)));
}

async function forget(name: string, flags: ForgetFlags): Promise<number> {
  const { isConfirmed, requireInteractive } = await import("../terminal/confirm.ts");
  const { withTarget } = await import("../operation-target.ts");
  const { forgetPipeline, planForget } = await import("../../operations/pipelines/pipeline-forget.ts");
  const { knownPipelines } = await import("../../operations/pipelines/pipelines.ts");
  requireInteractive(flags.yes || flags.dryRun, "pipeline forget", "add --yes, or --dry-run");
  return await withTarget(async (target) => {
    const [known] = (await matchingPipelines(await knownPipelines(target.database), name)).filter(
      (it) => it.pipeline === name,
    );
    if (known === undefined)
      throw new Exit(EXIT.usage, [`no pipeline named ${name}: write its full name, including the arrow`]);
    const plan = await planForget(target, known);
    if (flags.dryRun || !flags.yes) printPlan(plan, flags, false);
    if (flags.dryRun) return EXIT.ok;
    if (!flags.yes && !(await isConfirmed(`forget ${name}?`)))
      throw new Exit(EXIT.failed, ["not confirmed; nothing was changed"]);
    const giveUp = flags.giveUpEvents ?? false;
    if (plan.givenUp.length > 0 && !giveUp) {
      throw new Exit(EXIT.usage, [
        `${name} would give up events: ${plan.givenUp.join("; ")}. Add --give-up-events to do so.`,
      ]);
    }
    printPlan(
      await forgetPipeline(target, known, { author: { by: userName(), reason: flags.reason }, giveUp }),
      flags,
      true,
    );
    return EXIT.ok;
  });
}

function printPlan(plan: ForgetPlan, { output }: ForgetFlags, isDone: boolean): void {
  if (output === "json") {
    printJson({ ...plan, isDone });
    return;
  }
  const { givenUp, pipeline, servedBy } = plan;
  const lines = [
    isDone ? `${pipeline} is deleted` : `would delete ${pipeline}`,
    ...givenUp.map((what) => `! ${what}`),
    ...(servedBy.length === 0 ? [] : [`! it is served by ${servedBy.join(", ")}: stop these instances first`]),
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}
