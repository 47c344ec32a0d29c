import type { DurableClaims, Grant, Run, RunRequest, Settlement } from "../../../ports/queue-store.ts";
import { displayTable, quoteLiteral } from "../../../postgres/identifiers.ts";
import { laneStateOf, type TakenLane, writeSettings } from "../../../postgres/lanes.ts";
import type { Database } from "../../../postgres/pool.ts";
import type { Session } from "../../../postgres/session.ts";
import { timelineSql } from "../../../postgres/timeline.ts";
import { statement, transaction } from "../../../postgres/transaction.ts";
import { pruneSql } from "../postgres-store.sql.ts";
import type { PreparedTable, TableClaims } from "../postgres-store.ts";
import { refreshSql } from "./claim.sql.ts";
import { BY_ID_SETTINGS, CLAIM_SETTINGS, ClaimMemory, claim, claimHeads, type Queue } from "./claim.ts";
import { freeLanes, releaseLane } from "./lane-handover.ts";
import { reapStaleSql, releaseForgottenSql } from "./openoutbox-claims.sql.ts";
import { mineCondition } from "./openoutbox-table.ts";
import { noteReaped } from "./reaped-rows.ts";
import { settle } from "./settle.ts";
import { UnclaimableRows } from "./unclaimable-rows.ts";

interface ClaimParts {
  readonly database: Database;
  readonly spec: Queue["spec"];
  readonly leaseMs: number;
  readonly lockPrefix: string;
  readonly table: Parameters<typeof displayTable>[0];
}

/** The column's maximum; a higher limit is no limit. */
const ATTEMPTS_MAX = 2_147_483_647;

/** Claims that are stored in the rows, where other relays see them. */
export class OpenOutboxClaims implements DurableClaims, TableClaims {
  readonly leaseMs: number;
  readonly #parts: ClaimParts;
  readonly #prepared: () => Promise<PreparedTable>;
  readonly #pruner = new Pruner();
  readonly #memory = new ClaimMemory();
  readonly #unclaimable: UnclaimableRows;

  constructor(parts: ClaimParts, prepared: () => Promise<PreparedTable>) {
    this.leaseMs = parts.leaseMs;
    this.#parts = parts;
    this.#prepared = prepared;
    this.#unclaimable = new UnclaimableRows(parts.table);
  }

  async onTaken(session: Session, taken: readonly TakenLane[]): Promise<void> {
    const { scope } = await this.#queue();
    await freeLanes(session, scope, taken);
  }

  async release(grant: Grant, suspects: readonly string[]): Promise<void> {
    await releaseLane(await this.#queue(), grant, suspects);
  }

  /**
   * A run holds nothing open: each page is a claim of its own, taken from what is pending at that moment. Claimed
   * events are never shown twice.
   */
  async begin(request: RunRequest, probe: (grants: readonly Grant[]) => Promise<boolean>): Promise<Run> {
    const queue = await this.#queue();
    const { database, scope } = queue;
    const lanes = request.grants.map(({ lane }) => lane);
    const settings = {
      context: database.errorContext("reading the lanes", displayTable(scope.shape.name)),
      statementTimeoutMs: database.timeouts.readMs,
      readOnly: true,
      settings: { jit: "off", work_mem: CLAIM_SETTINGS.work_mem },
    };
    const text = `select lane, owner, epoch, settled_batch, ${await timelineSql(database)} from ${scope.tables.lanes}
      where pipeline = ${quoteLiteral(scope.pipeline)} and lane in (${lanes.join(", ") || "null"}) order by lane`;
    const rows = await statement(database.pool, settings, text);
    let isEnded = false;
    return {
      lanes: rows.map((row) => laneStateOf(row, row[4])),
      next: async (count, bytes, rooms) => {
        if (isEnded) return [];
        const events = await claim(queue, request, count, bytes, rooms ?? null);
        // Events that are left out on purpose are pending too, so they prove no fault.
        const leavesOut = request.exceptKeys.length + request.exceptTypes.length > 0;
        const roomy = request.grants.filter(({ lane }) => rooms === undefined || (rooms.get(lane) ?? 0) > 0);
        await this.#unclaimable.claimed(events.length, async () => !leavesOut && (await probe(roomy)));
        return events;
      },
      end: async () => {
        isEnded = true;
      },
    };
  }

  async claimHeads(grant: Grant, ids: readonly string[]) {
    return await claimHeads(await this.#queue(), grant, ids);
  }

  async settle(settlement: Settlement) {
    return await settle(await this.#queue(), settlement);
  }

  async prune(olderThanMs: number, rows: number): Promise<number> {
    return await this.#pruner.prune(await this.#queue(), olderThanMs, rows);
  }

  async refresh(owner: string, ids: readonly string[]): Promise<void> {
    const { database, scope } = await this.#queue();
    const settings = {
      ...writeSettings(database, "refreshing claims", displayTable(scope.shape.name)),
      settings: BY_ID_SETTINGS,
    };
    if (ids.length > 0) await statement(database.pool, settings, refreshSql(scope, owner, ids, this.leaseMs));
    await statement(database.pool, settings, releaseForgottenSql(scope, owner, ids, this.leaseMs));
  }

  async reapStale(rows: number): Promise<{ readonly freed: number; readonly dead: number }> {
    const { database, scope } = await this.#queue();
    const settings = writeSettings(database, "reaping stale claims", displayTable(scope.shape.name));
    return await transaction(database.pool, settings, async (session) => {
      const reaped = await session.rows(reapStaleSql(scope, this.leaseMs, rows));
      const dead = await noteReaped(session, scope, reaped);
      return { freed: reaped.length - dead, dead };
    });
  }

  async #queue(): Promise<Queue> {
    const { database, lockPrefix, spec } = this.#parts;
    const { reader, scope } = await this.#prepared();
    const attemptsMax = Math.min(Math.ceil(spec.attemptsMax), ATTEMPTS_MAX);
    return { database, spec, reader, memory: this.#memory, scope: { ...scope, attemptsMax, lockPrefix } };
  }
}

/** 8 MB of the table per step: a few milliseconds. */
const STEP_BLOCKS = 1_024;
const STEPS_MAX = 16;

/**
 * Deletes delivered rows in small steps. The table has no index that finds them, and scanning a large table again and
 * again would cost more than the rows do. So the pruner walks through the blocks and remembers where it stopped.
 */
class Pruner {
  #block = 0;

  async prune(queue: Queue, olderThanMs: number, rows: number): Promise<number> {
    const { database, scope } = queue;
    const settings = writeSettings(database, "deleting delivered events", displayTable(scope.shape.name));
    const size = `pg_relation_size(${quoteLiteral(scope.shape.quotedName)}::regclass)`;
    const [found] = await statement(database.pool, settings, `select ${size} / current_setting('block_size')::bigint`);
    const blockCount = Number(found?.[0]);
    let count = 0;
    for (let step = 0; step < Math.min(STEPS_MAX, Math.ceil(blockCount / STEP_BLOCKS) || 1); step++) {
      if (this.#block >= blockCount) this.#block = 0;
      const blocks = `t.ctid >= '(${this.#block},0)'::tid and t.ctid < '(${this.#block + STEP_BLOCKS},0)'::tid`;
      // A small table is done in one step. So is a partitioned one, whose own size is zero.
      const within = blockCount <= STEP_BLOCKS ? mineCondition(scope) : `${mineCondition(scope)} and ${blocks}`;
      const wanted = { deliveredAt: "t.delivered_at", olderThanMs, rows: rows - count, within };
      const [row] = await statement(database.pool, settings, pruneSql(scope.shape, wanted));
      count += Number(row?.[0]);
      if (count >= rows) return count;
      this.#block += STEP_BLOCKS;
    }
    return count;
  }
}
