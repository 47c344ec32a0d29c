import { withoutServerText } from "../postgres/errors.ts";
import type { OutboxRelay } from "./outbox-relay.ts";

/** Result of an indicator, in the format of any version of @nestjs/terminus. */
export type OutboxHealthResult<Key extends string = string> = Record<
  Key,
  { status: "up" | "down"; relay: "in this process" | "elsewhere" } & Record<string, unknown>
>;

/**
 * For a health check: `() => this.outboxHealth.isHealthy()`. Does not depend on @nestjs/terminus, but returns its
 * result format.
 */
export class OutboxHealthIndicator {
  readonly #relay: OutboxRelay;

  constructor(relay: OutboxRelay) {
    this.#relay = relay;
  }

  /**
   * Down while the relay of this process cannot read its source. A failing destination is named but leaves it up: no
   * restart helps, and the events wait. Up where this process only writes.
   */
  isHealthy<Key extends string = "outbox">(key: Key = "outbox" as Key): OutboxHealthResult<Key> {
    const { closedDestinations, isInProcess } = this.#relay;
    // Health checks are often public.
    const problems = new Map([...this.#relay.problems].map(([name, reason]) => [name, withoutServerText(reason)]));
    const facts = {
      status: problems.size === 0 ? ("up" as const) : ("down" as const),
      relay: isInProcess ? ("in this process" as const) : ("elsewhere" as const),
      ...(problems.size === 0 ? {} : { problems: Object.fromEntries(problems) }),
      ...(closedDestinations.size === 0 ? {} : { closedDestinations: Object.fromEntries(closedDestinations) }),
    };
    return { [key]: facts } as OutboxHealthResult<Key>;
  }
}
