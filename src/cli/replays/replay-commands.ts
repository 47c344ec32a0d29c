import { type Command, Option } from "commander";
import { ITEM_STATES, type ItemState, PLAN_STATES, type PlanChoice } from "../../operations/replay/frozen-plan.ts";
import type { End } from "../../service/exit.ts";
import type { Form } from "../terminal/output.ts";

/** The options of the plan commands. */
export interface PlanFlags {
  /** Event ids, in addition to the filter. */
  readonly ids?: readonly string[] | undefined;
  readonly all?: boolean | undefined;
  readonly delivered?: boolean | undefined;
  readonly discard?: boolean | undefined;
  readonly pipeline?: string | undefined;
  readonly rate?: string | undefined;
  readonly patch?: string | undefined;
  readonly reason?: string | undefined;
  readonly yes?: boolean | undefined;
  readonly skipFailed?: boolean | undefined;
  readonly output: Form;
}

/** The options of the commands that print pages. */
export interface PageFlags {
  readonly limit: string;
  readonly cursor?: string;
  readonly state?: ItemState;
  readonly output: Form;
}

/** The options of `replay list`. */
export interface PlanListFlags extends Omit<PageFlags, "state">, PlanChoice {}

/** `outbox-relay replay`: plans that store their events, to be reviewed before they run. */
export function addReplayCommands(program: Command, end: End): void {
  const replay = program
    .command("replay")
    .description(
      "replay events through a frozen plan: review it, then run it. Starts with one event of each destination, error and type, then ten, then the rest",
    );
  withChoice(replay.command("now", { isDefault: true }).description("plan, preview, confirm and run"))
    .option("--yes", "skip the confirmation")
    .action(async (words: string[], flags: PlanFlags) => end(await (await work()).replayNow(words, flags)));
  withChoice(
    replay
      .command("plan")
      .description("create a plan that stores the selected events as they are now; nothing is sent"),
  ).action(async (words: string[], flags: PlanFlags) => end(await (await work()).planCommand(words, flags)));
  replay
    .command("run")
    .description("run a plan and follow it; it stops when the same error returns")
    .argument("<id>", "plan id")
    .option("--skip-failed", "skip events whose destination, error and type failed in this plan")
    .option("--reason <text>", "reason, for the audit log")
    .action(async (id: string, flags: PlanFlags) => end(await (await work()).runCommand(id, flags)));
  withPage(replay.command("list").description("list plans, newest first"))
    .addOption(new Option("--state <state>", "only this state").choices([...PLAN_STATES]))
    .addOption(new Option("--action <action>", "only this action").choices(["replay", "discard"]))
    .option("--contains <text>", "only plans with this text in the id, filter, reason or author")
    .action(async (flags: PlanListFlags) => end(await (await show()).listCommand(flags)));
  replay
    .command("show")
    .description("show one plan and its progress")
    .argument("<id>", "plan id")
    .action(async (id: string, flags: PlanFlags) => end(await (await show()).showCommand(id, flags)));
  withPage(replay.command("items").description("list the events of a plan in execution order"))
    .argument("<id>", "plan id")
    .addOption(new Option("--state <state>", "only this state").choices([...ITEM_STATES]))
    .action(async (id: string, flags: PageFlags) => end(await (await show()).itemsCommand(id, flags)));
  for (const verb of ["pause", "cancel"] as const) {
    replay
      .command(verb)
      .description(verb === "pause" ? "pause a plan; `replay run` continues it" : "cancel a plan for good")
      .argument("<id>", "plan id")
      .option("--reason <text>", "reason, for the audit log")
      .action(async (id: string, flags: PlanFlags) => end(await (await work()).endCommand(verb, id, flags)));
  }
}

const work = () => import("./replay-run.ts");
const show = () => import("./replay-show.ts");

function withChoice(command: Command): Command {
  return command
    .argument("[filter...]", "selects events, such as type:order.* key:42 since:2026-01-31 group:3f9a")
    .option("--all", "every dead letter")
    .option("--delivered", "delivered events instead of dead letters")
    .option("--discard", "discard dead letters instead of sending them")
    .option("--pipeline <name>", "pipeline of delivered events, if several pipelines read their source")
    .option("--rate <number>", "rate limit in events per second")
    .option(
      "--patch <json>",
      'apply a JSON merge patch to each payload of dead letters, such as {"customer": {"id": "4711"}}',
    )
    .option("--reason <text>", "reason, for the audit log");
}

function withPage(command: Command): Command {
  return command
    .option("--limit <number>", "page size, at most 500", "50")
    .option("--cursor <text>", "continue after a page, with the cursor that it printed");
}
