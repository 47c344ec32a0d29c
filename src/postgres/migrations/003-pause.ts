import { relayTables } from "../relay-tables.ts";
import type { Migration } from "./migration.ts";

/** A paused pipeline, and the number of lanes that it is about to get. */
export const pauseMigration: Migration = {
  version: 3,
  name: "pause",
  up: (relaySchema) => `
alter table ${relayTables(relaySchema).pipelines}
  add column paused_at timestamptz,
  add column paused_by text,
  add column pause_reason text,
  add column lanes_wanted int check (lanes_wanted between 1 and 1024);`,
  down: (relaySchema) => `
alter table ${relayTables(relaySchema).pipelines}
  drop column paused_at,
  drop column paused_by,
  drop column pause_reason,
  drop column lanes_wanted;`,
};
