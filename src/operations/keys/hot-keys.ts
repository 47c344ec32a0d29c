import { isRelayError } from "../../core/errors.ts";
import { statement } from "../../postgres/transaction.ts";
import { eventSources, type OperationTarget, operationReadSettings } from "../event-source.ts";
import type { ListedKey } from "./key-list.ts";

/** Of each source, the newest. */
const LOOKED_AT = 5_000;
const SOURCE_MS = 1_000;
const ALL_MS = 4_000;

/** The keys that most of the newest events have. A source that takes too long has none. */
export async function hotKeys(
  target: OperationTarget,
  pipeline: string | undefined,
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
