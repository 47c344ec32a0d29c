import { loadDatabaseConfig, loadSettings } from "../config/load-config.ts";
import { ConfigProblems } from "../config/reading/config-problems.ts";
import { columnsConfig } from "../config/sources/columns-config.ts";
import type { OperationTarget } from "../operations/events/event-source.ts";
import { shownRules } from "../operations/events/redact-shown.ts";
import { type Database, openDatabase } from "../postgres/pool.ts";
import { configSources } from "./config-sources.ts";

/** For a command that needs only the database: neither sources nor destinations have to be configured. */
export async function withTarget(work: (target: OperationTarget) => Promise<number>): Promise<number> {
  const { database: options } = await loadDatabaseConfig(configSources());
  const { settings } = await loadSettings(configSources());
  const problems: string[] = [];
  const columns = columnsConfig(settings.OUTBOX_COLUMNS, problems);
  if (problems.length > 0) throw new ConfigProblems(problems);
  return await withDatabase(options, (database) =>
    work({ database, columns, shown: shownRules(settings.REDACT ?? []), traceUrl: settings.TRACE_URL ?? null }),
  );
}

/** Opens a database for one command, and closes it afterwards. */
export async function withDatabase(
  target: Parameters<typeof openDatabase>[0],
  work: (database: Database) => Promise<number>,
): Promise<number> {
  const database = openDatabase(target);
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}
