import { isRelayError, RelayError } from "../core/errors.ts";
import { writeSettings } from "../postgres/lanes.ts";
import type { Database } from "../postgres/pool.ts";
import type { Session } from "../postgres/session.ts";
import { statement, transaction } from "../postgres/transaction.ts";
import { noteActionOfEach } from "./audit.ts";
import type { Author } from "./author.ts";
import { choiceCondition, type DeadLetterChoice, deadLetterReadSettings } from "./dead-letter-choice.ts";
import { type EventSource, eventSources, type OperationTarget, parkedEvents } from "./event-source.ts";
import { knownPipelines } from "./pipelines.ts";

export interface ChangeReport {
  readonly done: number;
  /** Dead letters that could not be changed, with the reason; bounded. */
  readonly left: readonly { readonly source: string; readonly id: string; readonly reason: string }[];
  readonly leftCount: number;
  /** Ids that no waiting dead letter has. */
  readonly unknown: readonly string[];
}

/** Dead letters of one pipeline and their source. */
export interface Batch {
  readonly source: EventSource;
  readonly pipeline: string;
  readonly ids: readonly string[];
}

/** Changes a batch in the caller's transaction; returns the ids that it changed, and why the others are left. */
type ChangeBatch = (session: Session, batch: Batch) => Promise<{ done: readonly string[]; otherwise: string }>;

interface Change {
  readonly doing: string;
  readonly resolution: "replayed" | "discarded";
  readonly author: Author;
  readonly apply: ChangeBatch;
  /** A letter whose table is gone can only be put away. */
  readonly withoutTable: "done" | "left";
  readonly progress?: ((done: number, total: number) => void) | undefined;
}

const BATCH_ROWS = 200;
const LEFT_MAX = 100;
const TRIES = 3;

interface ChosenLetter {
  readonly source: string;
  readonly pipeline: string;
  readonly id: string;
}

/** Applies a change to the dead letters of this moment, batch by batch, each in a transaction of its own. */
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
  let seen = 0;
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
    seen += ids.length;
    change.progress?.(seen, chosen.length);
  }
  const unknown = (choice.ids ?? []).filter(
    (id) => !chosen.some((letter) => letter.id === id || letter.letterId === id),
  );
  return { done, left: left.slice(0, LEFT_MAX), leftCount: left.length, unknown };
}

async function choose(
  database: Database,
  choice: DeadLetterChoice,
): Promise<readonly (ChosenLetter & { readonly letterId: string })[]> {
  const rows = await statement(
    database.pool,
    deadLetterReadSettings(database, "choosing dead letters"),
    `select d.source_schema || '.' || d.source_table, d.pipeline, d.original_event_id, d.id
     from ${database.tables.failedEvents} d where ${choiceCondition({ ...choice, resolved: false })}
     order by 1, 2, d.first_failed_at, d.id`,
  );
  const letters = rows.map((row) => {
    return { source: row[0] ?? "", pipeline: row[1] ?? "", id: row[2] ?? "", letterId: row[3] ?? "" };
  });
  requireClear(choice.ids ?? [], letters);
  return letters;
}

/** Ids that are numbers are soon given out in two tables: nobody's event is changed by mistake. */
function requireClear(ids: readonly string[], letters: readonly ChosenLetter[]): void {
  for (const id of ids) {
    const sources = [...new Set(letters.filter((letter) => letter.id === id).map(({ source }) => source))];
    if (sources.length < 2) continue;
    throw new RelayError("CONFIG_INVALID", `${id} is a dead letter of ${sources.join(" and of ")}: name the source`);
  }
}

/** Neighbours of one source and pipeline together, so many at a time. */
function batchesOf<Letter extends ChosenLetter>(letters: readonly Letter[]): Letter[][] {
  const groups = Map.groupBy(letters, ({ source, pipeline }) => JSON.stringify([source, pipeline]));
  return [...groups.values()].flatMap((group) =>
    Array.from({ length: Math.ceil(group.length / BATCH_ROWS) }, (_, index) =>
      group.slice(index * BATCH_ROWS, (index + 1) * BATCH_ROWS),
    ),
  );
}

/** The relay may be writing to the same rows: what the database undid for that is tried again. */
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

/** What somebody else has resolved since it was chosen is not touched. */
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

/** Notes who did what with these, and lets the relays look at them soon. */
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
  await tellHoldsChanged(session, database, pipeline);
}

/** Every instance that serves the pipeline looks at its holds at its next look at the lanes. */
export async function tellHoldsChanged(session: Session, { tables }: Database, pipeline: string): Promise<void> {
  await session.rows(`update ${tables.pipelines} set holds_change = holds_change + 1 where name = $1`, [pipeline]);
}
