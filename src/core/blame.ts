/**
 * Whom a failure that names the topic or the destination is held against.
 * `everyone`: nothing is known that speaks for the destination, so the circuit opens.
 * `suspect`: others got through while this event failed again: it waits alone, and no attempt is counted yet.
 * `event`: that happened so often that the failure counts as the event's own.
 */
export type Blame = "everyone" | "suspect" | "event";

/** What became of the events of one topic, or of the whole destination. Shared by all events that failed there. */
interface Traffic {
  delivered: number;
  /** Failures that named the topic or the destination, without those of suspects: they say nothing new about it. */
  failed: number;
}

/** Ids of two pipelines may be the same. */
export interface Suspect {
  readonly pipeline: string;
  readonly id: string;
}

interface Suspicion {
  readonly traffic: Traffic;
  /** The traffic when the event failed last. */
  readonly delivered: number;
  readonly failed: number;
  /** What had been delivered when the event failed first. */
  readonly deliveredFirst: number;
  /** Failures in a row that others did not share. */
  readonly lonely: number;
}

/** A failure is lonely when more than so many events were delivered for each other one that failed meanwhile. */
const DELIVERED_PER_FAILURE = 10;
/** The failure after so many lonely ones counts as an attempt of the event. */
const LONELY_FAILURES_MAX = 3;
/** Events and topics that are remembered; those that failed longest ago are forgotten first. */
const REMEMBERED_MAX = 5_000;

/**
 * Tells an event that its receiver always refuses from a destination that is down, though both are answered alike.
 * A destination that is down, busy or limits the rate fails for others too: then nothing is held against an event.
 */
export class BlameBook {
  readonly #destination: Traffic = { delivered: 0, failed: 0 };
  readonly #topics = new Map<string, Traffic>();
  readonly #suspicions = new Map<string, Suspicion>();

  delivered(event: Suspect, topic: string): void {
    this.#destination.delivered += 1;
    if (this.#suspicions.size === 0) return;
    this.#suspicions.delete(nameOf(event));
    const traffic = this.#topics.get(topic);
    if (traffic !== undefined) traffic.delivered += 1;
  }

  /** The event failed in a way that names the topic, or (null) the destination. */
  failed(event: Suspect, topic: string | null): Blame {
    const name = nameOf(event);
    const known = this.#suspicions.get(name);
    const traffic = topic === null ? this.#destination : this.#trafficOf(topic);
    const before = known?.traffic === traffic ? known : undefined;
    const lonely = before !== undefined && isLonely(before) ? before.lonely + 1 : 0;
    if (lonely === 0) traffic.failed += 1;
    this.#suspicions.delete(name);
    const deliveredFirst = before?.deliveredFirst ?? traffic.delivered;
    this.#suspicions.set(name, { traffic, ...traffic, deliveredFirst, lonely });
    forgetFirst(this.#suspicions);
    if (lonely === 0) return "everyone";
    return lonely < LONELY_FAILURES_MAX ? "suspect" : "event";
  }

  /** How often the event failed in a row while others got through. */
  lonelyFailures(event: Suspect): number {
    return this.#suspicions.size === 0 ? 0 : (this.#suspicions.get(nameOf(event))?.lonely ?? 0);
  }

  /** True when the event's last try failed in such a way: others make better probes. */
  hasFailed(event: Suspect): boolean {
    return this.#suspicions.size > 0 && this.#suspicions.has(nameOf(event));
  }

  /**
   * True when others were delivered between two failures of the event: it may be what made its company fail, as one
   * message does that closes the channel for all.
   */
  goesAlone(event: Suspect): boolean {
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

function isLonely({ delivered, failed, traffic }: Suspicion): boolean {
  return traffic.delivered - delivered > DELIVERED_PER_FAILURE * (traffic.failed - failed);
}

function forgetFirst(map: Map<string, unknown>): void {
  if (map.size > REMEMBERED_MAX) map.delete(map.keys().next().value!);
}
