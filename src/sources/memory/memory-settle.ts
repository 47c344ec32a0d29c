import type { Unmarked } from "../../core/hold.ts";
import type { DeadLetterNote, Failure, Settlement } from "../../ports/queue-store.ts";
import type { MemoryDatabase } from "./memory-database.ts";
import type { MemoryEventRow, MemoryHoldRow, MemoryPipelineTables } from "./memory-tables.ts";

/** The writes of one settle. The caller has opened the transaction and checked the fence. */
export class SettleWriter {
  readonly missing: string[] = [];
  readonly dead: DeadLetterNote[] = [];
  readonly unmarked = new Map<string, Unmarked>();
  readonly #database: MemoryDatabase;
  readonly #pipeline: MemoryPipelineTables;
  readonly #settlement: Settlement;

  constructor(database: MemoryDatabase, pipeline: MemoryPipelineTables, settlement: Settlement) {
    this.#database = database;
    this.#pipeline = pipeline;
    this.#settlement = settlement;
  }

  write(): void {
    const { tables } = this.#database;
    const { delivered, failed, ledger, suspects, releasedHolds } = this.#settlement;
    for (const id of delivered) {
      const row = tables.open.get(id);
      if (row !== undefined && this.#database.refusesMark(id)) this.#holdUnmarked(row);
      else if (ledger !== "heal") this.#ifOurs(id, (row) => this.#database.close(row, "DELIVERED"));
      // The ledger proves the delivery, so this also corrects an event that died with the owner who delivered it.
      else if (!this.#database.mark(id)) this.missing.push(id);
    }
    for (const failure of failed) this.#ifOurs(failure.id, (row) => this.#fail(row, failure));
    for (const { id, key } of suspects) this.#ifOurs(id, () => this.#suspect(id, key));
    for (const id of releasedHolds) if (!this.unmarked.has(id)) tables.delete(this.#pipeline.holds, id);
    this.#raiseBatch();
  }

  /** A pending row is accepted too: an event that repeatedly crashed the relay becomes dead without another claim. */
  #ifOurs(id: string, write: (row: MemoryEventRow) => void): void {
    const row = this.#database.tables.open.get(id);
    const isOurs = row?.state === "PENDING" || row?.lockedBy === this.#settlement.grant.owner;
    if (row !== undefined && isOurs) write(row);
    else this.missing.push(id);
  }

  /** The event was delivered: the hold keeps everyone from sending it again. */
  #holdUnmarked({ id, key }: MemoryEventRow): void {
    this.#put({ ...this.#holdOf(id, key), state: "dead", parks: false, dueAtMs: null, unmarked: "refused" });
    this.unmarked.set(id, "refused");
  }

  #fail(row: MemoryEventRow, failure: Failure): void {
    const nowMs = this.#database.nowMs();
    const { id, key, attempts, reason, next } = failure;
    const found = this.#holdOf(id, key);
    // A failed suspect crashed no process, so its last crash does not count.
    const before = { ...found, crashes: found.crashes - (found.state === "suspect" ? 1 : 0) };
    const errors = [...before.errors, { attempt: attempts, reason, atMs: nowMs }];
    if (next.kind === "dead") {
      const hold: MemoryHoldRow = { ...before, state: "dead", parks: next.parks, attempts, dueAtMs: null, errors };
      this.#put(hold);
      this.#database.writeDeadLetter(this.#pipeline.name, row, hold);
      this.dead.push(noteOf(row, hold));
      return;
    }
    const dueAtMs = nowMs + next.delayMs;
    this.#put({ ...before, state: "retrying", parks: key !== null, attempts, dueAtMs, errors });
    if (this.#database.durableClaims) this.#database.reopen({ ...row, attempts, availableAtMs: dueAtMs });
  }

  #suspect(id: string, key: string | null): void {
    const before = this.#holdOf(id, key);
    const { crashes } = before;
    const dueAtMs = this.#database.nowMs();
    this.#put({ ...before, state: "suspect", parks: key !== null, crashes: crashes + 1, dueAtMs });
  }

  #holdOf(id: string, key: string | null): MemoryHoldRow {
    const fresh = { state: "retrying", parks: false, attempts: 0, crashes: 0, dueAtMs: null, errors: [] } as const;
    return this.#pipeline.holds.get(id) ?? { id, key, lane: this.#settlement.grant.lane, ...fresh };
  }

  #put(hold: MemoryHoldRow): void {
    this.#database.tables.put(this.#pipeline.holds, hold.id, hold);
  }

  /** A settle that only announces suspects proves no delivery, so it does not lower the lane's crash count. */
  #raiseBatch(): void {
    const { grant, batch, delivered, ledger, previousBatch, sending } = this.#settlement;
    const lane = this.#pipeline.lanes.get(grant.lane)!;
    const ledgeredBatch = ledger === "none" || batch === previousBatch ? lane.ledgeredBatch : batch;
    const crashes = delivered.length > 0 ? Math.max(0, lane.crashes - 1) : lane.crashes;
    this.#database.tables.put(this.#pipeline.lanes, grant.lane, {
      ...lane,
      settledBatch: batch,
      ledgeredBatch,
      crashes,
      sending: sending ?? lane.sending,
    });
  }
}

function noteOf({ id, type, correlationId }: MemoryEventRow, { errors }: MemoryHoldRow): DeadLetterNote {
  const attempts = errors.map(({ atMs, attempt, reason }) => ({ at: new Date(atMs).toISOString(), attempt, reason }));
  const [first, last] = [attempts[0]?.at ?? "", attempts.at(-1)?.at ?? ""];
  return { id, type, correlationId, firstFailedAt: first, lastFailedAt: last, errors: attempts };
}
