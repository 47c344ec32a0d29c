import { quoteIdentifier, quoteLiteral, quoteTable, type TableName } from "../identifiers.ts";
import { doSql } from "../session-settings.ts";
import { BLOCK_FILTER_STORAGE } from "./block-filter.ts";
import { managedNames, type PartitionStep, upkeepLock } from "./managed-names.ts";

const NAME_FORMAT: Readonly<Record<PartitionStep, string>> = {
  "1 hour": "YYYYMMDDHH24",
  "1 day": "YYYYMMDD",
  "1 week": "YYYYMMDD",
  "1 month": "YYYYMM",
};

/** Independent of the session's time zone. */
const BOUND_FORMAT = 'YYYY-MM-DD HH24:MI:SS"+00"';

/**
 * Creates the missing partitions from now to `aheadMs` from now, as one statement. Each partition is created separately
 * and then attached: no writer waits for that lock, except that DEFAULT is locked for a moment. A range that has rows
 * in DEFAULT already, or overlaps another partition, is skipped; its rows are read where they are.
 */
export function createPartitionsSql(table: TableName, step: PartitionStep, aheadMs: number): string {
  const { partitionPrefix } = managedNames(table);
  // Parts of a format.
  const [parent, schema] = [quoteTable(table), quoteIdentifier(table.schema)].map((name) => name.replaceAll("%", "%%"));
  const [, unit] = step.split(" ");
  const create = `create table ${schema}.%I (like ${parent} including defaults including storage including compression) with (${BLOCK_FILTER_STORAGE})`;
  const index = `create unique index on ${schema}.%I (event_id)`;
  const attach = `alter table ${parent} attach partition ${schema}.%I for values from (%L) to (%L)`;
  return doSql(
    `  starts timestamptz;
  ends timestamptz;
  until timestamptz;
  called text;`,
    `  starts := date_trunc('${unit}', clock_timestamp(), 'UTC');
  until := clock_timestamp() + interval '${Math.round(aheadMs)} milliseconds';
  perform pg_advisory_xact_lock(hashtextextended(${quoteLiteral(upkeepLock(table))}, 0));
  while starts <= until loop
    ends := (starts at time zone 'UTC' + interval '${step}') at time zone 'UTC';
    called := ${quoteLiteral(partitionPrefix)} || to_char(starts at time zone 'UTC', '${NAME_FORMAT[step]}');
    if not exists (
      select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where n.nspname = ${quoteLiteral(table.schema)} and c.relname = called
    ) then
      begin
        execute format(${quoteLiteral(create)}, called);
        execute format(${quoteLiteral(index)}, called);
        execute format(${quoteLiteral(attach)},
          called, to_char(starts at time zone 'UTC', '${BOUND_FORMAT}'), to_char(ends at time zone 'UTC', '${BOUND_FORMAT}'));
      exception when check_violation or invalid_object_definition then
        null;
      end;
    end if;
    starts := ends;
  end loop;`,
  );
}
