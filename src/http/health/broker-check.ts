import type { Clock } from "../../core/clock.ts";
import { connectionProblem } from "../../operations/doctor/connection-problem.ts";

const TIMEOUT_MS = 1_000;
/** Rare while brokers are reachable: they log connections that send nothing. */
const GOOD_FOR_MS = 30_000;
const BAD_FOR_MS = 5_000;

/** Whether any broker can be reached. An idle relay sends nothing and would not notice otherwise. */
export class BrokerCheck {
  readonly #clock: Clock;
  readonly #brokers: readonly string[];
  #reachable = true;
  #untilMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<boolean> | null = null;

  constructor(clock: Clock, brokers: readonly string[]) {
    this.#clock = clock;
    this.#brokers = brokers;
  }

  /** Must be called after each delivery: it proves that a broker is reachable. */
  delivered(): void {
    this.#know(true);
  }

  async isReachable(): Promise<boolean> {
    if (this.#brokers.length === 0) return true;
    if (this.#clock.monotonicMs() < this.#untilMs) return this.#reachable;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null;
    });
    return await this.#asking;
  }

  async #ask(): Promise<boolean> {
    const problems = await Promise.all(this.#brokers.map((broker) => connectionProblem(broker, TIMEOUT_MS)));
    this.#know(problems.includes(null));
    return this.#reachable;
  }

  #know(reachable: boolean): void {
    this.#reachable = reachable;
    this.#untilMs = this.#clock.monotonicMs() + (reachable ? GOOD_FOR_MS : BAD_FOR_MS);
  }
}

/** The names of the destinations whose brokers cannot be reached. */
export async function unreachableOf(brokers: ReadonlyMap<string, BrokerCheck>): Promise<readonly string[]> {
  const asked = [...brokers].map(async ([name, broker]) => ((await broker.isReachable()) ? [] : [name]));
  return (await Promise.all(asked)).flat();
}
