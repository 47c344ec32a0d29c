import { isRelayError, RelayError } from "../../core/errors.ts";
import type { Unmarked } from "../../core/hold.ts";
import type { Failure, Settlement, SettleResult } from "../../ports/queue-store.ts";
import { isRowError, sqlStateOf } from "../../postgres/errors.ts";
import { deleteHolds, failureColumns, type HoldScope, writeFailures, writeSuspects } from "../../postgres/holds.ts";
import { displayTable } from "../../postgres/identifiers.ts";
import { fenced, requireGrant, writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Row, Session } from "../../postgres/session.ts";
import { statement, transaction } from "../../postgres/transaction.ts";
import { checkAtOnce, holdUnmarked, writeApart } from "../../postgres/unmarked.ts";
import { type LockedRows, markSql, SHARED_ID } from "./settle.sql.ts";
import type { TableShape } from "./table-shape.ts";

/**
 * By its estimate the planner would rather scan a table of 60,000 rows than look up 500 of them, which is ten times
 * slower.
 */
export const SETTLE_SETTINGS = { enable_seqscan: "off", jit: "off" };

const LOCK_NOT_AVAILABLE = "55P03";

interface Marked {
  /** Delivered, but not marked by this settle. */
  readonly missing: readonly string[];
  /** The table has triggers that can undo a mark after the statement. */
  readonly hasUndoers: boolean;
}

/**
 * Writes the outcomes of claimed events of one table. When all were delivered, it is one statement in one round trip;
 * its fence makes it change nothing once the lane has a new owner. Everything else follows in the same transaction,
 * behind the fence's lock on the lane's row.
 */
export class TableSettler {
  readonly #database: Database;
  readonly #pipeline: string;
  readonly #shape: TableShape;
  /** Marks were undone before: then the check runs in the same transaction as the mark. */
  #isWary = false;

  constructor(database: Database, pipeline: string, shape: TableShape) {
    this.#database = database;
    this.#pipeline = pipeline;
    this.#shape = shape;
  }

  async settle(settlement: Settlement): Promise<SettleResult> {
    try {
      return await this.#settle(settlement, "wait");
    } catch (error) {
      const shared = sharedIdIn(error);
      if (shared !== null) {
        const what = `Several rows of ${displayTable(this.#shape.name)} have the id ${shared}; only one of them was sent`;
        throw new RelayError("ID_NOT_UNIQUE", what, { cause: error });
      }
      if (isRelayError(error) && isRowError(error.cause)) return await this.#settleApart(settlement);
      // One locked row must not keep all others unmarked.
      const isLocked = isRelayError(error, "DATABASE_BUSY") && sqlStateOf(error.cause) === LOCK_NOT_AVAILABLE;
      if (!isLocked || settlement.delivered.length === 0) throw error;
      return await this.#settle(settlement, "skip");
    }
  }

  async #settle(settlement: Settlement, locked: LockedRows): Promise<SettleResult> {
    const { failed, releasedHolds, suspects } = settlement;
    const isPlain = failed.length === 0 && releasedHolds.length === 0 && suspects.length === 0;
    if (!isPlain || this.#isWary || locked === "skip") return await this.#inTransaction(settlement, locked);
    const mark = markSql(this.#database.tables, this.#pipeline, this.#shape, settlement);
    const [row] = await statement(this.#database.pool, this.#settings(), mark);
    const marked = markedOf(row, this.#pipeline, settlement);
    if (marked.missing.length === 0 && !marked.hasUndoers) return { missing: [] };
    return await transaction(this.#database.pool, this.#settings(), async (session) => {
      await requireGrant(session, this.#database, this.#pipeline, settlement.grant);
      return await this.#lookAgain(session, settlement, marked, "refused");
    });
  }

  async #inTransaction(settlement: Settlement, locked: LockedRows): Promise<SettleResult> {
    const mark = markSql(this.#database.tables, this.#pipeline, this.#shape, settlement, locked);
    return await transaction(this.#database.pool, this.#settings(), async (session) => {
      const [row] = await session.rows(mark);
      const marked = markedOf(row, this.#pipeline, settlement);
      const { gone, dead } = await this.#writeHolds(session, settlement);
      await noteFailures(session, this.#shape, settlement.failed);
      const kind = locked === "skip" ? "locked" : "refused";
      const { missing, unmarked } = await this.#lookAgain(session, settlement, marked, kind);
      return { missing: [...missing, ...gone], unmarked, dead };
    });
  }

  /** Settles where a row makes the statement fail: a trigger raises an error, or a constraint rejects the new values. */
  async #settleApart(settlement: Settlement): Promise<SettleResult> {
    const { sending: _, ...plain } = settlement;
    const nothing = { delivered: [], failed: [], handedBack: [], releasedHolds: [], suspects: [] };
    const missing: string[] = [];
    return await transaction(this.#database.pool, this.#settings(), async (session) => {
      await checkAtOnce(session);
      const mark = async (part: Settlement) => {
        const text = markSql(this.#database.tables, this.#pipeline, this.#shape, part, "skip");
        return markedOf((await session.rows(text))[0], this.#pipeline, part).missing;
      };
      await mark({ ...settlement, ...nothing });
      const { ids: refused, reason } = await writeApart(session, settlement.delivered, async (delivered) => {
        missing.push(...(await mark({ ...plain, ...nothing, previousBatch: plain.batch, delivered })));
      });
      const { gone, dead } = await this.#writeHolds(session, settlement);
      // The hold says the same; a row that cannot say it stays as it is.
      await writeApart(
        session,
        settlement.failed.map(({ id }) => id),
        (ids) =>
          noteFailures(
            session,
            this.#shape,
            settlement.failed.filter(({ id }) => ids.includes(id)),
          ),
      );
      const scope = this.#scope(settlement);
      const others = settlement.delivered.filter((id) => !refused.includes(id));
      const unmarked = new Map([
        ...(await holdUnmarked(session, scope, this.#shape, refused, "refused")),
        ...(await holdUnmarked(session, scope, this.#shape, others, "locked")),
      ]);
      const vanished = [...missing, ...refused].filter((id) => !unmarked.has(id));
      return { missing: [...vanished, ...gone], unmarked, dead, refusal: reason ?? undefined };
    });
  }

  async #writeHolds(session: Session, settlement: Settlement) {
    const scope = this.#scope(settlement);
    await deleteHolds(session, scope, settlement.releasedHolds);
    await writeSuspects(session, scope, settlement.suspects);
    return await writeFailures(session, scope, this.#shape, settlement.failed);
  }

  /** Separates rows that are gone from rows that still exist unmarked. The latter are held. */
  async #lookAgain(session: Session, settlement: Settlement, { missing, hasUndoers }: Marked, kind: Unmarked) {
    const asked = hasUndoers ? settlement.delivered : missing;
    const unmarked = await holdUnmarked(session, this.#scope(settlement), this.#shape, asked, kind);
    if (hasUndoers || unmarked.size > 0) this.#isWary = true;
    return { missing: missing.filter((id) => !unmarked.has(id)), unmarked };
  }

  #scope({ grant }: Settlement): HoldScope {
    return { tables: this.#database.tables, pipeline: this.#pipeline, lane: grant.lane };
  }

  #settings() {
    const { name } = this.#shape;
    return { ...writeSettings(this.#database, "settling", displayTable(name)), settings: SETTLE_SETTINGS };
  }
}

/** The id that several rows share, if that made the marking fail. The rest of the message is in the server's language. */
function sharedIdIn(error: unknown): string | null {
  const reason = error instanceof Error && error.cause instanceof Error ? error.cause.message : "";
  const at = reason.indexOf(`${SHARED_ID} [`);
  return at < 0 ? null : reason.slice(at + SHARED_ID.length + 2, reason.lastIndexOf("]"));
}

function markedOf(row: Row | undefined, pipeline: string, { grant, delivered }: Settlement): Marked {
  if (row?.[0] !== "1") throw fenced(pipeline, grant);
  const hasUndoers = row[3] === "t";
  if (Number(row[2]) === delivered.length) return { missing: [], hasUndoers };
  const marked: unknown = JSON.parse(row[1] ?? "[]");
  const ids = new Set(Array.isArray(marked) ? marked : []);
  return { missing: delivered.filter((id) => !ids.has(id)), hasUndoers };
}

/** Writes failures into the rows where they have columns for them. Last, because it can end the row's pending state. */
async function noteFailures(session: Session, shape: TableShape, failed: readonly Failure[]): Promise<void> {
  if (failed.length === 0 || shape.markFailed === null) return;
  await session.rows(
    `update ${shape.quotedName} t set ${shape.markFailed}
     from unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::bigint[], $6::boolean[])
       as f (id, key, reason, attempts, delay_ms, parks)
     where ${shape.id} = f.id::${shape.idType} and ${shape.id} = any($1::text[]::${shape.idType}[])
       and ${shape.unsettled}`,
    failureColumns(failed),
  );
}
