import { relayTables } from "../relay-tables.ts";
import type { Migration } from "./migration.ts";

/**
 * The service of each instance, the destination of each of its pipelines, and the service that served a pipeline last,
 * so that two deployments on one table detect each other. Null: an older program, which does not report them.
 */
export const deploymentsMigration: Migration = {
  version: 8,
  name: "deployments",
  servesFrom: 3,
  up: (relaySchema) => {
    const { instances, pipelines } = relayTables(relaySchema);
    return `
alter table ${instances} add column service text, add column ends jsonb;
alter table ${pipelines} add column service text;`;
  },
  down: (relaySchema) => {
    const { instances, pipelines } = relayTables(relaySchema);
    return `
alter table ${instances} drop column service, drop column ends;
alter table ${pipelines} drop column service;`;
  },
};
