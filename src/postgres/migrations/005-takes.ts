import { relayTables } from "../relay-tables.ts";
import type { Migration } from "./migration.ts";

/** The type filters of each instance, to find unrouted events. Null: an older program, which does not report them. */
export const takesMigration: Migration = {
  version: 5,
  name: "takes",
  servesFrom: 3,
  up: (relaySchema) => `alter table ${relayTables(relaySchema).instances} add column takes jsonb;`,
  down: (relaySchema) => `alter table ${relayTables(relaySchema).instances} drop column takes;`,
};
