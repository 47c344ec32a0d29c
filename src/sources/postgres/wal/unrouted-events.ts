import { typeMatcher } from "../../../core/type-filter.ts";
import type { ClaimedEvent, TypeRule } from "../../../ports/queue-store.ts";

/** The newest events of other pipelines, without their payloads. */
const EVENTS_MAX = 1_000;

type Noted = Pick<ClaimedEvent, "type" | "key" | "correlationId" | "headers">;

/** Remembers events that this pipeline does not read, to find those that no pipeline reads. */
export class UnroutedEvents {
  readonly #events: Noted[] = [];
  #next = 0;

  note({ correlationId, headers, key, type }: ClaimedEvent): void {
    this.#events[this.#next] = { type, key, correlationId, headers };
    this.#next = (this.#next + 1) % EVENTS_MAX;
  }

  /** Counts those that match no rule, by type. */
  count(rules: readonly (readonly TypeRule[])[]): readonly { readonly type: string; readonly count: number }[] {
    const takers = rules.map(typeMatcher);
    const counts = new Map<string, number>();
    for (const event of this.#events) {
      if (!takers.some((takes) => takes(event))) counts.set(event.type, (counts.get(event.type) ?? 0) + 1);
    }
    return [...counts].map(([type, count]) => ({ type, count }));
  }
}
