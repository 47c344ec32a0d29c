import { columnsConfig } from "../config/columns-config.ts";
import { ConfigProblems } from "../config/config-problems.ts";
import { loadDatabaseConfig, loadSettings } from "../config/load-config.ts";
import type { OperationTarget } from "../operations/event-source.ts";
import { shownRules } from "../operations/redact-shown.ts";
import { configSources } from "./config-sources.ts";
import { withDatabase } from "./with-database.ts";

/** For a command that only needs the database: neither sources nor a destination have to be set. */
export async function withTarget(work: (target: OperationTarget) => Promise<number>): Promise<number> {
  const { database: options } = await loadDatabaseConfig(configSources());
  const { settings } = await loadSettings(configSources());
  const problems: string[] = [];
  const columns = columnsConfig(settings.OUTBOX_COLUMNS, problems);
  if (problems.length > 0) throw new ConfigProblems(problems);
  return await withDatabase(options, (database) =>
    work({ database, columns, shown: shownRules(settings.REDACT ?? []) }),
  );
}
