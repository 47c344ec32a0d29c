import type { Command } from "commander";
import type { FoundTable } from "../../config/sources/find-tables.ts";
import { isLog } from "../../config/sources/presets.ts";
import { type End, EXIT, Exit } from "../../service/exit.ts";
import { type Form, printJson } from "../terminal/output.ts";

interface GrantsFlags {
  readonly withSmoke?: boolean;
  readonly output: Form;
}

/** `outbox-relay grants`. */
export function addGrantsCommand(program: Command, end: End): void {
  program
    .command("grants")
    .description("print the minimal GRANT statements for the relay's role, for the owner of the tables to run")
    .argument("<role>", "database role of the relay")
    .option("--with-smoke", "include INSERT, which `outbox-relay smoke` needs")
    .action(async (role: string, flags: GrantsFlags) => {
      end(await printGrants(role, flags));
    });
}

/** Prints only: the role that may grant rights is not the role that delivers. */
async function printGrants(role: string, { output, withSmoke = false }: GrantsFlags): Promise<number> {
  const { loadConfig } = await import("../../config/load-config.ts");
  const { configSources } = await import("../config-sources.ts");
  const { TableFinder } = await import("../../config/sources/find-tables.ts");
  const { neededGrants } = await import("../../operations/doctor/needed-grants.ts");
  const { withDatabase } = await import("../operation-target.ts");
  const { config } = await loadConfig(configSources(), { mayLackDestination: true });
  if (config.store !== null || config.requests !== null) {
    const store = config.store === null ? "KURRENTDB_URL" : "OUTBOX_STORE";
    throw new Exit(EXIT.usage, [`grants are rights in a database, and ${store} needs none`]);
  }
  return await withDatabase(config.database, async (database) => {
    const found = (await new TableFinder(database, { ...config, subscribers: [] }).find()).filter(
      ({ isThere }) => isThere,
    );
    if (found.length === 0) {
      throw new Exit(EXIT.failed, ["no outbox table found: check OUTBOX_SCHEMAS and OUTBOX_TABLE"]);
    }
    const of = (isWanted: (preset: FoundTable["preset"]) => boolean) => found.filter(({ preset }) => isWanted(preset));
    const sql = await neededGrants(database, {
      role,
      queues: of((preset) => !isLog(preset)),
      managed: of((preset) => preset === "managed"),
      eventTables: of((preset) => preset === "tail"),
      wal: of((preset) => preset === "wal"),
      publication: config.logs.wal?.publication,
      retention: config.retentionMs !== null,
      withSmoke,
    });
    if (output === "json") printJson({ role, statements: statementsOf(sql) });
    else process.stdout.write(sql);
    return EXIT.ok;
  });
}

function statementsOf(sql: string): readonly string[] {
  return sql.split("\n").filter((line) => line !== "");
}
