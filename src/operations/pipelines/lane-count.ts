import { RelayError } from "../../core/errors.ts";
import { quoteLiteral } from "../../postgres/identifiers.ts";
import { moveSlots } from "../../postgres/identity.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { noteAction } from "../audit/audit.ts";
import type { Author } from "../audit/author.ts";
import { eventSources, type OperationTarget } from "../events/event-source.ts";
import { commonPlace } from "../logs/log-place.ts";
import { type HandOverOptions, lockFreeLanes, onceHandedOver } from "./hand-over.ts";
import type { KnownPipeline } from "./pipelines.ts";

/** The most lanes of a pipeline. */
export const LANES_MAX = 1_024;

/** A change of the lane count. */
export interface LaneCountChange {
  readonly pipeline: string;
  readonly before: number;
  readonly after: number;
}

/**
 * Changes the lane count of a paused pipeline. Keys move to other lanes, so every old lane must be released before the
 * first new one is acquired: instances settle events in flight and hand their lanes over, and then everything changes
 * in one transaction under the lock of every lane. The pipeline stays paused.
 */
export async function changeLaneCount(
  target: OperationTarget,
  known: KnownPipeline,
  lanes: number,
  { author, timeoutMs, onWait }: HandOverOptions & { readonly author: Author },
): Promise<LaneCountChange> {
  const { database } = target;
  const { pipeline } = known;
  requirePossible(known, lanes);
  const change = { pipeline, before: known.lanes, after: lanes };
  if (lanes === known.lanes) return change;
  const waits = known.delivery === "exactly-once" ? await waitingCondition(target, known) : null;
  await onceHandedOver(database, known, lanes, { timeoutMs, onWait }, () =>
    changeIfFree(target, known, lanes, waits, author),
  );
  return change;
}

function requirePossible({ log, pause, pipeline }: KnownPipeline, lanes: number): void {
  if (!Number.isInteger(lanes) || lanes < 1 || lanes > LANES_MAX) {
    throw new RelayError("CONFIG_INVALID", `${lanes} is not a valid number of lanes: use 1 to ${LANES_MAX}.`);
  }
  if (log === "wal" && lanes > 1) {
    const why = "its slot delivers everything in one sequence, to one reader";
    throw new RelayError("CONFIG_INVALID", `${pipeline} reads the write-ahead log, which allows one lane: ${why}.`);
  }
  if (pause === null) {
    const way = `run \`outbox-relay pause '${pipeline}'\` first, and \`outbox-relay resume '${pipeline}'\` afterwards`;
    throw new RelayError(
      "CONFIG_INVALID",
      `${pipeline} is not paused, and its lanes cannot change while it runs: ${way}.`,
    );
  }
}

/** The SQL condition for undelivered rows of the table that the pipeline reads, including dead ones. */
async function waitingCondition(target: OperationTarget, { log, pipeline, source }: KnownPipeline): Promise<string> {
  if (log !== null) {
    return `exists (select from ${target.database.tables.parked} where pipeline = ${quoteLiteral(pipeline)})`;
  }
  const { usable, broken } = await eventSources(target, source);
  const [found] = usable;
  if (found !== undefined) {
    const isRead = found.reader === null ? "true" : `${found.reader} = ${quoteLiteral(pipeline)}`;
    return `exists (select from ${found.table.quotedName} t where ${found.table.unsettled} and ${isRead})`;
  }
  throw new RelayError("TABLE_MISSING", `The backlog of ${source} is unknown: ${broken[0]?.reason ?? "it is gone"}`);
}

/** Returns how many lanes are still owned; 0 after the change. */
async function changeIfFree(
  target: OperationTarget,
  known: KnownPipeline,
  lanes: number,
  waits: string | null,
  author: Author,
): Promise<number> {
  const { database } = target;
  const { tables } = database;
  const { delivery, lanes: before, pipeline } = known;
  return await transaction(database.pool, writeSettings(database, "changing the number of lanes"), async (session) => {
    const [row] = await session.rows(
      `select paused_at is not null, lanes_wanted, lanes from ${tables.pipelines} where name = $1 for no key update`,
      [pipeline],
    );
    if (row?.[0] !== "t" || Number(row[1]) !== lanes || Number(row[2]) !== before) {
      throw new RelayError("CONFIG_INVALID", `${pipeline} was resumed or changed concurrently.`);
    }
    const owned = await lockFreeLanes(session, database, pipeline);
    if (owned > 0) return owned;
    if (waits !== null) await requireDrained(session, pipeline, waits);
    const place = known.log === null ? null : await commonPlace(target, known);
    if (delivery === "exactly-once" && lanes > before) await moveSlots(session, database, pipeline);
    await redistributeKeys(session, database, pipeline, lanes, lanes > before);
    if (place !== null) await placeAll(session, database, pipeline, place);
    const detail = { before, after: lanes };
    await noteAction(session, database, author, { action: "lanes", target: pipeline, detail });
    return 0;
  });
}

/**
 * A ledger is per lane. Under another lane count, an event that is recorded but not settled would be searched in the
 * wrong ledger and sent twice. An empty backlog rules that out.
 */
async function requireDrained(session: Session, pipeline: string, waits: string): Promise<void> {
  const [row] = await session.rows(`select ${waits}`);
  if (row?.[0] !== "t") return;
  const why = `${pipeline} delivers exactly once and has undelivered events: its ledger is kept per lane`;
  const way = "stop the writers, resume, run `outbox-relay run --once` until no events are left, pause, and retry";
  throw new RelayError("CONFIG_INVALID", `${why}, so lanes can change only while the outbox is empty: ${way}.`);
}

/** All lanes of a log continue at the same position, including new ones. */
async function placeAll(session: Session, { tables }: Database, pipeline: string, place: string): Promise<void> {
  await session.rows(`update ${tables.lanes} set position = $2::jsonb where pipeline = $1`, [pipeline, place]);
  await session.rows(`delete from ${tables.passed} where pipeline = $1`, [pipeline]);
}

/** New epochs fence writes under old lane grants; holds move to the new lanes of their keys. */
async function redistributeKeys(
  session: Session,
  { tables }: Database,
  pipeline: string,
  lanes: number,
  hasNewSlots: boolean,
): Promise<void> {
  await session.rows(
    `insert into ${tables.lanes} (pipeline, lane) select $1::text, lane from generate_series(0, $2::int - 1) lane
     on conflict (pipeline, lane) do nothing`,
    [pipeline, lanes],
  );
  const [total] = await session.rows(
    `select max(epoch), coalesce(sum(published_total) filter (where lane >= $2::int), 0) from ${tables.lanes}
     where pipeline = $1`,
    [pipeline, lanes],
  );
  await session.rows(`delete from ${tables.lanes} where pipeline = $1 and lane >= $2::int`, [pipeline, lanes]);
  await session.rows(
    `update ${tables.lanes} set owner = null, crashes = 0,
       epoch = greatest($2::bigint + 1, (extract(epoch from clock_timestamp()) * 1000)::bigint),
       published_total = published_total + case when lane = 0 then $3::bigint else 0 end
       ${hasNewSlots ? ", ledgered_batch = 0" : ""}
     where pipeline = $1`,
    [pipeline, total?.[0] ?? "0", total?.[1] ?? "0"],
  );
  const hash = `hashtextextended(coalesce(event_key, event_id) collate "C", 0) & 9223372036854775807`;
  await session.rows(`update ${tables.holds} set lane = mod(${hash}, $2::bigint) where pipeline = $1`, [
    pipeline,
    lanes,
  ]);
  await session.rows(
    `update ${tables.pipelines} set lanes = $2, lanes_wanted = null, updated_at = clock_timestamp() where name = $1`,
    [pipeline, lanes],
  );
}
