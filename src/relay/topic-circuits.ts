import { type Admission, Circuit, type CircuitPolicy } from "../core/circuit.ts";

/** Topics with an open circuit. Of more than these each event waits by itself. */
const TOPIC_CIRCUITS_MAX = 1_000;

const FEW_TOPICS = 10;

const ALL: Admission = { admits: "all" };

interface TopicGuard {
  readonly circuit: Circuit;
  /** Event types that are known to lead to the topic. */
  readonly types: Set<string>;
}

/** The circuits of single topics. There is one for each topic that failed and was not delivered to since. */
export class TopicCircuits {
  readonly #policy: CircuitPolicy;
  /** Several keys may be tried at a time, where one that fails does not keep the others from being delivered. */
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

  /** The circuit of a topic that failed; null when there are too many of them. */
  guard(topic: string, type: string): Circuit | null {
    const known = this.#guards.get(topic);
    if (known === undefined && this.#guards.size >= TOPIC_CIRCUITS_MAX) return null;
    const guard = known ?? { circuit: new Circuit(this.#policy), types: new Set<string>() };
    this.#guards.set(topic, guard);
    guard.types.add(type);
    return guard.circuit;
  }

  /** True when there was one. */
  close(topic: string): boolean {
    return this.#guards.size > 0 && this.#guards.delete(topic);
  }

  /**
   * Types that lead to a topic which takes nothing now. A source leaves out every key that has one of them waiting, so
   * whoever looks for a probe leaves out none, as long as few topics fail: the only key that gets through may have both.
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
