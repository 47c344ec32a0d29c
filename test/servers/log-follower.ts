import type { EventLog, LogItem, LogStart } from "../../src/ports/event-log.ts";
import { until } from "./until.ts";

/** Reads a subscription on its own and keeps all that it shows. */
export class LogFollower {
  readonly items: LogItem[] = [];
  readonly pages: number[] = [];
  /** Resolves with what it threw, null when it ended as asked. */
  readonly ended: Promise<unknown>;
  readonly #stopping = new AbortController();

  constructor(log: EventLog, streamPrefix: string, from: LogStart, pageMax = 100) {
    this.ended = this.#read(log, streamPrefix, from, pageMax);
  }

  get events() {
    return this.items.filter((item) => item.kind === "event");
  }

  /** Where to go on. */
  get position(): string {
    const last = this.items.findLast((item) => item.kind !== "caught up");
    if (last === undefined) throw new Error("nothing was shown yet");
    return last.position;
  }

  async caughtUp(): Promise<void> {
    await until("the subscription has caught up", () => this.items.some(({ kind }) => kind === "caught up"));
  }

  async shown(count: number): Promise<void> {
    await until(`${count} events were shown`, () => this.events.length >= count);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.ended;
  }

  async #read(log: EventLog, streamPrefix: string, from: LogStart, pageMax: number): Promise<unknown> {
    const { signal } = this.#stopping;
    try {
      for await (const page of log.subscribe({ streamPrefix, from, pageMax, signal })) {
        this.items.push(...page);
        this.pages.push(page.length);
      }
      return null;
    } catch (error) {
      return error;
    }
  }
}
