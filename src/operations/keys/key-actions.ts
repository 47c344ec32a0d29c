import { isRelayError, RelayError, reasonOf } from "../../core/errors.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { noteAction } from "../audit/audit.ts";
import type { Author } from "../audit/author.ts";
import { notifyHoldsChanged, resolve, stillWaiting } from "../dead-letters/dead-letter-change.ts";
import { discardBatch } from "../dead-letters/dead-letter-discard.ts";
import type { EventSource, OperationTarget } from "../events/event-source.ts";
import { planSources } from "../replay/plan-sources.ts";
import { replayBatch } from "../replay/replay.ts";

/** What an operator can do with a blocked key. */
export type KeyAction = "retry" | "skip" | "resume" | "discard";

/** An action on one key. */
export interface KeyRequest {
  readonly pipeline: string;
  readonly key: string;
  readonly author: Author;
}

/** A failed event of a key, from its hold. */
interface KeyHold {
  readonly id: string;
  readonly isDead: boolean;
}

/** What an action works on. */
interface Place {
  readonly session: Session;
  readonly database: Database;
  readonly source: EventSource;
  readonly pipeline: string;
  readonly author: Author;
}

/**
 * Acts on a blocked key. `retry`: retries its head now. `skip`: its head stays a dead letter, and the key continues
 * without it. `resume`: retries all failed events of the key now, in order. `discard`: gives the head up permanently.
 * Returns the ids of the changed events, empty when the key has no hold. Null: no such pipeline.
 */
export async function actOnKey(
  target: OperationTarget,
  action: KeyAction,
  { author, key, pipeline }: KeyRequest,
): Promise<readonly string[] | null> {
  const { database } = target;
  requireReason(action, author);
  const sources = await planSources(target);
  const known = sources.pipelines.find((it) => it.pipeline === pipeline);
  if (known === undefined) return null;
  const source = sources.waiting(known.source, pipeline);
  if (source === null) throw new RelayError("TABLE_MISSING", `${known.source}: ${sources.whyNot(known.source)}`);
  const settings = writeSettings(database, "acting on a key", known.source);
  return await transaction(database.pool, settings, async (session) => {
    const place: Place = { session, database, source, pipeline, author };
    const held = await holdsOf(place, key);
    const [head] = held;
    if (head === undefined) return [];
    const changed = action === "resume" ? await retry(place, held) : await changeHead(place, action, head);
    for (const eventId of changed) {
      const detail = { key };
      await noteAction(session, database, author, { action: `key-${action}`, target: pipeline, eventId, detail });
    }
    return changed;
  });
}

function requireReason(action: KeyAction, { reason }: Author): void {
  if (action === "retry" || action === "resume" || reason) return;
  throw new RelayError("CONFIG_INVALID", `To ${action} an event needs a reason, for the audit`);
}

/** The holds that park the key, in the order of writing. */
async function holdsOf({ database, pipeline, session, source }: Place, key: string): Promise<readonly KeyHold[]> {
  if (key.includes("\0")) return [];
  const { order, table } = source;
  const rows = await session.rows(
    `select h.event_id, h.state = 'dead' from ${database.tables.holds} h
     left join ${table.quotedName} t on ${table.id} = h.event_id::${table.idType} and ${table.unsettled}
     where h.pipeline = $1 and h.event_key = $2 and h.parks order by ${order} nulls first, h.first_failed_at, h.event_id`,
    [pipeline, key],
  );
  return rows.map((row) => ({ id: row[0] ?? "", isDead: row[1] === "t" }));
}

async function changeHead(
  place: Place,
  action: Exclude<KeyAction, "resume">,
  head: KeyHold,
): Promise<readonly string[]> {
  if (action === "retry") return await retry(place, [head]);
  if (!head.isDead) {
    throw new RelayError(
      "CONFLICT",
      `${head.id} is retried automatically: only a dead letter can be ${action === "skip" ? "skipped" : "discarded"}`,
    );
  }
  return action === "skip" ? await skip(place, head) : await discard(place, head);
}

async function retry(place: Place, held: readonly KeyHold[]): Promise<readonly string[]> {
  const { author, database, pipeline, session, source } = place;
  const dead = held.filter(({ isDead }) => isDead).map(({ id }) => id);
  const waiting = await stillWaiting(session, database, { pipeline, ids: dead });
  const { done } = await replayBatch(session, database.tables.holds, { source, pipeline, ids: waiting });
  await resolve(session, database, pipeline, done, { author, resolution: "replayed" });
  const soon = await hurry(place, held);
  if (soon.length > 0) await notifyHoldsChanged(session, database, pipeline);
  return [...done, ...soon];
}

/** Makes events that are retried automatically due now, in order. */
async function hurry({ database, pipeline, session, source }: Place, held: readonly KeyHold[]): Promise<string[]> {
  const ids = held.filter(({ isDead }) => !isDead).map(({ id }) => id);
  if (ids.length === 0) return [];
  const rows = await session.rows(
    `update ${database.tables.holds} h set next_at = clock_timestamp() + w.rank * interval '1 millisecond'
     from unnest($2::text[]) with ordinality w (id, rank)
     where h.pipeline = $1 and h.event_id = w.id and h.state = 'retrying' returning h.event_id`,
    [pipeline, ids],
  );
  const due = rows.map((row) => row[0] ?? "");
  if (source.dueNow !== undefined) {
    const { id, idType, quotedName } = source.table;
    const wanted = `${id} = any($1::text[]::${idType}[]) and ${source.dueNow.of}`;
    await session.rows(`update ${quotedName} t set ${source.dueNow.set} where ${wanted}`, [due]);
  }
  return due;
}

async function skip({ database, pipeline, session }: Place, { id }: KeyHold): Promise<readonly string[]> {
  const rows = await session.rows(
    `update ${database.tables.holds} set parks = false
     where pipeline = $1 and event_id = $2 and state = 'dead' and parks returning event_id`,
    [pipeline, id],
  );
  return rows.map((row) => row[0] ?? "");
}

async function discard({ author, database, pipeline, session, source }: Place, { id }: KeyHold) {
  const ids = await stillWaiting(session, database, { pipeline, ids: [id] });
  const { done } = await discardBatch(session, database.tables.holds, { source, pipeline, ids });
  await resolve(session, database, pipeline, done, { author, resolution: "discarded" });
  return done;
}

interface NamedKey {
  readonly pipeline: string;
  readonly key: string;
}

/** The result of an action on several keys. */
interface BulkReport {
  /** Ids of the changed events. */
  readonly changed: readonly string[];
  /** Keys that could not be changed, each with the reason; the others were changed. */
  readonly failed: readonly (NamedKey & { readonly reason: string })[];
}

/** More than an operator selects by hand. */
export const BULK_KEYS_MAX = 500;

/** Acts on several keys independently: a failure of one does not affect the others. */
export async function actOnKeys(
  target: OperationTarget,
  action: KeyAction,
  keys: readonly NamedKey[],
  author: Author,
): Promise<BulkReport> {
  const changed: string[] = [];
  const failed: (NamedKey & { reason: string })[] = [];
  for (const { key, pipeline } of keys) {
    try {
      const ids = await actOnKey(target, action, { pipeline, key, author });
      if (ids === null) failed.push({ pipeline, key, reason: `No pipeline ${pipeline}` });
      else if (ids.length === 0) failed.push({ pipeline, key, reason: "This key has no failed events any more" });
      else changed.push(...ids);
    } catch (error) {
      if (!isRelayError(error) || error.code === "DATABASE_UNREACHABLE" || error.code === "CONFIG_INVALID") throw error;
      failed.push({ pipeline, key, reason: reasonOf(error) });
    }
  }
  return { changed, failed };
}
