import { type Admission, Circuit, type CircuitPolicy } from "../core/circuit.ts";

/** Topics with an open circuit, at most. Beyond this number each failed event is held by itself. */
const TOPIC_CIRCUITS_MAX = 1_000;

/** With more failing topics than this, types are blocked even while a probe is due. */
const FEW_TOPICS = 10;

const ALL: Admission = { admits: "all" };

interface TopicGuard {
  readonly circuit: Circuit;
  /** Types of events that went to the topic. */
  readonly types: Set<string>;
}

/** The circuits of single topics: one for each topic that failed and has not taken an event since. */
export class TopicCircuits {
  readonly #policy: CircuitPolicy;
  /** True when a probe may try several keys at once, because one that fails does not abort the others. */
  readonly #probesTogether: boolean;
  readonly #guards = new Map<string, TopicGuard>();

  constructor(policy: CircuitPolicy, probesTogether: boolean) {
    this.#policy = policy;
    this.#probesTogether = probesTogether;
  }

  get any(): boolean {
    return this.#guards.size > 0;
  }

  names(): string[] {
    return [...this.#guards.keys()];
  }

  get(topic: string): Circuit | undefined {
    return this.#guards.size === 0 ? undefined : this.#guards.get(topic)?.circuit;
  }

  admission(topic: string, nowMs: number): Admission {
    const circuit = this.get(topic);
    return circuit?.admission(nowMs, this.#probesTogether ? circuit.probeKeys : 1) ?? ALL;
  }

  /** The circuit of a topic that failed, new if there is none; null when there are too many. */
  guard(topic: string, type: string): Circuit | null {
    const known = this.#guards.get(topic);
    if (known === undefined && this.#guards.size >= TOPIC_CIRCUITS_MAX) return null;
    const guard = known ?? { circuit: new Circuit(this.#policy), types: new Set<string>() };
    this.#guards.set(topic, guard);
    guard.types.add(type);
    return guard.circuit;
  }

  /** The topic takes events. True when it had a circuit. */
  close(topic: string): boolean {
    return this.#guards.size > 0 && this.#guards.delete(topic);
  }

  /**
   * Types that go to a topic which takes nothing now. A source leaves out every key that has one of them pending. So
   * while a probe is due and few topics fail, no type is blocked: the only key that still works may also have events of
   * a blocked type.
   */
  blockedTypes(nowMs: number): string[] {
    const blocked: string[] = [];
    let wantsProbe = false;
    for (const [topic, { types }] of this.#guards) {
      const { admits } = this.admission(topic, nowMs);
      if (admits === "none") blocked.push(...types);
      else wantsProbe = true;
    }
    return wantsProbe && this.#guards.size <= FEW_TOPICS ? [] : blocked;
  }
}
