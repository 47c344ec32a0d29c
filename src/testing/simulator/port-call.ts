import { type ErrorCode, RelayError } from "../../core/errors.ts";
import { CALL_FAULTS, type CallFault, type Faults, RENEWAL_FAULTS } from "./faults.ts";
import type { History } from "./history.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { SimDatabase } from "./sim-database.ts";
import type { SimProcess } from "./sim-process.ts";
import type { SlowSettles } from "./slow-settles.ts";
import type { VirtualTime } from "./virtual-clock.ts";

/** The parts of a simulation that the wrappers of the ports use. */
export interface World {
  readonly time: VirtualTime;
  readonly history: History;
  readonly faults: Faults;
  readonly database: SimDatabase;
  readonly random: SeededRandom;
  readonly leaseMs: number;
  readonly leaseMarginMs: number;
  readonly publishTimeoutMs: number;
  readonly slowSettles: SlowSettles | null;
}

const READS_OF_TABLE = new Set(["probe", "begin", "next", "claimHeads", "backlog", "readUnsettled"]);
const USES_OF_TABLE = new Set([...READS_OF_TABLE, "prepare", "settle", "reviewHolds"]);
/** The database ends a statement that waits for longer. */
const STATEMENT_TIMEOUT_MS = 10_000;
const READ_FAULTS = CALL_FAULTS.filter((kind) => kind !== "late commit");

/** The database calls of one process. A fault can hit each stage of a call. */
export class PortCalls {
  readonly #world: World;
  readonly #process: SimProcess;

  constructor(world: World, process: SimProcess) {
    this.#world = world;
    this.#process = process;
  }

  /** `effect` runs in the database at one point in time between request and answer. */
  call<T>(name: string, writes: boolean, effect: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (!this.#process.isAlive || this.#world.history.isSpinning()) return;
      const kinds = writes ? CALL_FAULTS : READ_FAULTS;
      const fault = this.#world.faults.draw<CallFault>(name === "renew" ? [...kinds, ...RENEWAL_FAULTS] : kinds);
      if (fault !== null) this.#strike(fault, name);
      if (fault === "crash before call") return this.#process.crash();
      if (fault === "pause before call") this.#pause();
      const request = new Request(this.#world, this.#process, name, fault, effect, { resolve, reject });
      this.#process.reach(0, () => request.depart());
    });
  }

  #strike(fault: CallFault, name: string): void {
    this.#world.faults.count(fault);
    this.#world.history.note(this.#process.name, `! ${fault} at ${name}`);
  }

  #pause(): void {
    pauseBriefly(this.#world, this.#process);
  }
}

/** Pauses, some shorter and some longer than the lease. */
export function pauseBriefly(world: World, process: SimProcess): void {
  const { random, leaseMs, history } = world;
  const forMs = random.between(0.1, 2.5) * leaseMs;
  history.disturb(process.name, "pause", forMs);
  process.pause({ forMs, suspended: random.chance(0.3) });
}

interface Answer<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

class Request<T> {
  readonly #world: World;
  readonly #process: SimProcess;
  readonly #name: string;
  readonly #fault: CallFault | null;
  readonly #effect: () => Promise<T>;
  readonly #answer: Answer<T>;
  #incarnation = 0;

  constructor(
    world: World,
    process: SimProcess,
    name: string,
    fault: CallFault | null,
    effect: () => Promise<T>,
    answer: Answer<T>,
  ) {
    this.#world = world;
    this.#process = process;
    this.#name = name;
    this.#fault = fault;
    this.#effect = effect;
    this.#answer = answer;
  }

  depart(): void {
    const { database, random, time, leaseMs } = this.#world;
    this.#incarnation = database.incarnation;
    const slowMs = this.#fault === "slow request" ? random.between(0.05, 1) * leaseMs : 0;
    if (slowMs > 0) this.#world.history.disturb(this.#process.name, "slow request");
    time.after(random.between(0.1, 3) + slowMs, () => this.#arrive());
  }

  #arrive(): void {
    const { database, random } = this.#world;
    // Refused at once, or no answer until the driver times out.
    const { isUp, lacksColumn, lockedForMs } = database;
    if (!isUp) this.#fail(random.chance(0.5) ? 1 : random.between(200, 2_000));
    else if (this.#isCutOff()) this.#fail(1);
    else if (lockedForMs > 0 && READS_OF_TABLE.has(this.#name)) this.#waitForLock(lockedForMs);
    else if (lacksColumn && USES_OF_TABLE.has(this.#name)) this.#refuse("COLUMN_MISSING", "a column is not there");
    else this.#serve();
  }

  #waitForLock(forMs: number): void {
    const waitMs = Math.min(forMs, STATEMENT_TIMEOUT_MS);
    this.#world.history.disturb(this.#process.name, "maintenance lock", waitMs);
    this.#world.time.after(waitMs, () => {
      if (waitMs < forMs) this.#refuse("DATABASE_BUSY", "the table is locked");
      else this.#arrive();
    });
  }

  #serve(): void {
    const errorAfterMs = this.#world.random.between(0, 20);
    if (this.#fault === "busy") this.#refuse("DATABASE_BUSY", "a row is locked");
    else if (this.#fault === "refused") this.#refuse("GRANT_MISSING", "a grant was revoked for a moment");
    else if (this.#fault === "error before effect") this.#fail(errorAfterMs);
    else if (this.#fault === "late commit") this.#commitLate(errorAfterMs);
    else if (this.#fault === "error after effect") {
      this.#take();
      this.#fail(errorAfterMs);
    } else if (this.#fault === "crash after effect") {
      this.#take();
      this.#process.crash();
    } else this.#succeed();
  }

  #succeed(): void {
    const { random, leaseMs, history } = this.#world;
    const outcome = this.#take();
    const isLate = this.#fault === "late answer" || this.#fault === "late renewal";
    const lateMs = isLate ? random.between(0.05, 1) * leaseMs : 0;
    if (isLate) history.disturb(this.#process.name, "late answer");
    if (this.#fault === "pause before answer") pauseBriefly(this.#world, this.#process);
    this.#process.reach(random.between(0.1, 3) + lateMs, () => {
      if (this.#isCutOff()) this.#reject(unreachable(this.#name));
      else outcome.then(this.#answer.resolve, this.#answer.reject);
    });
  }

  /** The client gave up but the server did not: the statement waited for a lock and commits later. */
  #commitLate(errorAfterMs: number): void {
    const { random, time, leaseMs, database, history } = this.#world;
    time.after(errorAfterMs + random.between(0.02, 0.6) * leaseMs, () => {
      if (!database.isUp || this.#isCutOff()) return;
      history.note(this.#process.name, `${this.#name} commits late`);
      history.disturb(this.#process.name, "late commit");
      this.#take();
    });
    this.#fail(errorAfterMs);
  }

  #take(): Promise<T> {
    const outcome = this.#effect();
    // The process may be gone.
    outcome.catch(() => {});
    return outcome;
  }

  /** An error that guarantees that the call had no effect. */
  #refuse(code: ErrorCode, why: string): void {
    const waitMs = this.#world.random.between(1, 100);
    // A refused settle is retried; a lease that is not renewed in time is lost.
    if (this.#name === "renew") this.#world.history.disturb(this.#process.name, "renewal refused");
    this.#process.reach(waitMs, () => this.#answer.reject(new RelayError(code, `${this.#name}: ${why}.`)));
  }

  #fail(waitMs: number): void {
    this.#process.reach(waitMs, () => this.#reject(unreachable(this.#name)));
  }

  #reject(error: unknown): void {
    this.#world.history.disturb(this.#process.name, `error of ${this.#name}`);
    this.#world.history.note(this.#process.name, `${this.#name} failed`);
    this.#answer.reject(error);
  }

  #isCutOff(): boolean {
    return this.#incarnation !== this.#world.database.incarnation;
  }
}

export function unreachable(name: string): RelayError {
  return new RelayError("DATABASE_UNREACHABLE", `${name}: the connection was lost.`);
}
