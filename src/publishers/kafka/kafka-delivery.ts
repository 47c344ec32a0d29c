import { type Clock, systemClock } from "../../core/clock.ts";
import { unreachable } from "../../core/connection-cause.ts";
import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { delivered, type Failed, rejected, retry, skipped } from "../../core/outcome.ts";
import type { Report } from "../../ports/publisher.ts";
import { explained } from "./kafka-client.ts";
import type { BatchLimits, BrokerAddress, KafkaSettings } from "./kafka-config.ts";
import { CODE } from "./kafka-error-codes.ts";
import { connectionReason, outcomeOf } from "./kafka-errors.ts";
import type { BatchResult, KafkaLink } from "./kafka-link.ts";
import { type PlannedBatch, type PlanRules, planRound } from "./kafka-plan.ts";
import type { ProduceAnswer } from "./kafka-produce.ts";
import { faultOf, type Item, measure } from "./kafka-records.ts";
import type { TopicFailure, Topics } from "./kafka-topics.ts";

interface DeliveryContext {
  readonly settings: KafkaSettings;
  readonly topics: Topics;
  readonly limits: BatchLimits;
}

/** A broker that auto-creates a topic needs a moment, and its response does not say that it does so. */
const CREATION_PAUSES_MS = [20, 50, 100, 200, 400];

/** One publish: rounds of requests over one link until every message has an outcome. */
export class Delivery {
  readonly #context: DeliveryContext;
  readonly #link: KafkaLink;
  readonly #report: Report;
  readonly #signal: AbortSignal;
  readonly #clock: Clock;
  readonly #rules: PlanRules;
  readonly #failedKeys = new Map<string, number>();
  /**
   * The maximum number of records per batch, by topic and partition, after a broker refused a batch without naming the
   * record at fault.
   */
  readonly #counts = new Map<string, number>();
  #pending: Item<Message>[] = [];
  #unknown: string | null = null;

  constructor(
    context: DeliveryContext,
    link: KafkaLink,
    report: Report,
    options: { signal: AbortSignal; spread: number; clock?: Clock },
  ) {
    this.#context = context;
    this.#link = link;
    this.#report = report;
    this.#signal = options.signal;
    this.#clock = options.clock ?? systemClock;
    this.#rules = {
      limits: context.limits,
      topicInfo: (topic) => context.topics.known(topic),
      failedKeys: this.#failedKeys,
      countMax: (topic, partition) => this.#counts.get(`${topic}:${partition}`) ?? Number.POSITIVE_INFINITY,
      spread: options.spread,
    };
  }

  /** Rejects with PUBLISH_UNKNOWN when some messages got no answer; those are not reported. */
  async run(batch: readonly Message[]): Promise<void> {
    this.#pending = this.#measure(batch);
    if (this.#pending.length === 0) return;
    try {
      await this.#link.open(this.#signal);
      while (this.#pending.length > 0 && !this.#isOver) await this.#round();
    } catch (error) {
      if (error instanceof RelayError) throw error;
      this.#link.spend();
      // Everything that was sent has its result already; the pending messages were not sent.
      if (!this.#signal.aborted) this.#failAll(this.#unreachable(error));
    }
    if (this.#signal.aborted) throw new RelayError("PUBLISH_UNKNOWN", `the publish to ${this.#name} was given up.`);
    // Not sent: after an unanswered request the broker may be gone.
    for (const item of this.#pending) this.#report(item.index, skipped);
    if (this.#unknown !== null) throw new RelayError("PUBLISH_UNKNOWN", `${this.#unknown}.`);
  }

  get #isOver(): boolean {
    return this.#signal.aborted || this.#unknown !== null;
  }

  get #name(): string {
    return `"${this.#context.settings.name}"`;
  }

  #measure(batch: readonly Message[]): Item<Message>[] {
    const items: Item<Message>[] = [];
    let topic: string | null = null;
    for (let index = 0; index < batch.length; index++) {
      const message = batch[index]!;
      const contentBytes = measure(message);
      const isKnown = message.topic === topic || this.#context.topics.known(message.topic) !== null;
      const fault = contentBytes < 0 || !isKnown ? faultOf(message) : null;
      const item = { index, message, contentBytes };
      if (fault !== null) this.#fail(item, rejected(fault));
      else {
        topic = message.topic;
        items.push(item);
      }
    }
    return items;
  }

  async #round(): Promise<void> {
    const waiting = await this.#lookUp();
    const { batches, later, skipped: idle } = planRound(this.#pending, this.#rules);
    for (const item of idle) this.#report(item.index, skipped);
    this.#pending = [...later];
    if (batches.length === 0) {
      if (waiting.size > 0) await this.#awaitCreation(waiting);
      return;
    }
    const again: Item<Message>[] = [];
    await this.#link.send(batches, (batch, result) => again.push(...this.#judge(batch, result)), this.#signal);
    if (again.length === 0) return;
    this.#pending = [...again, ...this.#pending].sort((left, right) => left.index - right.index);
  }

  /** Looks up unknown topics; fails the messages of topics that cannot be written to. */
  async #lookUp(): Promise<ReadonlyMap<string, TopicFailure>> {
    const unknown = new Set<string>();
    for (const { message } of this.#pending) {
      if (!unknown.has(message.topic) && this.#context.topics.known(message.topic) === null) unknown.add(message.topic);
    }
    if (unknown.size === 0) return NOTHING;
    const failures = await this.#context.topics.lookUp(this.#link.client, unknown);
    const waiting = new Map<string, TopicFailure>();
    for (const [topic, failure] of failures) {
      if (this.#isWorthWaiting(topic, failure)) waiting.set(topic, failure);
      else this.#failTopic(topic, failure);
    }
    return waiting;
  }

  #isWorthWaiting(topic: string, { code }: TopicFailure): boolean {
    const { autoCreate, creation } = this.#context.settings;
    const isMissing = code === CODE.UNKNOWN_TOPIC_OR_PARTITION || code === CODE.LEADER_NOT_AVAILABLE;
    return isMissing && (autoCreate || creation !== null) && !this.#context.topics.isGivenUp(topic);
  }

  async #awaitCreation(waiting: ReadonlyMap<string, TopicFailure>): Promise<void> {
    const { topics } = this.#context;
    let missing = waiting;
    for (const pauseMs of CREATION_PAUSES_MS) {
      await this.#clock.sleep(pauseMs, this.#signal);
      if (this.#signal.aborted) return;
      missing = await topics.lookUp(this.#link.client, missing.keys());
      if (missing.size === 0) return;
    }
    for (const [topic, failure] of missing) {
      topics.giveUp(topic);
      this.#failTopic(topic, failure);
    }
  }

  /** Reports the outcomes of a batch and returns the items to send again. */
  #judge({ topic, partition, items, bytes }: PlannedBatch, result: BatchResult): readonly Item<Message>[] {
    if (result.kind === "written") {
      for (const { index } of items) this.#report(index, delivered);
      return [];
    }
    if (result.kind === "refused") return this.#refused(items, bytes, result.answer);
    if (result.kind === "unanswered") {
      const reason = this.#reasonAt(result.broker, result.error);
      this.#unknown ??= `topic "${topic}", partition ${partition}: sent, but no response: ${reason}`;
      for (const item of items) this.#keyFailed(item);
    } else {
      const outcome =
        result.broker === null ? this.#unreachable(result.error) : this.#leaderAway(topic, result.broker, result.error);
      for (const item of items) this.#fail(item, outcome);
    }
    return [];
  }

  #refused(items: readonly Item<Message>[], bytes: number, answer: ProduceAnswer): readonly Item<Message>[] {
    const { topic, partition, code, message, faults } = answer;
    const isTooLarge = code === CODE.MESSAGE_TOO_LARGE || code === CODE.RECORD_LIST_TOO_LARGE;
    const isBad = code === CODE.INVALID_RECORD || code === CODE.CORRUPT_MESSAGE;
    if (isTooLarge && items.length > 1) {
      this.#context.limits.refused(topic, bytes);
      return items;
    }
    const named = new Map(faults.filter(({ at }) => at >= 0 && at < items.length).map((fault) => [fault.at, fault]));
    if (isBad && items.length > 1 && named.size === 0) {
      this.#counts.set(`${topic}:${partition}`, Math.ceil(items.length / 2));
      return items;
    }
    const isSelective = isBad && named.size > 0;
    return items.filter((item, at) => {
      const fault = named.get(at);
      if (isSelective && fault === undefined) return true;
      this.#fail(item, outcomeOf(code, topic, fault?.message ?? message));
      return false;
    });
  }

  #failTopic(topic: string, { code, message }: TopicFailure): void {
    const outcome = outcomeOf(code, topic, message);
    const rest: Item<Message>[] = [];
    for (const item of this.#pending) {
      if (item.message.topic === topic) this.#fail(item, outcome);
      else rest.push(item);
    }
    this.#pending = rest;
  }

  #failAll(outcome: Failed): void {
    for (const item of this.#pending) this.#fail(item, outcome);
    this.#pending = [];
  }

  #fail(item: Item<Message>, outcome: Failed): void {
    this.#report(item.index, this.#keyFailed(item) ? outcome : skipped);
  }

  /** Marks the item's key as failed. False when an earlier message of the key has failed already. */
  #keyFailed({ index, message }: Item<Message>): boolean {
    const { key } = message.event;
    if (key === null) return true;
    const failedAt = this.#failedKeys.get(key) ?? index;
    this.#failedKeys.set(key, Math.min(failedAt, index));
    return index <= failedAt;
  }

  #unreachable(error: unknown): Failed {
    const cause = explained(this.#link.client, error);
    return unreachable(connectionReason(this.#context.settings, cause), cause);
  }

  /** Other brokers answer, so only partitions that this one leads have to wait. */
  #leaderAway(topic: string, broker: BrokerAddress, error: unknown): Failed {
    const reason = `topic "${topic}": the leader of a partition is unreachable: ${this.#reasonAt(broker, error)}`;
    return retry(reason, { scope: "topic", isOutside: true, error });
  }

  #reasonAt(broker: BrokerAddress, error: unknown): string {
    return connectionReason({ ...this.#context.settings, brokers: [broker] }, error);
  }
}

const NOTHING: ReadonlyMap<string, TopicFailure> = new Map();
