import type { DurableClaims, Grant, PipelineSpec } from "../../ports/queue-store.ts";
import type { MemoryDatabase } from "./memory-database.ts";
import { isAlive } from "./memory-membership.ts";
import type { MemoryEventRow, MemoryHoldRow, MemoryLaneRow, MemoryPipelineTables } from "./memory-tables.ts";

interface ClaimsContext {
  readonly database: MemoryDatabase;
  readonly spec: PipelineSpec;
  pipeline(): MemoryPipelineTables;
  laneOf(row: MemoryEventRow): number;
  isMine(row: MemoryEventRow): boolean;
}

/** The response to a claim can take this long to reach its owner. Younger claims are never treated as forgotten. */
const FORGOTTEN_MS_MIN = 10_000;

/** Claims that live in the row: `lockedBy` and `lockedAtMs` are set exactly while the state is DELIVERING. */
export class MemoryClaims implements DurableClaims {
  readonly leaseMs: number;
  readonly #context: ClaimsContext;

  constructor(context: ClaimsContext) {
    this.#context = context;
    this.leaseMs = context.database.claimLeaseMs;
  }

  /** Claims the row in its current state; null when it is no longer free or not available yet. */
  claim(id: string, owner: string): MemoryEventRow | null {
    const { tables } = this.#context.database;
    const row = tables.open.get(id);
    const nowMs = this.#context.database.nowMs();
    const isOurs = row?.lockedBy === owner;
    if (row === undefined || (!isOurs && (row.state !== "PENDING" || row.availableAtMs > nowMs))) return null;
    const claimNumber = this.#context.database.nextClaim();
    const claimed: MemoryEventRow = { ...row, state: "DELIVERING", lockedBy: owner, lockedAtMs: nowMs, claimNumber };
    tables.commit(() => tables.put(tables.open, id, claimed));
    return claimed;
  }

  /** Releases claims of this owner that it never sent. */
  handBack(ids: readonly string[], owner: string): void {
    const { database } = this.#context;
    for (const id of ids) {
      const row = database.tables.open.get(id);
      if (row?.lockedBy === owner) database.reopen(row);
    }
  }

  /** Frees the claims of the lane's former owner. If that owner died, counts an attempt for each event it had sent. */
  freeLane({ lane, sending }: MemoryLaneRow, owner: string, died: boolean): void {
    const { database, laneOf, isMine, spec } = this.#context;
    const sent = new Set(died ? sending : []);
    for (const row of [...database.tables.open.values()]) {
      if (row.lockedBy !== owner || !isMine(row) || laneOf(row) !== lane) continue;
      const counted = Math.min(row.attempts + 1, Math.max(row.attempts, spec.attemptsMax - 1));
      database.reopen({ ...row, attempts: sent.has(row.id) ? counted : row.attempts });
    }
  }

  async refresh(owner: string, ids: readonly string[]): Promise<void> {
    const { tables } = this.#context.database;
    const lockedAtMs = this.#context.database.nowMs();
    tables.commit(() => {
      for (const id of ids) {
        const row = tables.open.get(id);
        const isOurs = row?.lockedBy === owner;
        // A claim younger than an eighth of the lease needs no write.
        if (isOurs && row.lockedAtMs! < lockedAtMs - this.leaseMs / 8)
          tables.put(tables.open, id, { ...row, lockedAtMs });
      }
    });
    this.#releaseForgotten(owner, new Set(ids), lockedAtMs - Math.max(this.leaseMs, FORGOTTEN_MS_MIN));
  }

  /**
   * Releases claims under our name that the instance does not know, for example because the response to the claim was
   * lost.
   */
  #releaseForgotten(owner: string, known: ReadonlySet<string>, beforeMs: number): void {
    const { database, isMine } = this.#context;
    for (const row of [...database.tables.open.values()]) {
      const isForgotten = row.lockedBy === owner && !known.has(row.id) && isMine(row);
      if (isForgotten && (row.lockedAtMs ?? 0) < beforeMs) database.reopen(row);
    }
  }

  async reapStale(rows: number): Promise<{ readonly freed: number; readonly dead: number }> {
    const { database, isMine } = this.#context;
    const nowMs = database.nowMs();
    // A dead instance's claims on our lanes are freed with the lane, where it is known which events it had sent.
    const owners = new Set([...this.#context.pipeline().lanes.values()].map(({ owner }) => owner));
    const stale = [...database.tables.open.values()].filter(
      (row) =>
        row.lockedBy !== null &&
        row.lockedAtMs !== null &&
        row.lockedAtMs < nowMs - this.leaseMs &&
        isMine(row) &&
        !owners.has(row.lockedBy) &&
        !isAlive(database.tables.instances.get(row.lockedBy), nowMs),
    );
    const taken = stale.slice(0, rows);
    const dead = database.tables.commit(() => taken.filter((row) => this.#reap(row)).length);
    return { freed: taken.length - dead, dead };
  }

  /** Returns true when this was the last attempt. The row knows no parking policy, so its death parks no key. */
  #reap(row: MemoryEventRow): boolean {
    const { database, spec } = this.#context;
    const attempts = row.attempts + 1;
    if (attempts < spec.attemptsMax) {
      database.reopen({ ...row, attempts });
      return false;
    }
    const { tables } = database;
    const { holds } = this.#context.pipeline();
    const reason = `The relay that was sending it died; this was attempt ${attempts}.`;
    const hold = deadHold(row, this.#context.laneOf(row), attempts, holds.get(row.id));
    const errors = [...hold.errors, { attempt: attempts, reason, atMs: database.nowMs() }];
    tables.put(holds, row.id, { ...hold, errors });
    database.writeDeadLetter(spec.name, row, { ...hold, errors });
    return true;
  }
}

function deadHold(
  row: MemoryEventRow,
  lane: number,
  attempts: number,
  before: MemoryHoldRow | undefined,
): MemoryHoldRow {
  const { id, key } = row;
  const { crashes, errors } = before ?? { crashes: 0, errors: [] };
  return { id, key, lane, state: "dead", parks: false, attempts, crashes, dueAtMs: null, errors };
}

/** Whether the grant still names the lane's owner, epoch and timeline. Every write of progress checks this first. */
export function holdsGrant(pipeline: MemoryPipelineTables, grant: Grant, timeline: string): boolean {
  const lane = pipeline.lanes.get(grant.lane);
  return lane?.owner === grant.owner && lane.epoch === grant.epoch && (grant.timeline ?? timeline) === timeline;
}
