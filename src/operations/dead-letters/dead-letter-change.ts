import { isRelayError, RelayError } from "../../core/errors.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import { statement, transaction } from "../../postgres/transaction.ts";
import { noteActionOfEach } from "../audit/audit.ts";
import type { Author } from "../audit/author.ts";
import { type EventSource, eventSources, type OperationTarget, parkedEvents } from "../events/event-source.ts";
import { knownPipelines } from "../pipelines/pipelines.ts";
import { choiceCondition, type DeadLetterChoice, deadLetterReadSettings } from "./dead-letter-choice.ts";
import { withWholeGroup } from "./letter-group.ts";

/** The result of a change of dead letters. */
export interface ChangeReport {
  readonly done: number;
  /** Dead letters that could not be changed, with the reason; bounded. */
  readonly left: readonly { readonly source: string; readonly id: string; readonly reason: string }[];
  readonly leftCount: number;
  /** Ids without an open dead letter. */
  readonly unknown: readonly string[];
}

/** Dead letters of one pipeline and their source. */
export interface Batch {
  readonly source: EventSource;
  readonly pipeline: string;
  readonly ids: readonly string[];
}

/** Changes a batch in the caller's transaction; returns the changed ids, and the reason for the others. */
type ChangeBatch = (session: Session, batch: Batch) => Promise<{ done: readonly string[]; otherwise: string }>;

interface Change {
  readonly doing: string;
  readonly resolution: "replayed" | "discarded";
  readonly author: Author;
  readonly apply: ChangeBatch;
  /** What a letter counts as when its table is gone: the letter can be resolved, but its event cannot be sent. */
  readonly withoutTable: "done" | "left";
}

const BATCH_ROWS = 200;
const LEFT_MAX = 100;
const TRIES = 3;

interface ChosenLetter {
  readonly source: string;
  readonly pipeline: string;
  readonly id: string;
}

interface IdentifiedLetter extends ChosenLetter {
  readonly letterId: string;
}

/** Changes the dead letters that match now, batch by batch, each batch in a transaction of its own. */
export async function changeDeadLetters(
  target: OperationTarget,
  choice: DeadLetterChoice,
  change: Change,
): Promise<ChangeReport> {
  const { database } = target;
  const chosen = await choose(database, choice);
  const { usable, broken } = await eventSources(target);
  const logs = (await knownPipelines(database)).filter(({ log }) => log !== null);
  const left: { source: string; id: string; reason: string }[] = [];
  let done = 0;
  for (const letters of batchesOf(chosen)) {
    const { source: name, pipeline } = letters[0]!;
    const ids = letters.map(({ id }) => id);
    const log = logs.find((it) => it.pipeline === pipeline);
    const source = log === undefined ? usable.find((it) => it.name === name) : parkedEvents(database, log, pipeline);
    const why = broken.find((it) => it.source === name)?.reason ?? "its table is gone";
    const changed =
      source === undefined
        ? await withoutTable(database, pipeline, ids, why, change)
        : await changeBatch(database, { source, pipeline, ids }, change);
    done += changed.done.length;
    const isDone = new Set(changed.done);
    for (const id of ids) if (!isDone.has(id)) left.push({ source: name, id, reason: changed.otherwise });
  }
  return { done, left: left.slice(0, LEFT_MAX), leftCount: left.length, unknown: unknownOf(choice, chosen) };
}

/** The ids without an open dead letter that also matches the rest of the choice. */
export async function unknownIds(database: Database, choice: DeadLetterChoice): Promise<readonly string[]> {
  const { ids = [] } = choice;
  return ids.length === 0 ? [] : unknownOf(choice, await choose(database, choice));
}

function unknownOf({ ids = [] }: DeadLetterChoice, chosen: readonly IdentifiedLetter[]): readonly string[] {
  const known = new Set(chosen.flatMap(({ id, letterId }) => [id, letterId]));
  return ids.filter((id) => !known.has(id));
}

async function choose(database: Database, choice: DeadLetterChoice): Promise<readonly IdentifiedLetter[]> {
  const whole = await withWholeGroup(database, choice);
  const rows = await statement(
    database.pool,
    deadLetterReadSettings(database, "choosing dead letters"),
    `select d.source_schema || '.' || d.source_table, d.pipeline, d.original_event_id, d.id
     from ${database.tables.failedEvents} d where ${choiceCondition({ ...whole, resolved: false })}
     order by 1, 2, d.first_failed_at, d.id`,
  );
  const letters = rows.map((row) => {
    return { source: row[0] ?? "", pipeline: row[1] ?? "", id: row[2] ?? "", letterId: row[3] ?? "" };
  });
  requireClear(choice.ids ?? [], letters);
  return letters;
}

/** Numeric ids often exist in several tables: the source must be named, so that no event is changed by mistake. */
function requireClear(ids: readonly string[], letters: readonly ChosenLetter[]): void {
  for (const id of ids) {
    const sources = [...new Set(letters.filter((letter) => letter.id === id).map(({ source }) => source))];
    if (sources.length < 2) continue;
    throw new RelayError("CONFIG_INVALID", `${id} is a dead letter of ${sources.join(" and of ")}: name the source`);
  }
}

/** Groups consecutive letters of one source and pipeline into bounded batches. */
function batchesOf<Letter extends ChosenLetter>(letters: readonly Letter[]): Letter[][] {
  const groups = Map.groupBy(letters, ({ source, pipeline }) => JSON.stringify([source, pipeline]));
  return [...groups.values()].flatMap((group) =>
    Array.from({ length: Math.ceil(group.length / BATCH_ROWS) }, (_, index) =>
      group.slice(index * BATCH_ROWS, (index + 1) * BATCH_ROWS),
    ),
  );
}

/** Retries a batch that the database rolled back: the relay may have been writing to the same rows. */
async function changeBatch(database: Database, batch: Batch, change: Change) {
  const settings = writeSettings(database, change.doing, batch.source.name);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await transaction(database.pool, settings, async (session) => {
        const ids = await stillWaiting(session, database, batch);
        const result = await change.apply(session, { ...batch, ids });
        await resolve(session, database, batch.pipeline, result.done, change);
        return result;
      });
    } catch (error) {
      if (attempt === TRIES || !isRelayError(error, "DATABASE_BUSY")) throw error;
    }
  }
}

/** Locks the letters that are still open. Those that were resolved since they were chosen are left alone. */
export async function stillWaiting(
  session: Session,
  { tables }: Database,
  { pipeline, ids }: Pick<Batch, "ids" | "pipeline">,
): Promise<readonly string[]> {
  const rows = await session.rows(
    `select original_event_id from ${tables.failedEvents}
     where pipeline = $1 and original_event_id = any($2::text[]) and resolved_at is null
     order by original_event_id for update`,
    [pipeline, ids],
  );
  return rows.map((row) => row[0] ?? "");
}

async function withoutTable(
  database: Database,
  pipeline: string,
  ids: readonly string[],
  otherwise: string,
  change: Change,
) {
  if (change.withoutTable === "left") return { done: [], otherwise };
  await transaction(database.pool, writeSettings(database, change.doing), async (session) => {
    await session.rows(
      `delete from ${database.tables.holds} where pipeline = $1 and event_id = any($2::text[]) and state = 'dead'`,
      [pipeline, ids],
    );
    await resolve(session, database, pipeline, ids, change);
  });
  return { done: ids, otherwise };
}

/** Records the resolution of the letters, and makes running relays reload their holds soon. */
export async function resolve(
  session: Session,
  database: Database,
  pipeline: string,
  ids: readonly string[],
  { author, resolution, plan }: Pick<Change, "author" | "resolution"> & { readonly plan?: string },
): Promise<void> {
  if (ids.length === 0) return;
  const { failedEvents } = database.tables;
  await session.rows(
    `update ${failedEvents} set resolved_at = clock_timestamp(), resolution = $3, resolved_by = $4,
       resolution_note = $5 where pipeline = $1 and original_event_id = any($2::text[])`,
    [pipeline, ids, resolution, author.by, author.reason ?? null],
  );
  const action = resolution === "replayed" ? "replay" : "discard";
  await noteActionOfEach(session, database, author, { action, target: plan ?? pipeline }, ids);
  await notifyHoldsChanged(session, database, pipeline);
}

/** Makes every instance that serves the pipeline reload its holds at its next check of the lanes. */
export async function notifyHoldsChanged(session: Session, { tables }: Database, pipeline: string): Promise<void> {
  await session.rows(`update ${tables.pipelines} set holds_change = holds_change + 1 where name = $1`, [pipeline]);
}
