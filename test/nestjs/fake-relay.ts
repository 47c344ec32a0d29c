import type { DrainReport, Relay } from "../../src/index.ts";
import type { TechnicalEventMap, TechnicalEventName } from "../../src/ports/technical-events.ts";

type Listeners = { [Name in TechnicalEventName]?: (event: TechnicalEventMap[Name] & { timestamp: number }) => void };

/** A relay that notes what it is told, and says what a test lets it say. */
export class FakeRelay implements Relay {
  readonly calls: string[] = [];
  readonly #answers: { readonly start?: () => Promise<void>; readonly drain?: () => Promise<DrainReport> };
  readonly #listeners: Listeners = {};

  constructor(answers: { readonly start?: () => Promise<void>; readonly drain?: () => Promise<DrainReport> } = {}) {
    this.#answers = answers;
  }

  async start(): Promise<void> {
    this.calls.push("start");
    await this.#answers.start?.();
  }

  readonly ready = Promise.resolve();
  readonly ended = Promise.resolve();
  unready(): [] {
    return [];
  }

  async stop(): Promise<void> {
    this.calls.push("stop");
  }

  async drain(): Promise<DrainReport> {
    this.calls.push("drain");
    const nothing = {
      deadLetters: 0,
      retrying: 0,
      unreachable: [],
      blockedTopics: [],
      elsewhere: 0,
      broken: [],
      paused: [],
    };
    return (await this.#answers.drain?.()) ?? nothing;
  }

  on: Relay["on"] = (name, listener) => {
    Object.assign(this.#listeners, { [name]: listener });
    return () => {};
  };

  onAny: Relay["onAny"] = () => () => {};

  tell<Name extends TechnicalEventName>(name: Name, event: TechnicalEventMap[Name]): void {
    this.#listeners[name]?.({ ...event, timestamp: 0 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
