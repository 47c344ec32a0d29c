import { relayTables } from "../relay-tables.ts";
import type { Migration } from "./migration.ts";

/** Exactly-once delivery: how much of a lane's progress came from the destination's ledger, and its slot there. */
export const ledgerMigration: Migration = {
  version: 2,
  name: "ledger",
  up: (relaySchema) => {
    const { lanes, pipelines } = relayTables(relaySchema);
    return `
alter table ${lanes} add column ledgered_batch bigint not null default 0;
alter table ${pipelines} add column first_slot int unique;`;
  },
  down: (relaySchema) => {
    const { lanes, pipelines } = relayTables(relaySchema);
    return `
alter table ${pipelines} drop column first_slot;
alter table ${lanes} drop column ledgered_batch;`;
  },
};
