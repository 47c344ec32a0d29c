import { loadDatabaseConfig, loadLogsConfig } from "../../config/load-config.ts";
import { managedTableSql } from "../../postgres/managed/managed-table.sql.ts";
import { migrateDown, migrateUp, migrationStatus, sqlOf } from "../../postgres/migrations/migrate.ts";
import type { Migration } from "../../postgres/migrations/migration.ts";
import type { Database } from "../../postgres/pool.ts";
import { EXIT } from "../../service/exit.ts";
import { createAll } from "../../service/postgres-outbox-store.ts";
import { configSources } from "../config-sources.ts";
import { withDatabase } from "../operation-target.ts";
import { type Form, printJson } from "../terminal/output.ts";

interface MigrateOptions {
  readonly sql?: boolean;
  readonly to?: string;
  readonly output: Form;
}

/** What `migrate` does. */
export type MigrateAction = "up" | "down" | "status";

/** `outbox-relay migrate up|down|status`. Prints its result to standard output. */
export async function migrateCommand(action: MigrateAction, options: MigrateOptions): Promise<number> {
  const { database: target, relaySchema } = await loadDatabaseConfig(configSources(), {
    isOffline: options.sql ?? false,
  });
  const logs = await loadLogsConfig(configSources());
  const to = options.to === undefined ? undefined : Number(options.to);
  const hasManaged = action === "up" && to === undefined;
  if (options.sql) {
    if (action === "status") return await withDatabase(target, (database) => showStatus(database, options));
    const managed = hasManaged ? logs.named.filter(({ preset }) => preset === "managed") : [];
    const sql = [
      sqlOf(action, relaySchema, to === undefined ? {} : { to }),
      ...managed.map(({ schema, table }) => managedTableSql({ ...logs.managed, table: { schema, table } })),
    ].join("\n");
    if (options.output === "json") printJson({ schema: relaySchema, sql });
    else print(sql);
    return EXIT.ok;
  }
  return await withDatabase(target, async (database) => {
    if (action === "status") return await showStatus(database, options);
    const steps = action === "up" ? await migrateUp(database, to) : await migrateDown(database, to ?? 0);
    const created = hasManaged ? await createAll(database, logs) : [];
    if (options.output === "json") {
      const done = steps.map(({ name, version }) => ({ version, name }));
      printJson({ schema: relaySchema, action, steps: done, created });
      return EXIT.ok;
    }
    showSteps(action, relaySchema, steps);
    for (const name of created) print(`${name}: created, a managed outbox\n`);
    return EXIT.ok;
  });
}

function showSteps(action: "up" | "down", relaySchema: string, steps: readonly Migration[]): void {
  if (steps.length === 0) print(`${relaySchema}: nothing to do\n`);
  for (const { version, name } of steps) print(`${relaySchema}: ${action} ${version} ${name}\n`);
}

async function showStatus(database: Database, { output }: MigrateOptions): Promise<number> {
  const status = await migrationStatus(database);
  if (output === "json") {
    printJson({ schema: database.relaySchema, ...status });
    return EXIT.ok;
  }
  const state =
    status.version === status.newest ? "up to date" : status.version === 0 ? "not installed" : "not up to date";
  print(`${database.relaySchema}: version ${status.version} of ${status.newest}, ${state}\n`);
  for (const { version, name, appliedAt } of status.applied) print(`  ${version}  ${name}  applied ${appliedAt}\n`);
  for (const { version, name } of status.pending) print(`  ${version}  ${name}  pending\n`);
  return EXIT.ok;
}

function print(text: string): void {
  process.stdout.write(text);
}
