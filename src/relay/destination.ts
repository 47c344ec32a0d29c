import { Brake } from "../core/brake.ts";
import { type Admission, Circuit, type CircuitPolicy } from "../core/circuit.ts";
import type { Clock, Random } from "../core/clock.ts";
import { stackOf } from "../core/errors.ts";
import type { Limits } from "../core/limits.ts";
import { rotated } from "../core/rotated.ts";
import type { Publisher } from "../ports/publisher.ts";
import type { TechnicalEvents } from "../ports/technical-events.ts";
import { RateGate } from "./rate-gate.ts";

type Unsubscribe = () => void;

/** Topics with an open circuit; more than these are no longer single bad topics. */
const TOPIC_CIRCUITS_MAX = 1_000;

const ALL: Admission = { admits: "all" };

interface DestinationOptions {
  readonly name: string;
  readonly publisher: Publisher;
  readonly limits: Limits;
  readonly circuit: CircuitPolicy;
  /** Events per second; absent: as many as it takes. */
  readonly ratePerSecond?: number | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: TechnicalEvents;
}

interface FailureOptions {
  readonly probe: boolean;
  readonly afterMs?: number | undefined;
  /** What was thrown, where something was. */
  readonly error?: unknown;
}

/** A publisher with the circuits that guard it. Shared by all lanes of all pipelines that lead to it. */
export class Destination {
  readonly name: string;
  readonly publisher: Publisher;
  readonly #options: DestinationOptions;
  readonly #circuit: Circuit;
  readonly #topics = new Map<string, { circuit: Circuit; types: Set<string> }>();
  readonly #brake: Brake;
  readonly #rate: RateGate;
  readonly #wakers = new Set<() => void>();
  readonly #closed = new AbortController();
  #braked = false;
  #wakes = 0;
  #lastAnswerMs = Number.NEGATIVE_INFINITY;

  constructor(options: DestinationOptions) {
    this.name = options.name;
    this.publisher = options.publisher;
    this.#options = options;
    this.#circuit = new Circuit(options.circuit);
    this.#brake = new Brake(options.limits.failuresInRowMax);
    this.#rate = new RateGate({ clock: options.clock, signal: this.#closed.signal, wake: () => this.#wake() });
    this.#rate.limitTo(options.ratePerSecond ?? null);
  }

  /** Calls back whenever something may be sent that could not be before. */
  onWake(waker: () => void): Unsubscribe {
    this.#wakers.add(waker);
    return () => void this.#wakers.delete(waker);
  }

  admission(): Admission {
    return this.#circuit.admission(this.#now());
  }

  get isOpen(): boolean {
    return this.#circuit.isOpen;
  }

  /** How many of so many events its rate allows now. Whoever gets none is woken when there is room again. */
  allowance(wanted: number): number {
    return this.#rate.allowance(wanted);
  }

  /** Of an allowance, what was not sent. */
  giveBack(count: number): void {
    this.#rate.giveBack(count);
  }

  beginProbe(): void {
    this.#circuit.beginProbe();
  }

  cancelProbe(): void {
    this.#circuit.cancelProbe();
    this.#wake();
  }

  /** Whether anything was delivered here since then: it is alive, whatever happened to a single event. */
  answeredSince(ms: number): boolean {
    return this.#lastAnswerMs >= ms;
  }

  topicAdmission(topic: string): Admission {
    if (this.#topics.size === 0) return ALL;
    return this.#topics.get(topic)?.circuit.admission(this.#now()) ?? ALL;
  }

  beginTopicProbe(topic: string): void {
    this.#topics.get(topic)?.circuit.beginProbe();
  }

  cancelTopicProbe(topic: string): void {
    this.#topics.get(topic)?.circuit.cancelProbe();
  }

  /** Topics that take nothing at present, or did not when last asked. */
  openTopics(): string[] {
    return [...this.#topics.keys()];
  }

  /** Types that are known to lead to a topic which takes nothing now. */
  blockedTypes(): string[] {
    const blocked: string[] = [];
    for (const { circuit, types } of this.#topics.values()) {
      if (circuit.admission(this.#now()).admits === "none") blocked.push(...types);
    }
    return blocked;
  }

  delivered(topic: string, probe: boolean): void {
    this.#lastAnswerMs = this.#now();
    this.#brake.succeeded();
    this.#closeTopic(topic);
    if (this.#circuit.succeed({ probe })) {
      this.#braked = false;
      this.#options.events.emit("CircuitClosed", { destination: this.name, topic: null });
      this.#wake();
    }
  }

  /** It gave an answer, though nothing was delivered: enough to end an outage, not to release the brake. */
  answered(probe: boolean): void {
    this.#lastAnswerMs = this.#now();
    if (this.#braked) {
      if (probe) this.cancelProbe();
    } else if (this.#circuit.succeed({ probe })) {
      this.#options.events.emit("CircuitClosed", { destination: this.name, topic: null });
      this.#wake();
    }
  }

  /** The destination as a whole takes nothing. */
  failed(reason: string, options: FailureOptions): void {
    const { probe, afterMs, error } = options;
    const draw = this.#options.random.next();
    const opened = this.#circuit.fail(this.#now(), reason, {
      draw,
      probe,
      ...(afterMs === undefined ? {} : { afterMs }),
    });
    if (opened) this.#opened(null, reason, error);
    if (opened || probe) this.#wakeLater(this.#circuit);
  }

  /** One topic takes nothing. `type` is the event type that was to go there. */
  topicFailed(topic: string, type: string, reason: string, options: FailureOptions): void {
    const { probe, afterMs, error } = options;
    this.#lastAnswerMs = this.#now();
    const known = this.#topics.get(topic);
    if (known === undefined && this.#topics.size >= TOPIC_CIRCUITS_MAX) {
      this.failed(reason, { probe: false, afterMs, error });
      return;
    }
    const guard = known ?? { circuit: new Circuit(this.#options.circuit), types: new Set<string>() };
    this.#topics.set(topic, guard);
    guard.types.add(type);
    const wasOpen = guard.circuit.isOpen;
    const draw = this.#options.random.next();
    guard.circuit.fail(this.#now(), reason, { draw, probe, ...(afterMs === undefined ? {} : { afterMs }) });
    if (!wasOpen) this.#opened(topic, reason, error);
    if (!wasOpen || probe) this.#wakeLater(guard.circuit);
  }

  /**
   * An event was refused for its own sake. Too many in a row with one error pull the brake. Returns false when the
   * failure must not be held against the event, because the brake is on and this was only its probe.
   */
  eventFailed(id: string, reason: string, probe: boolean): boolean {
    this.#lastAnswerMs = this.#now();
    if (this.#braked && probe) {
      this.failed(reason, { probe });
      return false;
    }
    // An answer about one event shows that the destination itself is back.
    if (probe && this.#circuit.succeed({ probe })) {
      this.#options.events.emit("CircuitClosed", { destination: this.name, topic: null });
      this.#wake();
    }
    if (this.#brake.failed(id, reason)) {
      this.#braked = true;
      this.failed(`${this.#options.limits.failuresInRowMax} events in a row failed alike: ${reason}`, { probe: false });
    }
    return true;
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.publisher.close();
  }

  #opened(topic: string | null, reason: string, error: unknown): void {
    this.#options.events.emit("CircuitOpened", { destination: this.name, topic, reason, stack: stackOf(error) });
  }

  #closeTopic(topic: string): void {
    if (this.#topics.size === 0 || !this.#topics.delete(topic)) return;
    this.#options.events.emit("CircuitClosed", { destination: this.name, topic });
    this.#wake();
  }

  #wakeLater(circuit: Circuit): void {
    const admission = circuit.admission(this.#now());
    const waitMs = admission.admits === "none" ? admission.waitMs : 0;
    void this.#options.clock.sleep(waitMs, this.#closed.signal).then(() => this.#wake());
  }

  /**
   * In a different order each time: the one probe that an open circuit admits must not always be the same event. And
   * not before this turn is over: who told of the outcome has yet to hold the key back that failed.
   */
  #wake(): void {
    queueMicrotask(() => {
      for (const waker of rotated([...this.#wakers], this.#wakes++)) waker();
    });
  }

  #now(): number {
    return this.#options.clock.monotonicMs();
  }
}
