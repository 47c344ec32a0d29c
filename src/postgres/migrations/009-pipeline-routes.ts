import { relayTables } from "../relay-tables.ts";
import type { Migration } from "./migration.ts";

/**
 * Which events a pipeline reads, as its last relay reported, so that pending events can be counted by route while no
 * relay runs. Null: an older program, which does not report it.
 */
export const pipelineRoutesMigration: Migration = {
  version: 9,
  name: "pipeline routes",
  servesFrom: 3,
  up: (relaySchema) => `
alter table ${relayTables(relaySchema).pipelines} add column takes jsonb, add column takes_at timestamptz;`,
  down: (relaySchema) => `
alter table ${relayTables(relaySchema).pipelines} drop column takes, drop column takes_at;`,
};
