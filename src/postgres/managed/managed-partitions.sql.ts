import { dollarQuoted, quoteIdentifier, quoteLiteral, quoteTable, type TableName } from "../identifiers.ts";
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
  const parent = quoteTable(table);
  const schema = quoteIdentifier(table.schema);
  const [, unit] = step.split(" ");
  return `do ${dollarQuoted(`
declare
  starts timestamptz := date_trunc('${unit}', clock_timestamp(), 'UTC');
  ends timestamptz;
  until timestamptz := clock_timestamp() + interval '${Math.round(aheadMs)} milliseconds';
  called text;
begin
  perform pg_advisory_xact_lock(hashtextextended(${quoteLiteral(upkeepLock(table))}, 0));
  while starts <= until loop
    ends := (starts at time zone 'UTC' + interval '${step}') at time zone 'UTC';
    called := ${quoteLiteral(partitionPrefix)} || to_char(starts at time zone 'UTC', '${NAME_FORMAT[step]}');
    if not exists (
      select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where n.nspname = ${quoteLiteral(table.schema)} and c.relname = called
    ) then
      begin
        execute format('create table ${formatted(schema)}.%I (like ${formatted(parent)} including defaults including storage including compression) with (${BLOCK_FILTER_STORAGE})', called);
        execute format('create unique index on ${formatted(schema)}.%I (event_id)', called);
        execute format('alter table ${formatted(parent)} attach partition ${formatted(schema)}.%I for values from (%L) to (%L)',
          called, to_char(starts at time zone 'UTC', '${BOUND_FORMAT}'), to_char(ends at time zone 'UTC', '${BOUND_FORMAT}'));
      exception when check_violation or invalid_object_definition then
        null;
      end;
    end if;
    starts := ends;
  end loop;
end `)};`;
}

/** A name inside a literal for format(). */
function formatted(quoted: string): string {
  return quoted.replaceAll("%", "%%").replaceAll("'", "''");
}
