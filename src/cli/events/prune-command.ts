import type { Command } from "commander";
import { type End, EXIT, Exit } from "../../service/exit.ts";
import { durationMs } from "../terminal/duration.ts";
import { type Form, printJson } from "../terminal/output.ts";

interface PruneFlags {
  readonly table?: string;
  readonly deliveredAge?: string;
  readonly deadAge?: string;
  readonly dryRun?: boolean;
  readonly output: Form;
}

/** `outbox-relay prune`. */
export function addPruneCommand(program: Command, end: End): void {
  program
    .command("prune")
    .description("delete old delivered and dead rows of an Open Outbox table; RETENTION does it for other tables")
    .option("--delivered-age <time>", "delete rows that were delivered longer ago, such as 7d")
    .option(
      "--dead-age <time>",
      "delete dead rows that last changed longer ago, such as 30d, and discard their letters",
    )
    .option("--table <schema.table>", "default: OUTBOX_TABLE or STORAGE_TABLE_NAME, otherwise public.openoutbox_events")
    .option("--dry-run", "count the rows and delete none")
    .action(async (flags: PruneFlags) => {
      end(await prune(flags));
    });
}

async function prune({ deadAge, deliveredAge, dryRun = false, output, table }: PruneFlags): Promise<number> {
  if (deliveredAge === undefined && deadAge === undefined) {
    throw new Exit(EXIT.usage, ["prune needs --delivered-age or --dead-age, such as --delivered-age 7d"]);
  }
  const deliveredMs = deliveredAge === undefined ? null : durationMs("--delivered-age", deliveredAge);
  const deadMs = deadAge === undefined ? null : durationMs("--dead-age", deadAge);
  const { loadSettings } = await import("../../config/load-config.ts");
  const { parseTableName } = await import("../../postgres/identifiers.ts");
  const { pruneOpenOutbox } = await import("../../operations/events/prune-open-outbox.ts");
  const { configSources } = await import("../config-sources.ts");
  const { withTarget } = await import("../operation-target.ts");
  const { userName } = await import("../pipelines/pause-commands.ts");
  const { settings } = await loadSettings(configSources());
  const name = parseTableName(table ?? settings.OUTBOX_TABLE ?? "public.openoutbox_events");
  return await withTarget(async (target) => {
    const author = { by: userName(), reason: `pruned after ${deadAge}` };
    const result = await pruneOpenOutbox(target, { table: name, deliveredMs, deadMs, isDryRun: dryRun, author });
    if (output === "json") printJson({ ...result, dryRun });
    else {
      const verb = dryRun ? "would delete" : "deleted";
      process.stdout.write(`${result.table}: ${verb} ${result.delivered} delivered and ${result.dead} dead events\n`);
    }
    return EXIT.ok;
  });
}
