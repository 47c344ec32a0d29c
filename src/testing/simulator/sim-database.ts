import { MemoryDatabase } from "../../sources/memory/memory-database.ts";
import type { History } from "./history.ts";
import { WALL_START_MS } from "./sim-process.ts";
import type { VirtualTime } from "./virtual-clock.ts";

interface SimDatabaseOptions {
  readonly durableClaims: boolean;
  readonly claimLeaseMs: number;
}

/** Maximum number of commits that have not reached the standby. */
const COMMITS_KEPT = 40;

/** The memory database with the faults of a server: clock steps, outages, failovers. */
export class SimDatabase {
  readonly model: MemoryDatabase;
  /** Incremented when all connections are lost: earlier requests get no answer. */
  incarnation = 0;
  readonly #time: VirtualTime;
  readonly #history: History;
  #upAtMs = 0;
  #columnBackAtMs = 0;
  #unlockedAtMs = 0;
  #marksRefusedUntilMs = 0;
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

  /** A column is missing for this time: every statement that names it is refused. */
  dropColumn(forMs: number): void {
    this.#columnBackAtMs = Math.max(this.#columnBackAtMs, this.#time.nowMs + forMs);
    this.#history.note("database", `a column is missing for ${forMs} ms`);
  }

  get lacksColumn(): boolean {
    return this.#time.nowMs < this.#columnBackAtMs;
  }

  /** A lock blocks reads of the table for this time. */
  lock(forMs: number): void {
    this.#unlockedAtMs = Math.max(this.#unlockedAtMs, this.#time.nowMs + forMs);
    this.#history.note("database", `the table is locked for ${forMs} ms`);
  }

  get lockedForMs(): number {
    return Math.max(0, this.#unlockedAtMs - this.#time.nowMs);
  }

  /** For so long, every `nth` row does not let itself be marked. */
  refuseMarks(forMs: number, nth: number): void {
    this.#marksRefusedUntilMs = Math.max(this.#marksRefusedUntilMs, this.#time.nowMs + forMs);
    this.model.refusesMark = (id) => this.#time.nowMs < this.#marksRefusedUntilMs && Number(id.slice(1)) % nth === 0;
    this.#history.note("database", `every ${nth}. row cannot be marked for ${forMs} ms`);
  }

  /** Ends an outage early, when the faults are over. */
  comeUp(): void {
    this.#columnBackAtMs = Math.min(this.#columnBackAtMs, this.#time.nowMs);
    this.#unlockedAtMs = Math.min(this.#unlockedAtMs, this.#time.nowMs);
    this.#marksRefusedUntilMs = Math.min(this.#marksRefusedUntilMs, this.#time.nowMs);
    this.#upAtMs = Math.min(this.#upAtMs, this.#time.nowMs);
  }

  /** A standby without the last commits takes over. Returns the lost ids. */
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
      // Compare contents: another event may have reused an id that an earlier failover lost.
      const row = this.model.row(event.id);
      const own = row?.payload.toString("latin1") === event.content ? row : undefined;
      if (event.gone === null && lost.includes(event.id)) event.gone = "lost";
      // The failover lost its replay but not the earlier mark.
      const isMarked = this.#history.marked.has(event.content) && own?.state === "DELIVERED";
      if (event.gone === null && isMarked) event.gone = "marked";
      const isOpen = own !== undefined && tables.open.has(event.id);
      const isBack = event.gone === "deleted" ? own !== undefined : isOpen;
      if ((event.gone !== "deleted" && event.gone !== "marked") || !isBack) continue;
      // Marked first and deleted later: the failover lost only the deletion.
      event.gone = isOpen ? null : "marked";
      if (event.key !== null) this.#history.revivedKeys.add(event.key);
    }
    this.#history.note("database", `failed over, forgot ${forgotten} commits and ${lost.length} events`);
    return lost;
  }

  /** An operator, or another relay with a wrong clock, removes a living instance. */
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
    // A pending event may now have an available time in the future, while an event written after another clock step does
    // not: by the order of the table it may overtake.
    for (const { key, availableAtMs } of this.model.tables.open.values()) {
      if (key !== null && availableAtMs > this.model.nowMs()) this.#history.untimelyKeys.add(key);
    }
  }
}
