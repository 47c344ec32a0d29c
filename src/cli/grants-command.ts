import type { Command } from "commander";
import { isLog } from "../config/presets.ts";
import { MESSAGE_SCHEMA } from "../sources/postgres/log/log-preset.ts";
import { type End, EXIT, Exit } from "./exit.ts";

export function addGrantsCommand(program: Command, end: End): void {
  program
    .command("grants")
    .description("print the rights that the relay's role needs, and no more, for the owner of the tables to run")
    .argument("<role>", "the role that the relay logs in as")
    .action(async (role: string) => {
      end(await printGrants(role));
    });
}

/** Prints and changes nothing: who may grant is not who delivers. */
async function printGrants(role: string): Promise<number> {
  const { loadConfig } = await import("../config/load-config.ts");
  const { configSources } = await import("./config-sources.ts");
  const { TableFinder } = await import("../config/find-tables.ts");
  const { grantsFor } = await import("../postgres/grants.ts");
  const { withDatabase } = await import("./with-database.ts");
  const { config } = await loadConfig(configSources());
  return await withDatabase(config.database, async (database) => {
    const found = (await new TableFinder(database, { ...config, subscribers: [] }).find()).filter(
      ({ isThere }) => isThere,
    );
    if (found.length === 0) {
      throw new Exit(EXIT.failed, ["no outbox table was found: look at OUTBOX_SCHEMAS and OUTBOX_TABLE"]);
    }
    process.stdout.write(
      grantsFor({
        role,
        relaySchema: database.relaySchema,
        tables: found.filter(({ preset }) => !isLog(preset)),
        logs: found.filter(({ preset, schema }) => isLog(preset) && schema !== MESSAGE_SCHEMA),
        hasWal: found.some(({ preset }) => preset === "wal"),
        retention: config.retentionMs !== null,
      }),
    );
    return EXIT.ok;
  });
}
