import { reasonOf } from "../core/errors.ts";
import { quoteIdentifier } from "../postgres/identifiers.ts";
import type { DatabaseOptions } from "../postgres/pool.ts";
import { ConfigProblems } from "./config-problems.ts";
import { databaseConfig } from "./database-config.ts";
import { type Environment, readSettings } from "./environment.ts";

interface MigrationTarget {
  readonly database: DatabaseOptions;
  readonly relaySchema: string;
}

/** All that a migration needs: neither sources nor a destination. Printing needs no database either. */
export function migrationTarget(env: Environment, { isOffline }: { isOffline: boolean }): MigrationTarget {
  const { settings } = readSettings(env);
  const problems: string[] = [];
  const database = databaseConfig(settings, problems);
  const relaySchema = settings.DATABASE_SCHEMA;
  if (isOffline) problems.length = 0;
  try {
    quoteIdentifier(relaySchema);
  } catch (error) {
    problems.push(`DATABASE_SCHEMA: ${reasonOf(error)}`);
  }
  if (problems.length > 0) throw new ConfigProblems(problems);
  return { database, relaySchema };
}
