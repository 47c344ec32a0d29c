import { RelayError } from "../../core/errors.ts";
import type { LaneAddress } from "../../ports/transactions.ts";
import type { TransactionBroker } from "../../publishers/memory/memory-transaction-broker.ts";
import { LEDGER_FAULTS, TRANSACTION_FAULTS, type TransactionFault } from "./faults.ts";
import type { Way } from "./message-judge.ts";
import { pauseBriefly } from "./port-call.ts";
import type { TransactionRecord } from "./sim-broker.ts";

export type Broker = TransactionBroker<TransactionRecord>;

interface Asked<T> {
  readonly name: "prepare" | "fence" | "ledger" | "commit" | "abort";
  /** Null for a request that is not about a lane. */
  readonly lane: LaneAddress | null;
  readonly signal: AbortSignal;
  /** Runs at the broker when the request arrives. Throws if the broker refuses. */
  readonly effect: () => T;
  /** A copy of the request is still on the wire, although the caller gets its answer. */
  readonly onCopy?: () => void;
}

/** Draws the fault of a request and applies faults of the process itself. Null: the process has crashed. */
export function drawFault(way: Way, name: string): { readonly fault: TransactionFault | null } | null {
  const { world, process } = way;
  const { faults, history } = world;
  if (!process.isAlive || history.isSpinning()) return null;
  way.broker.requests += 1;
  const kinds = name === "ledger" ? [...TRANSACTION_FAULTS, ...LEDGER_FAULTS] : TRANSACTION_FAULTS;
  const fault = faults.draw<TransactionFault>(kinds);
  if (fault === null) return { fault };
  faults.count(fault);
  history.note(process.name, `! ${fault} at ${name}`);
  history.disturb(process.name, fault);
  if (fault === "pause before transaction") pauseBriefly(world, process);
  if (fault !== "crash before transaction") return { fault };
  process.crash();
  return null;
}

/** A transaction request: it leaves, arrives and is answered. A fault can hit each stage. */
export class TransactionRequest<T> {
  readonly #way: Way;
  readonly #broker: Broker;
  readonly #asked: Asked<T>;
  readonly #fault: TransactionFault | null;
  readonly #resolve: (value: T) => void;
  readonly #reject: (error: unknown) => void;
  #isOver = false;

  static ask<T>(way: Way, broker: Broker, asked: Asked<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const drawn = drawFault(way, asked.name);
      if (drawn === null) return;
      const request = new TransactionRequest(way, broker, asked, drawn.fault, { resolve, reject });
      way.process.reach(0, () => request.#depart());
    });
  }

  private constructor(
    way: Way,
    broker: Broker,
    asked: Asked<T>,
    fault: TransactionFault | null,
    answer: { readonly resolve: (value: T) => void; readonly reject: (error: unknown) => void },
  ) {
    this.#way = way;
    this.#broker = broker;
    this.#asked = asked;
    this.#fault = fault;
    this.#resolve = answer.resolve;
    this.#reject = answer.reject;
  }

  #depart(): void {
    const { signal } = this.#asked;
    const { random, time, leaseMs } = this.#way.world;
    if (signal.aborted) {
      this.#giveUp(0);
      return;
    }
    signal.addEventListener("abort", () => this.#giveUp(random.between(0, random.pick([1, 10, 200]))), { once: true });
    const travelMs = random.between(0.1, 2);
    if (this.#fault === "transaction request lost" || this.#fault === "ledger unreachable") this.#leaveUnanswered();
    else if (this.#fault === "late transaction request") {
      const timeoutMs = this.#leaveUnanswered();
      time.after(timeoutMs + lateness(this.#way), () => this.#arriveLate());
    } else {
      const slowMs = this.#fault === "slow transaction" ? random.between(0.02, 0.5) * leaseMs : 0;
      time.after(travelMs + slowMs, () => this.#arrive());
    }
  }

  #arrive(): void {
    const { broker, process, world } = this.#way;
    const { random } = world;
    if (!broker.isUp) {
      if (random.chance(0.5)) this.#giveUp(1);
      else this.#leaveUnanswered();
      return;
    }
    if (this.#fault === "transaction timed out" && this.#asked.lane !== null) this.#broker.expire(this.#asked.lane);
    if (this.#fault === "connection lost in transaction") {
      if (random.chance(0.5)) this.#takeQuietly();
      this.#giveUp(1);
    } else if (this.#fault === "transaction answer lost") {
      this.#takeQuietly();
      this.#leaveUnanswered();
    } else if (this.#fault === "crash amid transaction") {
      this.#takeQuietly();
      process.crash();
    } else this.#answer();
  }

  #answer(): void {
    const { process, world } = this.#way;
    const { random, time } = world;
    const answerMs = random.between(0.1, 2);
    try {
      const result = this.#asked.effect();
      if (this.#fault === "retried without an answer") {
        this.#asked.onCopy?.();
        time.after(lateness(this.#way), () => this.#arriveLate());
      }
      process.reach(answerMs, () => this.#end(() => this.#resolve(result)));
    } catch (error) {
      process.reach(answerMs, () => this.#end(() => this.#reject(error)));
    }
    if (this.#fault === "pause amid transaction") pauseBriefly(world, process);
  }

  /** The request arrives after its caller gave up. */
  #arriveLate(): void {
    if (!this.#way.broker.isUp) return;
    this.#way.world.history.note(this.#way.process.name, `${this.#asked.name} arrives late`);
    this.#takeQuietly();
  }

  #takeQuietly(): void {
    try {
      this.#asked.effect();
    } catch {
      // Refused, but the caller no longer waits.
    }
  }

  /** No answer comes: the client times out unless it is aborted earlier. Returns the timeout. */
  #leaveUnanswered(): number {
    const timeoutMs = answerTimeoutMs(this.#way);
    this.#giveUp(timeoutMs);
    return timeoutMs;
  }

  #giveUp(afterMs: number): void {
    const { process, broker, world } = this.#way;
    process.reach(afterMs, () =>
      this.#end(() => {
        world.history.disturb(process.name, `no answer to ${this.#asked.name}`);
        world.history.note(process.name, `${this.#asked.name} was not answered`);
        this.#reject(unanswered(broker.options.name, this.#asked.name));
      }),
    );
  }

  #end(settle: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    settle();
  }
}

/** How long a client waits for a missing answer: until it detects a lost connection or times out. */
export function answerTimeoutMs({ world }: Way): number {
  const { random, publishTimeoutMs } = world;
  return random.chance(0.5) ? random.between(1, 50) : random.between(0.2, 1.2) * publishTimeoutMs;
}

/** How late a delayed request arrives. */
export function lateness({ world }: Way): number {
  const { random, leaseMs } = world;
  return random.between(0, random.pick([5, 20, 50, 500, leaseMs]));
}

export function unanswered(destination: string, request: string): RelayError {
  return new RelayError("DESTINATION_UNREACHABLE", `${destination}: no answer to ${request}.`);
}
