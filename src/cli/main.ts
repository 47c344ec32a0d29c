import { Command, CommanderError, Option } from "commander";
import { ConfigProblems } from "../config/config-problems.ts";
import { settingsHelp } from "../config/settings-help.ts";
import { isRelayError, reasonOf } from "../core/errors.ts";
import { addConfigCommands } from "./config-command.ts";
import { addConfigOptions } from "./config-sources.ts";
import { addDevCommand } from "./dev-command.ts";
import { addDlqCommands } from "./dlq-commands.ts";
import { addDynamoDbCommands } from "./dynamodb-commands.ts";
import { addEventsCommands } from "./events-commands.ts";
import { type End, EXIT, Exit } from "./exit.ts";
import { addInitCommand } from "./init-command.ts";
import { addKeysCommands } from "./keys-commands.ts";
import type { MigrateAction } from "./migrate-command.ts";
import { addOperationsCommands } from "./operations-commands.ts";
import { guardTerminal, plainLines } from "./plain-text.ts";
import { addReplayCommands } from "./replay-commands.ts";
import { addRequestsCommands } from "./requests-commands.ts";
import { VERSION } from "./version.ts";

/** Runs the command line and ends the process with the code that the command gave. */
export async function main(args: readonly string[]): Promise<never> {
  let code: number = EXIT.ok;
  const program = commands((result) => {
    code = result;
  });
  try {
    await program.parseAsync([...args], { from: "user" });
  } catch (error) {
    code = explain(error);
  }
  process.exit(code);
}

/** Commands that hand out events as they are, or draw with sequences of their own. */
const OWN_TERMINAL = new Set(["outbox-relay run", "outbox-relay dev", "outbox-relay top", "dynamodb run"]);

/** All commands, with nothing done yet. */
export function commands(end: End): Command {
  const program = new Command("outbox-relay")
    .description("Carries events from the outbox tables of your database to the message broker.")
    .version(VERSION, "-v, --version", "print the version")
    .exitOverride()
    .showSuggestionAfterError()
    .configureHelp({ showGlobalOptions: true });
  addConfigOptions(program);
  program.hook("preAction", (_, action) => {
    if (!OWN_TERMINAL.has(`${action.parent?.name()} ${action.name()}`))
      for (const stream of [process.stdout, process.stderr]) guardTerminal(stream);
  });
  program
    .command("run")
    .description("deliver until stopped; settings come from a config file and the environment")
    .option("--once", "deliver what is there and end: 0 all delivered, 5 something is left, 1 destination unreachable")
    .option(
      "--only <types>",
      "only events of these types, as order.placed,invoice.*; the others are left to other relays",
    )
    .option("--migrate", "create or update the relay's own schema first")
    .addHelpText("after", () => `\n${settingsHelp()}`)
    .action(async (options: { once?: boolean; migrate?: boolean }) => {
      const { runCommand } = await import("./run-command.ts");
      end(await runCommand(options));
    });
  program
    .command("migrate")
    .description("create, update or remove the relay's own schema, with the managed outboxes, or show its version")
    .argument("<action>", "up, down or status")
    .option("--sql", "print the statements instead of running them")
    .option("--to <version>", "stop at this version of the schema")
    .addOption(new Option("-o, --output <form>", "of the status").choices(["text", "json"]).default("text"))
    .action(async (action: string, options: { sql?: boolean; to?: string; output?: "text" | "json" }) => {
      const { migrateCommand } = await import("./migrate-command.ts");
      end(await migrateCommand(requireAction(action), options));
    });
  program
    .command("adopt")
    .description("go on with exactly-once delivery where ledger and database contradict, or after a restore")
    .argument("[pipeline]", "only this one, as the log names it")
    .option("--lane <number>", "only this lane")
    .option("--as-copy", "this database is a copy that works beside its original")
    .action(async (pipeline: string | undefined, options: { lane?: string; asCopy?: boolean }) => {
      const { adoptCommand } = await import("./adopt-command.ts");
      end(await adoptCommand(pipeline, options));
    });
  addOperationsCommands(program, end);
  addEventsCommands(program, end);
  addDlqCommands(program, end);
  addReplayCommands(program, end);
  addKeysCommands(program, end);
  addRequestsCommands(program, end);
  addDynamoDbCommands(program, end);
  addConfigCommands(program, end);
  addInitCommand(program, end);
  addDevCommand(program, end);
  return program;
}

function requireAction(action: string): MigrateAction {
  if (action === "up" || action === "down" || action === "status") return action;
  throw new Exit(EXIT.usage, [`migrate ${action} is no command: write migrate up, migrate down or migrate status`]);
}

/** Codes of errors that a person mends in the settings, the grants or the schema. */
const TO_BE_MENDED: ReadonlySet<string> = new Set([
  "CONFIG_INVALID",
  "CONFLICT",
  "SCHEMA_MISSING",
  "SCHEMA_OLDER",
  "SCHEMA_NEWER",
  "GRANT_MISSING",
  "DATABASE_REFUSED",
  "TRANSACTIONS_REFUSED",
  "LEDGER_UNFIT",
]);

/** Says what happened on standard error and returns the exit code. */
function explain(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (error instanceof Exit) return complain(error.code, error.lines);
  if (error instanceof ConfigProblems) return complain(EXIT.usage, error.problems);
  if (!isRelayError(error))
    return complain(EXIT.failed, [error instanceof Error ? (error.stack ?? error.message) : reasonOf(error)]);
  const lines = [error.message];
  if (error.code === "SCHEMA_MISSING" || error.code === "SCHEMA_OLDER") {
    lines.push("Run `outbox-relay migrate up`, or start with `outbox-relay run --migrate`.");
  }
  return complain(TO_BE_MENDED.has(error.code) ? EXIT.usage : EXIT.failed, lines);
}

function complain(code: number, lines: readonly string[]): number {
  process.stderr.write(lines.map((line) => `outbox-relay: ${plainLines(line)}\n`).join(""));
  return code;
}
