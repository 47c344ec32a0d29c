import { type Blame, BlameBook, type Suspect } from "../core/blame.ts";
import { Brake } from "../core/brake.ts";
import { type Admission, Circuit, type CircuitPolicy } from "../core/circuit.ts";
import type { Clock, Random } from "../core/clock.ts";
import { stackOf } from "../core/errors.ts";
import type { Limits } from "../core/limits.ts";
import { rotated } from "../core/rotated.ts";
import type { Publisher } from "../ports/publisher.ts";
import type { TechnicalEvents } from "../ports/technical-events.ts";
import { RateGate } from "./rate-gate.ts";
import { TopicCircuits } from "./topic-circuits.ts";

type Unsubscribe = () => void;

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
  readonly #topics: TopicCircuits;
  readonly #blame = new BlameBook();
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
    this.#topics = new TopicCircuits(options.circuit, this.#probesTogether);
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

  /** True when it takes nothing, and that is not the fault of a single event as far as can be told by now. */
  get isUnreachable(): boolean {
    return this.#circuit.hasGivenUp(this.#now());
  }

  /** True while it, or one of its topics, takes nothing but probes. */
  get isProbing(): boolean {
    return this.isOpen || this.#topics.any;
  }

  /** How many of so many events its rate allows now. Whoever gets none is woken when there is room again. */
  allowance(wanted: number): number {
    return this.#rate.allowance(wanted);
  }

  /** Of an allowance, what was not sent. */
  giveBack(count: number): void {
    this.#rate.giveBack(count);
  }

  /** How many keys a probe tries. In a transaction one of them would spoil it for the others. */
  get probeKeys(): number {
    return this.#probesTogether ? this.#circuit.probeKeys : 1;
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
    return this.#topics.admission(topic, this.#now());
  }

  beginTopicProbe(topic: string): void {
    this.#topics.get(topic)?.beginProbe();
  }

  cancelTopicProbe(topic: string): void {
    this.#topics.get(topic)?.cancelProbe();
  }

  /** Topics that take nothing at present, or did not when last asked. */
  openTopics(): string[] {
    return this.#topics.names();
  }

  /** Types that are known to lead to a topic which takes nothing now. */
  blockedTypes(): string[] {
    return this.#topics.blockedTypes(this.#now());
  }

  /** Whether the topic, or (null) the destination as a whole, takes nothing but probes. */
  isClosedTo(topic: string | null): boolean {
    return topic === null ? this.isOpen : this.#topics.get(topic) !== undefined;
  }

  /** Until the next probe of the topic or (null) of the destination; 0 when it may go now. */
  untilProbeMs(topic: string | null): number {
    const admission = (topic === null ? this.#circuit : this.#topics.get(topic))?.admission(this.#now());
    return admission?.admits === "none" ? admission.waitMs : 0;
  }

  delivered(event: Suspect, topic: string, probe: boolean): void {
    this.#lastAnswerMs = this.#now();
    this.#brake.succeeded();
    this.#blame.delivered(event, topic);
    this.#closeTopic(topic);
    if (this.#circuit.succeed({ probe })) {
      this.#braked = false;
      this.#options.events.emit("CircuitClosed", { destination: this.name, topic: null });
      this.#wake();
    }
  }

  /** The event failed, and the answer names the topic or (null) the destination: whom it is held against. */
  blameFor(event: Suspect, topic: string | null): Blame {
    return this.#blame.failed(event, topic);
  }

  /** How often the event failed in a row while others got through. */
  lonelyFailures(event: Suspect): number {
    return this.#blame.lonelyFailures(event);
  }

  /** True when others make better probes. */
  hasFailed(event: Suspect): boolean {
    return this.#blame.hasFailed(event);
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
    const opened = this.#circuit.fail(this.#now(), reason, { draw, probe, afterMs });
    if (opened) this.#opened(null, reason, error);
    if (opened || probe) this.#wakeLater(this.#circuit);
  }

  /**
   * One topic takes nothing. `type` is the event type that was to go there. False: too many topics have failed for one
   * more circuit.
   */
  topicFailed(topic: string, type: string, reason: string, options: FailureOptions): boolean {
    const { probe, afterMs, error } = options;
    this.#lastAnswerMs = this.#now();
    const circuit = this.#topics.guard(topic, type);
    if (circuit === null) return false;
    const draw = this.#options.random.next();
    const opened = circuit.fail(this.#now(), reason, { draw, probe, afterMs });
    if (opened) this.#opened(topic, reason, error);
    if (opened || probe) this.#wakeLater(circuit);
    return true;
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

  /** True when the event may be what makes others fail that are sent with it. */
  goesAlone(event: Suspect): boolean {
    return this.#blame.goesAlone(event);
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.publisher.close();
  }

  #opened(topic: string | null, reason: string, error: unknown): void {
    this.#options.events.emit("CircuitOpened", { destination: this.name, topic, reason, stack: stackOf(error) });
  }

  #closeTopic(topic: string): void {
    if (!this.#topics.close(topic)) return;
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

  get #probesTogether(): boolean {
    return this.publisher.transactions === undefined;
  }

  #now(): number {
    return this.#options.clock.monotonicMs();
  }
}
