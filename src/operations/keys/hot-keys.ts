import { isRelayError } from "../../core/errors.ts";
import { quoteLiteral } from "../../postgres/identifiers.ts";
import { statement } from "../../postgres/transaction.ts";
import { eventSources, type OperationTarget, operationReadSettings } from "../events/event-source.ts";
import type { KeyChoice, ListedKey } from "./key-list.ts";

/** Newest events of each source that are counted. */
const LOOKED_AT = 5_000;
const SOURCE_MS = 1_000;
const ALL_MS = 4_000;

/** The most frequent keys among the newest events. A source that takes too long is left out. */
export async function hotKeys(
  target: OperationTarget,
  { pipeline, q = "" }: KeyChoice,
  rows: number,
): Promise<readonly ListedKey[]> {
  const { database } = target;
  const { usable } = await eventSources(target);
  const deadlineMs = performance.now() + ALL_MS;
  const keys: ListedKey[] = [];
  for (const { name, order, pipelines, table } of usable) {
    const reader = pipeline ?? pipelines[0];
    const timeoutMs = Math.min(SOURCE_MS, deadlineMs - performance.now());
    if (reader === undefined || !pipelines.includes(reader) || timeoutMs < 1) continue;
    const settings = operationReadSettings(database, "looking for hot keys", name);
    const text = `select n.key, count(*), (select count(*) from newest) from newest n where n.key is not null
      ${q === "" ? "" : `and ${containsSql("n.key", q)}`}
      group by 1 having count(*) > 1 order by 2 desc, 1 limit ${rows}`;
    try {
      const found = await statement(
        database.pool,
        { ...settings, statementTimeoutMs: Math.round(timeoutMs) },
        `with newest as materialized (select ${table.key} as key from ${table.quotedName} t
          order by ${order} desc limit ${LOOKED_AT}) ${text}`,
      );
      for (const [key, count, of] of found) {
        const recent = { count: Number(count), of: Number(of) };
        keys.push({ pipeline: reader, source: name, key: key ?? "", kind: "hot", head: null, waiting: null, recent });
      }
    } catch (error) {
      if (!isRelayError(error, "DATABASE_BUSY")) throw error;
    }
  }
  return keys.sort((left, right) => (right.recent?.count ?? 0) - (left.recent?.count ?? 0)).slice(0, rows);
}

/** A condition on keys that contain a text, ignoring case. */
export function containsSql(key: string, text: string): string {
  return `strpos(lower(${key}), lower(${quoteLiteral(text)})) > 0`;
}
