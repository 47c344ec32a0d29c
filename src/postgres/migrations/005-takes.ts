import { relayTables } from "../relay-tables.ts";
import type { Migration } from "./migration.ts";

/** What each instance takes, so that the others know what nobody does. Null: an older program, which does not say. */
export const takesMigration: Migration = {
  version: 5,
  name: "takes",
  servesFrom: 3,
  up: (relaySchema) => `alter table ${relayTables(relaySchema).instances} add column takes jsonb;`,
  down: (relaySchema) => `alter table ${relayTables(relaySchema).instances} drop column takes;`,
};
