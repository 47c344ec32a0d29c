import type { Message } from "./event.ts";

/**
 * What a failure that names the topic or the destination is attributed to. `everyone`: the topic or the destination,
 * because nothing shows that it works; the circuit opens. `suspect`: undecided, because others were delivered while
 * this event failed again. It waits alone and spends no attempt. `event`: the event itself, because that has happened
 * too often. It spends an attempt.
 */
export type Blame = "everyone" | "suspect" | "event";

/** Counts the outcomes of one topic, or of the whole destination. Shared by all events that failed there. */
interface Traffic {
  delivered: number;
  /**
   * Failures that named the topic or the destination. Failures of suspects do not count: they say nothing new about it.
   */
  failed: number;
}

/** An event that may be at fault. The pipeline is part of its identity, because two pipelines may have equal ids. */
export interface Suspect {
  readonly pipeline: string;
  readonly id: string;
}

interface Suspicion {
  readonly traffic: Traffic;
  /** The counts when the event failed last. */
  readonly delivered: number;
  readonly failed: number;
  /** The deliveries when the event failed first. */
  readonly deliveredFirst: number;
  /** Failures in a row that other events did not share. */
  readonly unshared: number;
}

/**
 * A failure is unshared when more than this many events were delivered for each other event that failed in the
 * meantime.
 */
const DELIVERED_PER_FAILURE = 10;
/** After this many unshared failures in a row, the failure counts as an attempt of the event. */
const UNSHARED_FAILURES_MAX = 3;
/** Events and topics in memory. Those that failed longest ago leave first. */
const REMEMBERED_MAX = 5_000;

/**
 * Distinguishes an event that its receiver always refuses from a destination that is down, although both get the same
 * answer. A destination that is down, busy or rate-limited fails for other events too; then no event is at fault.
 */
export class BlameTracker {
  readonly #destination: Traffic = { delivered: 0, failed: 0 };
  readonly #topics = new Map<string, Traffic>();
  readonly #suspicions = new Map<string, Suspicion>();

  /** The messages were delivered: their events are no suspects, and their topics work. */
  delivered(pipeline: string, messages: readonly Message[]): void {
    this.#destination.delivered += messages.length;
    if (this.#suspicions.size === 0) return;
    for (const { event, topic } of messages) {
      this.#suspicions.delete(nameOf({ pipeline, id: event.id }));
      const traffic = this.#topics.get(topic);
      if (traffic !== undefined) traffic.delivered += 1;
    }
  }

  /** The event failed, and the failure names the topic or (null) the destination. */
  failed(event: Suspect, topic: string | null): Blame {
    const name = nameOf(event);
    const known = this.#suspicions.get(name);
    const traffic = topic === null ? this.#destination : this.#trafficOf(topic);
    const before = known?.traffic === traffic ? known : undefined;
    const unshared = before !== undefined && isUnshared(before) ? before.unshared + 1 : 0;
    if (unshared === 0) traffic.failed += 1;
    this.#suspicions.delete(name);
    const deliveredFirst = before?.deliveredFirst ?? traffic.delivered;
    this.#suspicions.set(name, { traffic, ...traffic, deliveredFirst, unshared });
    forgetFirst(this.#suspicions);
    if (unshared === 0) return "everyone";
    return unshared < UNSHARED_FAILURES_MAX ? "suspect" : "event";
  }

  /** How often the event failed in a row while others were delivered. */
  unsharedFailures(event: Suspect): number {
    return this.#suspicions.size === 0 ? 0 : (this.#suspicions.get(nameOf(event))?.unshared ?? 0);
  }

  /** True when no event is a suspect. */
  get suspectsNone(): boolean {
    return this.#suspicions.size === 0;
  }

  /** True when the event's last attempt failed in such a way: other events make better probes. */
  hasFailed(event: Suspect): boolean {
    return this.#suspicions.size > 0 && this.#suspicions.has(nameOf(event));
  }

  /**
   * True when others were delivered between two failures of the event. It may be the event that made its whole batch
   * fail, like a message that closes the channel for all.
   */
  shouldIsolate(event: Suspect): boolean {
    const known = this.#suspicions.size === 0 ? undefined : this.#suspicions.get(nameOf(event));
    return known !== undefined && known.delivered > known.deliveredFirst;
  }

  #trafficOf(topic: string): Traffic {
    const traffic = this.#topics.get(topic) ?? { delivered: 0, failed: 0 };
    this.#topics.delete(topic);
    this.#topics.set(topic, traffic);
    forgetFirst(this.#topics);
    return traffic;
  }
}

function nameOf({ pipeline, id }: Suspect): string {
  return `${pipeline}\n${id}`;
}

function isUnshared({ delivered, failed, traffic }: Suspicion): boolean {
  return traffic.delivered - delivered > DELIVERED_PER_FAILURE * (traffic.failed - failed);
}

function forgetFirst(map: Map<string, unknown>): void {
  if (map.size > REMEMBERED_MAX) map.delete(map.keys().next().value!);
}
