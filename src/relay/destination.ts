import type { AnswerTimes } from "../core/answer-times.ts";
import { type Blame, BlameTracker, type Suspect } from "../core/blame.ts";
import { Brake } from "../core/brake.ts";
import { type Admission, Circuit, type CircuitPolicy } from "../core/circuit.ts";
import type { Clock, Random } from "../core/clock.ts";
import { stackOf } from "../core/errors.ts";
import type { Limits } from "../core/limits.ts";
import { rotated } from "../core/rotated.ts";
import type { Publisher } from "../ports/publisher.ts";
import type { TechnicalEvents } from "../ports/technical-events.ts";
import type { Entry } from "./lane-queue.ts";
import { RateGate } from "./rate-gate.ts";
import { TopicCircuits } from "./topic-circuits.ts";

type Unsubscribe = () => void;

interface DestinationOptions {
  readonly name: string;
  readonly publisher: Publisher;
  readonly limits: Limits;
  readonly circuit: CircuitPolicy;
  /** The rate limit in events per second; absent: none. */
  readonly ratePerSecond?: number | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: TechnicalEvents;
  readonly answers: AnswerTimes;
}

interface FailureOptions {
  /** True when the failed publish was the probe of an open circuit. */
  readonly probe: boolean;
  /** The wait that the destination asked for (Retry-After). */
  readonly afterMs?: number | undefined;
  /** The thrown error, if any. */
  readonly error?: unknown;
}

const ALL: Admission = { admits: "all" };

/** A publisher with its circuits, brake and rate limit. All lanes of all pipelines to the same destination share it. */
export class Destination {
  readonly name: string;
  readonly publisher: Publisher;
  /** How long the destination takes to answer. */
  readonly answers: AnswerTimes;
  readonly #options: DestinationOptions;
  readonly #circuit: Circuit;
  readonly #topics: TopicCircuits;
  readonly #blame = new BlameTracker();
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
    this.answers = options.answers;
    this.#options = options;
    this.#circuit = new Circuit(options.circuit);
    this.#topics = new TopicCircuits(options.circuit, this.#probesTogether);
    this.#brake = new Brake(options.limits.failuresInRowMax);
    this.#rate = new RateGate({ clock: options.clock, signal: this.#closed.signal, wake: () => this.#wake() });
    this.#rate.limitTo(options.ratePerSecond ?? null);
  }

  /** Calls back whenever the destination may take events that it did not take before. */
  onWake(waker: () => void): Unsubscribe {
    this.#wakers.add(waker);
    return () => void this.#wakers.delete(waker);
  }

  /** What the destination's circuit lets through now. */
  admission(): Admission {
    return this.#circuit.admission(this.#now());
  }

  /** True while the circuit of the whole destination is open. */
  get isOpen(): boolean {
    return this.#circuit.isOpen;
  }

  /** True when it takes nothing, and enough probes have failed to rule out that a single event is at fault. */
  get isUnreachable(): boolean {
    return this.#circuit.hasGivenUp(this.#now());
  }

  /** True while the destination or one of its topics takes only probes. */
  get isProbing(): boolean {
    return this.isOpen || this.#topics.any;
  }

  /**
   * How many of the wanted events the rate allows now. A caller that gets none is woken when there are tokens again.
   */
  allowance(wanted: number): number {
    return this.#rate.allowance(wanted);
  }

  /** Returns the part of an allowance that was not sent. */
  giveBack(count: number): void {
    this.#rate.giveBack(count);
  }

  /** How many keys a probe tries. In a transaction only one: a key that fails would abort the others. */
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

  /** True when the destination has answered anything since then: it is alive, whatever happened to a single event. */
  answeredSince(ms: number): boolean {
    return this.#lastAnswerMs >= ms;
  }

  topicAdmission(topic: string): Admission {
    return this.#topics.any ? this.#topics.admission(topic, this.#now()) : ALL;
  }

  beginTopicProbe(topic: string): void {
    this.#topics.get(topic)?.beginProbe();
  }

  cancelTopicProbe(topic: string): void {
    this.#topics.get(topic)?.cancelProbe();
  }

  /** Topics that take nothing at present, or did not at the last attempt. */
  openTopics(): string[] {
    return this.#topics.names();
  }

  /** Types of events that are known to go to a topic which takes nothing now. */
  blockedTypes(): string[] {
    return this.#topics.blockedTypes(this.#now());
  }

  /** True when the topic, or (null) the whole destination, takes only probes. */
  isClosedTo(topic: string | null): boolean {
    return topic === null ? this.isOpen : this.#topics.get(topic) !== undefined;
  }

  /** The time until the next probe of the topic or (null) of the destination; 0 when it may be sent now. */
  untilProbeMs(topic: string | null): number {
    const admission = (topic === null ? this.#circuit : this.#topics.get(topic))?.admission(this.#now());
    return admission?.admits === "none" ? admission.waitMs : 0;
  }

  /** The events were delivered: their topics work and, if this was the probe, the destination is back. */
  delivered(pipeline: string, entries: readonly Entry[], probe: boolean): void {
    this.#lastAnswerMs = this.#now();
    this.#brake.succeeded();
    this.#blame.delivered(
      pipeline,
      entries.map(({ message }) => message!),
    );
    if (this.#topics.any) for (const { message } of entries) this.#closeTopic(message!.topic);
    if (this.#circuit.succeed({ probe })) {
      this.#braked = false;
      this.#options.events.emit("CircuitClosed", { destination: this.name, topic: null });
      this.#wake();
    }
  }

  /**
   * The event failed, and the answer names the topic or (null) the destination. Returns what the failure is attributed
   * to.
   */
  blameFor(event: Suspect, topic: string | null): Blame {
    return this.#blame.failed(event, topic);
  }

  /** How often the event failed in a row while others were delivered. */
  unsharedFailures(event: Suspect): number {
    return this.#blame.unsharedFailures(event);
  }

  /** True when nothing is known against any event: then `hasFailed` and `shouldIsolate` need not be asked. */
  get suspectsNone(): boolean {
    return this.#blame.suspectsNone;
  }

  /** True when other events make better probes. */
  hasFailed(event: Suspect): boolean {
    return this.#blame.hasFailed(event);
  }

  /** The destination answered, but nothing was delivered: that ends an outage, but does not release the brake. */
  answered(probe: boolean): void {
    this.#lastAnswerMs = this.#now();
    if (this.#braked) {
      if (probe) this.cancelProbe();
    } else if (this.#circuit.succeed({ probe })) {
      this.#options.events.emit("CircuitClosed", { destination: this.name, topic: null });
      this.#wake();
    }
  }

  /** The whole destination takes nothing. */
  failed(reason: string, options: FailureOptions): void {
    const { probe, afterMs, error } = options;
    const draw = this.#options.random.next();
    const opened = this.#circuit.fail(this.#now(), reason, { draw, probe, afterMs });
    if (opened) this.#opened(null, reason, error);
    if (opened || probe) this.#wakeLater(this.#circuit);
  }

  /**
   * One topic takes nothing. `type` is the type of the event that failed there. Returns false when too many topics have
   * failed for one more circuit.
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
   * The destination refused an event. Too many refusals in a row with the same error pull the brake. Returns false when
   * the failure must not count against the event, because the brake is on and this was only its probe.
   */
  eventFailed(id: string, reason: string, probe: boolean): boolean {
    this.#lastAnswerMs = this.#now();
    if (this.#braked && probe) {
      this.failed(reason, { probe });
      return false;
    }
    // An answer about one event proves that the destination itself is back.
    if (probe && this.#circuit.succeed({ probe })) {
      this.#options.events.emit("CircuitClosed", { destination: this.name, topic: null });
      this.#wake();
    }
    if (this.#brake.failed(id, reason)) {
      this.#braked = true;
      this.failed(`${this.#options.limits.failuresInRowMax} events in a row failed with the same error: ${reason}`, {
        probe: false,
      });
    }
    return true;
  }

  /** True when the event may be the one that makes its whole batch fail: it is then sent alone. */
  shouldIsolate(event: Suspect): boolean {
    return this.#blame.shouldIsolate(event);
  }

  /** Ends all timers and closes the publisher. */
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
   * Wakes the lanes in a different order each time: the one probe that an open circuit admits must not always come from
   * the same lane. It does so in a microtask, because the caller that reports the outcome has yet to hold back the key
   * that failed.
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
