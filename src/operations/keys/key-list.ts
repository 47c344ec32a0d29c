import { isRelayError, RelayError } from "../../core/errors.ts";
import { quoteArray, quoteLiteral } from "../../postgres/identifiers.ts";
import type { Row } from "../../postgres/session.ts";
import { statement } from "../../postgres/transaction.ts";
import { LIST_ROWS_MAX } from "../events/event-list.ts";
import { type EventSource, eventSources, type OperationTarget, operationReadSettings } from "../events/event-source.ts";
import { isoSql } from "../events/event-time.ts";

/** All kinds of listed keys. */
export const KEY_KINDS = ["parked", "retrying", "hot"] as const;

/** `parked` is blocked until an operator acts, `retrying` until its head is delivered, `hot` only has many events. */
export type KeyKind = (typeof KEY_KINDS)[number];

/** A key in a list. */
export interface ListedKey {
  readonly pipeline: string;
  readonly source: string;
  readonly key: string;
  readonly kind: KeyKind;
  /** The event that blocks the key; null for a hot key. */
  readonly head: KeyHead | null;
  /** Events that wait behind it; null when the count timed out. */
  readonly waiting: { readonly count: number; readonly isMore: boolean } | null;
  /** How many of the newest events of the source have it; null unless requested. */
  readonly recent: { readonly count: number; readonly of: number } | null;
}

/** The failed event that blocks a key. */
export interface KeyHead {
  readonly id: string;
  readonly type: string | null;
  readonly state: "retrying" | "suspect" | "dead";
  readonly attempts: number;
  readonly reason: string;
  readonly firstFailedAt: string | null;
  readonly nextAttemptAt: string | null;
}

/** One page of keys. */
export interface KeyPage {
  readonly keys: readonly ListedKey[];
  readonly cursor: string | null;
}

/** Selects keys. */
export interface KeyChoice {
  /** Absent: parked and retrying. */
  readonly kind?: KeyKind | undefined;
  readonly pipeline?: string | undefined;
  /** Keys that contain this text, ignoring case. */
  readonly q?: string | undefined;
}

/** Blocked keys with the event that blocks them, by pipeline and key; or the most frequent keys. */
export async function listKeys(
  target: OperationTarget,
  choice: KeyChoice,
  { limit = 50, cursor }: { readonly limit?: number; readonly cursor?: string | undefined } = {},
): Promise<KeyPage> {
  const rows = Math.max(1, Math.min(limit, LIST_ROWS_MAX));
  if (choice.q?.includes("\0")) return { keys: [], cursor: null };
  if (choice.kind === "hot") return { keys: await hotKeys(target, choice, rows), cursor: null };
  const after = cursor === undefined ? null : readCursor(cursor);
  const { database } = target;
  const found = await statement(
    database.pool,
    operationReadSettings(database, "listing the keys"),
    headsSql(target, choice, after, rows + 1),
  );
  const keys = found.slice(0, rows).map(keyOf);
  const last = keys.at(-1);
  return {
    keys: await withCounts(target, keys),
    cursor: found.length > rows && last !== undefined ? writeCursor([last.pipeline, last.key]) : null,
  };
}

/** The first failure of a key is its head. Walks along the index of holds by key, so that a page is cheap. */
function headsSql(
  { database: { tables } }: OperationTarget,
  { kind, pipeline, q = "" }: KeyChoice,
  after: KeyPlace | null,
  rows: number,
): string {
  const conditions = [
    "h.parks and h.event_key is not null",
    ...(kind === undefined ? [] : [`h.state ${kind === "parked" ? "=" : "<>"} 'dead'`]),
    ...(pipeline === undefined ? [] : [`h.pipeline = ${quoteLiteral(pipeline)}`]),
    ...(q === "" ? [] : [containsSql("h.event_key", q)]),
    ...(after === null ? [] : [`(h.pipeline, h.event_key) > (${quoteLiteral(after[0])}, ${quoteLiteral(after[1])})`]),
    `not exists (select from ${tables.holds} o where o.pipeline = h.pipeline and o.event_key = h.event_key and o.parks
      and (o.first_failed_at, o.event_id) < (h.first_failed_at, h.event_id))`,
  ];
  return `with keys as materialized (
  select h.* from ${tables.holds} h where ${conditions.join(" and ")} order by h.pipeline, h.event_key limit ${rows})
select k.pipeline, p.source_schema || '.' || p.source_table, k.event_key, k.event_id, coalesce(d.event_type, w.event_type),
  k.state, k.attempts, k.reason, ${isoSql("k.first_failed_at")}, ${isoSql("k.next_at")}
from keys k
left join ${tables.pipelines} p on p.name = k.pipeline
left join ${tables.failedEvents} d on d.pipeline = k.pipeline and d.original_event_id = k.event_id
left join ${tables.parked} w on w.pipeline = k.pipeline and w.event_id = k.event_id
order by k.pipeline, k.event_key`;
}

function keyOf(row: Row): ListedKey {
  const state = row[5] as KeyHead["state"];
  return {
    pipeline: row[0] ?? "",
    source: row[1] ?? "",
    key: row[2] ?? "",
    kind: state === "dead" ? "parked" : "retrying",
    head: {
      id: row[3] ?? "",
      type: row[4] ?? null,
      state,
      attempts: Number(row[6]),
      reason: row[7] ?? "",
      firstFailedAt: row[8] ?? null,
      nextAttemptAt: row[9] ?? null,
    },
    waiting: null,
    recent: null,
  };
}

/** Counts are optional: they share one time budget, and are null beyond it. */
const COUNT_MS = 1_000;

async function withCounts(target: OperationTarget, keys: readonly ListedKey[]): Promise<readonly ListedKey[]> {
  if (keys.length === 0) return keys;
  const deadlineMs = performance.now() + COUNT_MS;
  const { usable } = await eventSources(target);
  const counted: ListedKey[] = [];
  for (const [pipeline, ofPipeline] of Map.groupBy(keys, (it) => it.pipeline)) {
    const source = usable.find(({ pipelines }) => pipelines.includes(pipeline));
    const timeoutMs = deadlineMs - performance.now();
    const counts =
      source === undefined || timeoutMs < 1
        ? null
        : await countWaiting(target, source, pipeline, ofPipeline, timeoutMs);
    const isMore = source?.unread != null;
    for (const it of ofPipeline) {
      counted.push(counts === null ? it : { ...it, waiting: { count: counts.get(it.key) ?? 0, isMore } });
    }
  }
  return counted;
}

/**
 * Counts the events behind each head. Of a log only those that were read and parked: more may follow. Null: timed out.
 */
async function countWaiting(
  { database }: OperationTarget,
  source: EventSource,
  pipeline: string,
  keys: readonly ListedKey[],
  timeoutMs: number,
): Promise<ReadonlyMap<string, number> | null> {
  const names = `${quoteArray(keys.map(({ key }) => key))}::text[]`;
  const heads = `${quoteArray(keys.map(({ head }) => head?.id ?? ""))}::text[]`;
  const { reader, table, unread, waiting } = source;
  const isRead = reader === null ? "true" : `${reader} = ${quoteLiteral(pipeline)}`;
  const text =
    unread === null
      ? `select ${table.key}, count(*) from ${table.quotedName} t where ${waiting} and ${isRead}
         and ${table.key} = any(${names}) and ${table.id}::text <> all(${heads}) group by 1`
      : `select w.event_key, count(*) from ${database.tables.parked} w where w.pipeline = ${quoteLiteral(pipeline)}
         and w.event_key = any(${names}) and w.event_id <> all(${heads}) group by 1`;
  const settings = operationReadSettings(database, "counting what waits", source.name);
  try {
    const rows = await statement(database.pool, { ...settings, statementTimeoutMs: Math.round(timeoutMs) }, text);
    return new Map(rows.map(([key, count]) => [key ?? "", Number(count)]));
  } catch (error) {
    if (isRelayError(error, "DATABASE_BUSY")) return null;
    throw error;
  }
}

type KeyPlace = readonly [pipeline: string, key: string];

function writeCursor(place: KeyPlace): string {
  return Buffer.from(JSON.stringify(place)).toString("base64url");
}

function readCursor(cursor: string): KeyPlace {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === "string")) {
      return [String(value[0]), String(value[1])];
    }
  } catch {
    // Falls through to the one error for all invalid cursors.
  }
  throw new RelayError("CONFIG_INVALID", "The cursor is invalid: use one that a list returned");
}

/** Newest events of each source that are counted. */
const LOOKED_AT = 5_000;
const SOURCE_MS = 1_000;
const ALL_MS = 4_000;

/** The most frequent keys among the newest events. A source that takes too long is left out. */
async function hotKeys(
  target: OperationTarget,
  { pipeline, q = "" }: KeyChoice,
  rows: number,
): Promise<readonly ListedKey[]> {
  const { database } = target;
  const { usable } = await eventSources(target);
  const deadlineMs = performance.now() + ALL_MS;
  const keys: ListedKey[] = [];
  for (const { name, order, pipelines, reader, table } of usable) {
    const first = pipeline ?? pipelines[0];
    const timeoutMs = Math.min(SOURCE_MS, deadlineMs - performance.now());
    if (first === undefined || !pipelines.includes(first) || timeoutMs < 1) continue;
    const settings = operationReadSettings(database, "looking for hot keys", name);
    const text = `select n.key, count(*), (select count(*) from newest), n.pipeline from newest n
      where n.key is not null and n.pipeline is not null
      ${pipeline === undefined ? "" : `and n.pipeline = ${quoteLiteral(pipeline)}`}
      ${q === "" ? "" : `and ${containsSql("n.key", q)}`}
      group by 1, 4 having count(*) > 1 order by 2 desc, 1 limit ${rows}`;
    try {
      const found = await statement(
        database.pool,
        { ...settings, statementTimeoutMs: Math.round(timeoutMs) },
        `with newest as materialized (
          select ${table.key} as key, ${reader ?? quoteLiteral(first)} as pipeline from ${table.quotedName} t
          order by ${order} desc limit ${LOOKED_AT}) ${text}`,
      );
      for (const [key, count, of, reading] of found) {
        const recent = { count: Number(count), of: Number(of) };
        keys.push({
          pipeline: reading ?? first,
          source: name,
          key: key ?? "",
          kind: "hot",
          head: null,
          waiting: null,
          recent,
        });
      }
    } catch (error) {
      if (!isRelayError(error, "DATABASE_BUSY")) throw error;
    }
  }
  return keys.sort((left, right) => (right.recent?.count ?? 0) - (left.recent?.count ?? 0)).slice(0, rows);
}

/** A condition on keys that contain a text, ignoring case. */
function containsSql(key: string, text: string): string {
  return `strpos(lower(${key}), lower(${quoteLiteral(text)})) > 0`;
}
