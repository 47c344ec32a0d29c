import { Command } from "commander";
import { settingsHelp } from "../config/settings/settings.ts";
import { type End, EXIT, Exit } from "../service/exit.ts";
import { VERSION } from "../service/version.ts";
import { addConfigOptions } from "./config-sources.ts";
import { addDlqCommands } from "./dead-letters/dlq-commands.ts";
import { addDynamoDbCommands } from "./dynamodb/dynamodb-commands.ts";
import { addAuditCommand } from "./events/audit-command.ts";
import { addEventsCommands } from "./events/events-commands.ts";
import { addPruneCommand } from "./events/prune-command.ts";
import { addKeysCommands } from "./keys/keys-commands.ts";
import { addLanesCommands } from "./pipelines/lanes-commands.ts";
import { addLimitCommand } from "./pipelines/limit-command.ts";
import { addLogCommands } from "./pipelines/log-commands.ts";
import { addPauseCommands } from "./pipelines/pause-commands.ts";
import { addPipelineCommands } from "./pipelines/pipeline-commands.ts";
import { addStatusCommand } from "./pipelines/status-command.ts";
import { addReplayCommands } from "./replays/replay-commands.ts";
import { addRequestsCommands } from "./requests/requests-commands.ts";
import { addConfigCommands } from "./setup/config-command.ts";
import { addDevCommand } from "./setup/dev-command.ts";
import { addDoctorCommand } from "./setup/doctor-command.ts";
import { addGrantsCommand } from "./setup/grants-command.ts";
import { addInitCommand } from "./setup/init-command.ts";
import type { MigrateAction } from "./setup/migrate-command.ts";
import { addSmokeCommand } from "./setup/smoke-command.ts";
import { addCompletionCommand } from "./terminal/completion-command.ts";
import { explain } from "./terminal/error-output.ts";
import { addOutputOption, type Form, formIn } from "./terminal/output.ts";
import { guardTerminal } from "./terminal/plain-text.ts";
import { addTopCommand } from "./top/top-command.ts";

/** Runs the command line, and ends the process with the command's exit code. */
export async function main(args: readonly string[]): Promise<never> {
  process.exit(await runCommandLine(args));
}

/** Runs the command line and returns the exit code. */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  let code: number = EXIT.ok;
  const form = formIn(args);
  const program = commands((result) => {
    code = result;
  }, form);
  try {
    await program.parseAsync([...args], { from: "user" });
    return code;
  } catch (error) {
    return explain(error, form);
  }
}

/** Commands that write events as they are, or draw with their own escape sequences. */
const OWN_TERMINAL = new Set(["outbox-relay run", "outbox-relay dev", "outbox-relay top", "dynamodb run"]);

/** All commands, as a parser that has not run yet. */
export function commands(end: End, form: Form = "text"): Command {
  const program = new Command("outbox-relay")
    .description("Relays events from the outbox tables of your database to a message broker.")
    .version(VERSION, "-v, --version", "print the version")
    .exitOverride()
    .showSuggestionAfterError()
    // `explain` prints errors; a help text that was not asked for would break JSON output.
    .configureOutput({ outputError: () => {}, ...(form === "json" ? { writeErr: () => {} } : {}) })
    .configureHelp({ showGlobalOptions: true });
  addConfigOptions(program);
  program.hook("preAction", (_, action) => {
    if (!OWN_TERMINAL.has(`${action.parent?.name()} ${action.name()}`))
      for (const stream of [process.stdout, process.stderr]) guardTerminal(stream);
  });
  addServiceCommands(program, end);
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
  addOutputOption(program);
  return program;
}

/** Adds the commands that start the relay and prepare its database. */
function addServiceCommands(program: Command, end: End): void {
  program
    .command("run")
    .description("deliver until stopped; settings come from a config file and the environment")
    .option(
      "--once",
      "deliver the current backlog and exit: 0 all delivered, 5 some events are left, 1 destination unreachable",
    )
    .option("--only <types>", "only these event types, such as order.placed,invoice.*; other relays deliver the rest")
    .option("--migrate", "create or update the relay's own schema first")
    .addHelpText("after", () => `\n${settingsHelp()}`)
    .action(async (options: { once?: boolean; migrate?: boolean; output: Form }) => {
      const { runCommand } = await import("./setup/run-command.ts");
      end(await runCommand(options));
    });
  program
    .command("migrate")
    .description("create, update or remove the relay's schema and the managed outboxes, or show its version")
    .argument("<action>", "up, down or status")
    .option("--sql", "print the statements instead of running them")
    .option("--to <version>", "stop at this schema version")
    .action(async (action: string, options: { sql?: boolean; to?: string; output: Form }) => {
      const { migrateCommand } = await import("./setup/migrate-command.ts");
      end(await migrateCommand(requireAction(action), options));
    });
  program
    .command("adopt")
    .description("continue exactly-once delivery after a restore, or where ledger and database disagree")
    .argument("[pipeline]", "only this pipeline, with the name from the log")
    .option("--lane <number>", "only this lane")
    .option("--as-copy", "this database is a copy that runs beside its original")
    .action(async (pipeline: string | undefined, options: { lane?: string; asCopy?: boolean; output: Form }) => {
      const { adoptCommand } = await import("./setup/adopt-command.ts");
      end(await adoptCommand(pipeline, options));
    });
}

function requireAction(action: string): MigrateAction {
  if (action === "up" || action === "down" || action === "status") return action;
  throw new Exit(EXIT.usage, [`unknown action ${action}: write migrate up, migrate down or migrate status`]);
}

/** Adds the commands that control and examine the relay. */
function addOperationsCommands(program: Command, end: End): void {
  addStatusCommand(program, end);
  addTopCommand(program, end);
  addAuditCommand(program, end);
  addPauseCommands(program, end);
  addLimitCommand(program, end);
  addLanesCommands(program, end);
  addLogCommands(program, end);
  addPipelineCommands(program, end);
  addDoctorCommand(program, end);
  addGrantsCommand(program, end);
  addPruneCommand(program, end);
  addSmokeCommand(program, end);
  addCompletionCommand(program, end);
}
