import type { TechnicalEvent, TechnicalEventStore } from "../../ports/technical-events.ts";

/** The part of a pool or client that the store needs. It stays the caller's: the store does not close it. */
/** A pool or a client of pg. */
export interface Queryable {
  query(text: string, values: unknown[]): Promise<unknown>;
}

export interface PostgresTechnicalEventStoreOptions {
  readonly database: Queryable;
  /** The relay's own schema. */
  readonly schema?: string;
}

/** Writes to the table `technical_events` of the relay's schema: one statement with one parameter per batch. */
export function postgresTechnicalEventStore(options: PostgresTechnicalEventStoreOptions): TechnicalEventStore {
  const { database, schema = "outbox_relay" } = options;
  const statement = insertSql(schema);
  return {
    async append(events) {
      if (events.length > 0) await database.query(statement, [jsonOf(events)]);
    },
    async close() {},
  };
}

function insertSql(schema: string): string {
  return `insert into "${schema.replaceAll('"', '""')}".technical_events (at, name, pipeline, record_id, detail)
select to_timestamp((e ->> 'timestamp')::float8 / 1000), e ->> 'name', e ->> 'pipeline', e ->> 'recordId',
  e - '{timestamp,name,pipeline,recordId}'::text[]
from jsonb_array_elements($1::jsonb) with ordinality as batch(e, position)
order by position`;
}

function jsonOf(events: readonly TechnicalEvent[]): string {
  return JSON.stringify(events, (_name, value: unknown) => {
    if (typeof value === "bigint") return value.toString();
    // JavaScript strings allow both, jsonb rejects both: the whole batch would fail for ever.
    if (typeof value === "string") return value.toWellFormed().replaceAll("\0", "\uFFFD");
    return value;
  });
}
