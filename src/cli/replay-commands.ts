import { type Command, Option } from "commander";
import { ITEM_STATES, type ItemState } from "../operations/replay/plan-states.ts";
import { outputOption } from "./events-commands.ts";
import type { End } from "./exit.ts";

export interface PlanFlags {
  readonly all?: boolean;
  readonly delivered?: boolean;
  readonly discard?: boolean;
  readonly pipeline?: string;
  readonly rate?: string;
  readonly reason?: string;
  readonly yes?: boolean;
  readonly output: "text" | "json";
}

export interface PageFlags {
  readonly limit: string;
  readonly cursor?: string;
  readonly state?: ItemState;
  readonly output: "text" | "json";
}

/** `outbox-relay replay`: frozen plans, looked at before they are carried out. */
export function addReplayCommands(program: Command, end: End): void {
  const replay = program
    .command("replay")
    .description(
      "send events again by a frozen plan: look at it, then run it; one event first, then ten, then the rest",
    );
  withChoice(replay.command("now", { isDefault: true }).description("plan, show what would be done, ask, and run"))
    .option("--yes", "do not ask")
    .action(async (words: string[], flags: PlanFlags) => end(await (await work()).replayNow(words, flags)));
  withChoice(
    replay.command("plan").description("write down which events are meant, each as it is now; nothing is sent"),
  ).action(async (words: string[], flags: PlanFlags) => end(await (await work()).planCommand(words, flags)));
  replay
    .command("run")
    .description("carry a plan out, and watch it; it stops when the same error comes back")
    .argument("<id>", "of the plan")
    .option("--reason <text>", "why, for the record")
    .addOption(outputOption())
    .action(async (id: string, flags: PlanFlags) => end(await (await work()).runCommand(id, flags)));
  withPage(replay.command("list").description("plans, the last ones first")).action(async (flags: PageFlags) =>
    end(await (await look()).listCommand(flags)),
  );
  replay
    .command("show")
    .description("one plan, and how far it is")
    .argument("<id>", "of the plan")
    .addOption(outputOption())
    .action(async (id: string, flags: PlanFlags) => end(await (await look()).showCommand(id, flags)));
  withPage(replay.command("items").description("the events of a plan, in the order in which they are carried out"))
    .argument("<id>", "of the plan")
    .addOption(new Option("--state <state>", "only those in this state").choices([...ITEM_STATES]))
    .action(async (id: string, flags: PageFlags) => end(await (await look()).itemsCommand(id, flags)));
  for (const verb of ["pause", "cancel"] as const) {
    replay
      .command(verb)
      .description(verb === "pause" ? "send nothing more for now; `replay run` goes on" : "end a plan for good")
      .argument("<id>", "of the plan")
      .option("--reason <text>", "why, for the record")
      .addOption(outputOption())
      .action(async (id: string, flags: PlanFlags) => end(await (await work()).endCommand(verb, id, flags)));
  }
}

const work = () => import("./replay-work.ts");
const look = () => import("./replay-look.ts");

function withChoice(command: Command): Command {
  return command
    .argument("[filter...]", "which events, as type:order.* key:42 since:2026-01-31 group:3f9a")
    .option("--all", "every dead letter")
    .option("--delivered", "delivered events instead of dead letters")
    .option("--discard", "give dead letters up instead of sending them")
    .option("--pipeline <name>", "of delivered events, where several pipelines read their source")
    .option("--rate <number>", "events a second, at most")
    .option("--reason <text>", "why, for the record")
    .addOption(outputOption());
}

function withPage(command: Command): Command {
  return command
    .option("--limit <number>", "on a page, at most 500", "50")
    .option("--cursor <text>", "go on behind a page, as that page said")
    .addOption(outputOption());
}
