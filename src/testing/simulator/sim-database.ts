import { MemoryDatabase } from "../../sources/memory/memory-database.ts";
import type { History } from "./history.ts";
import { WALL_START_MS } from "./sim-process.ts";
import type { VirtualTime } from "./virtual-clock.ts";

interface SimDatabaseOptions {
  readonly durableClaims: boolean;
  readonly claimLeaseMs: number;
}

/** So many commits may not have reached the standby yet. */
const COMMITS_KEPT = 40;

/** The model's database with what a server adds to it: a clock that steps, outages, failovers. */
export class SimDatabase {
  readonly model: MemoryDatabase;
  /** Raised when all connections are lost: nobody gets an answer to what was asked before. */
  incarnation = 0;
  readonly #time: VirtualTime;
  readonly #history: History;
  #upAtMs = 0;
  #columnBackAtMs = 0;
  #unlockedAtMs = 0;
  #clockOffsetMs = 0;

  constructor(time: VirtualTime, history: History, options: SimDatabaseOptions) {
    this.#time = time;
    this.#history = history;
    const clock = {
      wallMs: () => WALL_START_MS + time.nowMs + this.#clockOffsetMs,
      monotonicMs: () => time.nowMs,
      sleep: async () => {},
    };
    this.model = new MemoryDatabase({ clock, ...options, commitsKept: COMMITS_KEPT });
  }

  get isUp(): boolean {
    return this.#time.nowMs >= this.#upAtMs;
  }

  get upAgainInMs(): number {
    return Math.max(0, this.#upAtMs - this.#time.nowMs);
  }

  goDown(forMs: number): void {
    this.incarnation += 1;
    this.#upAtMs = Math.max(this.#upAtMs, this.#time.nowMs + forMs);
    this.#history.disturb(null, "database down");
    this.#history.note("database", `down for ${forMs} ms`);
  }

  /** A column that the relay needs is missing for so long: every statement that names it is refused. */
  dropColumn(forMs: number): void {
    this.#columnBackAtMs = Math.max(this.#columnBackAtMs, this.#time.nowMs + forMs);
    this.#history.note("database", `a column is missing for ${forMs} ms`);
  }

  get lacksColumn(): boolean {
    return this.#time.nowMs < this.#columnBackAtMs;
  }

  /** Reads of the table stand still for so long. */
  lock(forMs: number): void {
    this.#unlockedAtMs = Math.max(this.#unlockedAtMs, this.#time.nowMs + forMs);
    this.#history.note("database", `the table is locked for ${forMs} ms`);
  }

  get lockedForMs(): number {
    return Math.max(0, this.#unlockedAtMs - this.#time.nowMs);
  }

  /** Ends an outage early, when the faults are over. */
  comeUp(): void {
    this.#columnBackAtMs = Math.min(this.#columnBackAtMs, this.#time.nowMs);
    this.#unlockedAtMs = Math.min(this.#unlockedAtMs, this.#time.nowMs);
    this.#upAtMs = Math.min(this.#upAtMs, this.#time.nowMs);
  }

  /** A standby takes over that lacks the last commits. Returns the ids that vanished with them. */
  failOver(commits: number, downMs: number): string[] {
    this.goDown(downMs);
    const { tables } = this.model;
    const before = [...tables.open.values(), ...tables.closed.values()];
    const forgotten = tables.forget(commits);
    const lost = before.filter(({ id }) => this.model.row(id) === undefined).map(({ id }) => id);
    for (const { id, key, state } of before) {
      if (state === "DEAD" && key !== null && tables.open.has(id)) this.#history.revivedKeys.add(key);
    }
    for (const event of this.#history.written) {
      if (event.gone === null && lost.includes(event.id)) event.gone = "lost";
      // The replay of it is forgotten, not that it was marked before.
      const isMarked = this.#history.marked.has(event.content) && this.model.row(event.id)?.state === "DELIVERED";
      if (event.gone === null && isMarked) event.gone = "marked";
      const isBack = event.gone === "deleted" ? this.model.row(event.id) !== undefined : tables.open.has(event.id);
      if ((event.gone !== "deleted" && event.gone !== "marked") || !isBack) continue;
      // Marked first and deleted later: only the deletion is forgotten.
      event.gone = tables.open.has(event.id) ? null : "marked";
      if (event.key !== null) this.#history.revivedKeys.add(event.key);
    }
    this.#history.note("database", `failed over, forgot ${forgotten} commits and ${lost.length} events`);
    return lost;
  }

  /** A person, or another relay whose clock is wrong, takes a living instance off the list. */
  takeForDead(name: string): void {
    const { tables } = this.model;
    const ids = [...tables.instances.values()].filter((instance) => instance.name === name).map(({ id }) => id);
    tables.commit(() => {
      for (const id of ids) tables.delete(tables.instances, id);
    });
    this.#history.disturb(null, "instance taken for dead");
  }

  stepClock(byMs: number): void {
    this.#clockOffsetMs += byMs;
    this.#history.disturb(null, "database clock");
    this.#history.note("database", `clock steps by ${byMs} ms`);
    if (!this.model.durableClaims) return;
    // What was waiting for its claim is not available any more, while a later event that was written after another
    // step may be: the table's own order lets it pass.
    for (const { key, availableAtMs } of this.model.tables.open.values()) {
      if (key !== null && availableAtMs > this.model.nowMs()) this.#history.untimelyKeys.add(key);
    }
  }
}
