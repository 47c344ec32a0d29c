import { relayTables } from "../relay-tables.ts";
import type { Migration } from "./migration.ts";

/**
 * Logs are read by position: the checkpoint of each lane, the parked events, and events that a destination's ledger
 * lists as delivered before they were read.
 */
export const logsMigration: Migration = {
  version: 6,
  name: "logs",
  servesFrom: 3,
  up: (relaySchema) => {
    const { lanes, parked, passed } = relayTables(relaySchema);
    return `
alter table ${lanes} add column position jsonb;
create table ${parked} (
  pipeline text not null,
  event_id text not null,
  place numeric not null,
  event_type text not null,
  event_key text,
  payload bytea not null,
  headers json,
  correlation_id text,
  created_at timestamptz,
  parked_at timestamptz not null default clock_timestamp(),
  primary key (pipeline, event_id)
);
create index parked_by_place on ${parked} (pipeline, place);
create index parked_by_key on ${parked} (pipeline, event_key);
create table ${passed} (
  pipeline text not null,
  lane int not null,
  event_id text not null,
  primary key (pipeline, lane, event_id)
);`;
  },
  down: (relaySchema) => {
    const { lanes, parked, passed } = relayTables(relaySchema);
    return `
drop table ${parked}, ${passed};
alter table ${lanes} drop column position;`;
  },
};
