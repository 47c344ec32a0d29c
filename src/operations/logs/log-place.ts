import { RelayError } from "../../core/errors.ts";
import { DEFAULT_LIMITS } from "../../core/limits.ts";
import type { PipelineSpec } from "../../ports/queue-store.ts";
import { quoteLiteral } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import { statement } from "../../postgres/transaction.ts";
import type { LogKind, LogPosition } from "../../sources/postgres/log/log-kind.ts";
import type { Difference } from "../../sources/postgres/tail/difference.ts";
import { decodeMarks } from "../../sources/postgres/tail/marks.ts";
import { type OperationTarget, operationReadSettings } from "../events/event-source.ts";
import type { KnownPipeline } from "../pipelines/pipelines.ts";
import { readerOf, tailOf } from "./log-source.ts";

/** Where a seek goes. */
export type SeekTarget = "beginning" | "now" | Date;

/** Counts stop here. */
export const COUNTED_MAX = 10_000;

/** A stored position in a table's log, with the number of events behind the current position and behind it. */
interface TailPlace {
  readonly text: string;
  /** Unread events of the log; null when a lane never started, or its position is no longer valid. */
  readonly lagNow: number | null;
  readonly lagThen: number;
}

/**
 * Takes the position before it counts, so that events counted as read are before it. Counts all types, since only the
 * running relay knows which of them a pipeline reads.
 */
export async function tailPlace(target: OperationTarget, known: KnownPipeline, to: SeekTarget): Promise<TailPlace> {
  const kind = tailOf({ ...readerOf(target, known), start: to }, specOf(known));
  await kind.prepare();
  const text = await kind.start();
  const then = new Map(Array.from({ length: known.lanes }, (_, lane) => [lane, text]));
  return {
    text,
    lagNow: await lagFrom(kind, known, await positionsOf(target.database, known.pipeline)),
    lagThen: (await lagFrom(kind, known, then)) ?? 0,
  };
}

/**
 * One position from which all lanes can continue under another lane count without losing or repeating an event: their
 * common position, or the end of the log when they have read all of it. Must be called while no instance reads.
 */
export async function commonPlace(target: OperationTarget, known: KnownPipeline): Promise<string | null> {
  const { database } = target;
  const positions = [...(await positionsOf(database, known.pipeline)).values()];
  if (positions.every((text) => text === null)) return null;
  const isEven = new Set(positions).size === 1 && !hasAhead(positions[0] ?? null);
  const isExactlyOnce = known.delivery === "exactly-once";
  const { lagNow, text } = await tailPlace(target, known, "now");
  if (lagNow === 0) return text;
  // Ledgers are per lane: an event that is recorded but not settled would be searched in the wrong one.
  if (isEven && !isExactlyOnce && !(await hasPassed(database, known.pipeline))) return positions[0] ?? null;
  throw uneven(known);
}

function uneven({ pipeline }: KnownPipeline): RelayError {
  const what = `The lanes of ${pipeline} are at different positions in their log, so there is no common position`;
  const way = "resume it, wait until `outbox-relay log list` shows no lag, pause it and retry";
  return new RelayError("CONFIG_INVALID", `${what}: ${way}.`);
}

function hasAhead(text: string | null): boolean {
  const { ahead } = JSON.parse(text ?? "{}") as { readonly ahead?: string | object };
  return ahead !== undefined && ahead !== "";
}

async function hasPassed(database: Database, pipeline: string): Promise<boolean> {
  const [row] = await statement(
    database.pool,
    operationReadSettings(database, "looking for passed events"),
    `select exists (select from ${database.tables.passed} where pipeline = ${quoteLiteral(pipeline)})`,
  );
  return row?.[0] === "t";
}

function specOf({ lanes, pipeline }: KnownPipeline): PipelineSpec {
  const { headersMax, payloadBytesMax } = DEFAULT_LIMITS;
  return { name: pipeline, types: null, lanes, attemptsMax: 1, payloadBytesMax, headersMax };
}

async function positionsOf(database: Database, pipeline: string): Promise<ReadonlyMap<number, string | null>> {
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "reading the positions in the log"),
    `select lane, position::text from ${database.tables.lanes} where pipeline = ${quoteLiteral(pipeline)}`,
  );
  return new Map(rows.map((row) => [Number(row[0]), row[1] ?? null]));
}

/** Rows that were settled ahead of their lane's position are not counted. */
async function lagFrom(
  kind: LogKind<Difference>,
  { lanes }: KnownPipeline,
  positions: ReadonlyMap<number, string | null>,
): Promise<number | null> {
  const heads = new Map<number, LogPosition<Difference>>();
  let ahead = 0;
  for (const [lane, text] of positions) {
    const found = text === null ? null : await kind.decode(text).catch(() => null);
    if (text === null || found === null) return null;
    heads.set(lane, found.place);
    ahead += aheadIn(text);
  }
  const { pending } = await kind.backlog({ heads, laneCount: lanes }, COUNTED_MAX + 1);
  return Math.max(0, pending - ahead);
}

function aheadIn(text: string): number {
  const { ahead = "" } = JSON.parse(text) as { readonly ahead?: string };
  return decodeMarks(ahead)?.size ?? 0;
}
