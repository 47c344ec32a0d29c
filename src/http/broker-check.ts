import { connect } from "node:net";
import type { Clock } from "../core/clock.ts";

const PATIENCE_MS = 1_000;
/** Rarely while all is well: brokers log connections that say nothing. */
const GOOD_FOR_MS = 30_000;
const BAD_FOR_MS = 5_000;

/** Whether any of the brokers can be reached, for a relay that has nothing to send and so would not notice. */
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

  /** To be called whenever something was delivered. */
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
    const answers = await Promise.all(this.#brokers.map(canConnect));
    this.#know(answers.includes(true));
    return this.#reachable;
  }

  #know(reachable: boolean): void {
    this.#reachable = reachable;
    this.#untilMs = this.#clock.monotonicMs() + (reachable ? GOOD_FOR_MS : BAD_FOR_MS);
  }
}

function canConnect(broker: string): Promise<boolean> {
  const at = broker.lastIndexOf(":");
  const host = broker.slice(0, at).replace(/^\[(.*)\]$/, "$1");
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(broker.slice(at + 1)), timeout: PATIENCE_MS });
    const end = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => end(true));
    socket.once("timeout", () => end(false));
    socket.once("error", () => end(false));
  });
}
