import { setTimeout as pauseMs, setImmediate } from "node:timers/promises";
import { unreachableError } from "../../core/connection-cause.ts";
import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { delivered, type Outcome } from "../../core/outcome.ts";
import type { CommittedBatch, LaneAddress, LaneTransactions } from "../../ports/transactions.ts";
import { destroyClient } from "./kafka-client.ts";
import type { BatchLimits } from "./kafka-config.ts";
import { CODE, describeCode } from "./kafka-error-codes.ts";
import { answersIn, connectionReason } from "./kafka-errors.ts";
import { type Item, measure, recordBytesMax } from "./kafka-records.ts";
import type { TopicFailure, TopicInfo, Topics } from "./kafka-topics.ts";
import type { KafkaAccess } from "./ledger-metadata.ts";
import { readLedger } from "./ledger-reader.ts";
import { encodeNote, lanePrefix, ringKey, transactionalId } from "./ledger-record.ts";
import {
  NotSent,
  type PartitionsByTopic,
  type ProducerStamp,
  settingsOfAskedBroker,
  type TransactionCoordinator,
} from "./transaction-coordinator.ts";
import {
  measureAll,
  outcomesOfRefusals,
  outcomesOfRefusedTopics,
  outcomesOfTopics,
  outcomesOfUnreachable,
  type RecordCounts,
} from "./transaction-outcomes.ts";
import {
  addNote,
  planRounds,
  type TransactionBatch,
  type TransactionRound,
  type TransactionRules,
} from "./transaction-plan.ts";
import { refusedOnLedger } from "./transaction-rights.ts";
import { TransactionSender } from "./transaction-sender.ts";

/** What all lanes of a destination share. */
export interface LaneContext {
  readonly topics: Topics;
  readonly limits: BatchLimits;
  readonly counts: RecordCounts;
  /** Called when a lane has closed its connections. */
  closed(lane: LaneTransactions): void;
}

/** A broker that auto-creates a topic needs a moment, and its response does not say that it does so. */
const CREATION_PAUSES_MS = [20, 50, 100, 200, 400] as const;

/** A new topic may be unknown to some brokers for a moment. */
const NEW_TOPIC_PAUSES_MS = [20, 100, 400] as const;

/**
 * - `idle`: no transaction is open. `send` may begin one.
 * - `open`: everything is sent; commit or abort.
 * - `refused`: begun, but incomplete: it can only be aborted.
 * - `lost`: a request got no answer, or the producer is fenced. The lane must be fenced again.
 */
type State = "idle" | "open" | "refused" | "lost";

/**
 * One lane's producer.
 *
 * A request that changes a transaction is never retried without an answer. An unanswered request may still arrive and
 * would affect the next transaction. So the producer is not used again: the next fence raises the epoch, and the
 * brokers then reject the late request.
 */
export class KafkaLaneTransactions implements LaneTransactions {
  readonly #access: KafkaAccess;
  readonly #context: LaneContext;
  readonly #lane: LaneAddress;
  /** The prefix of the keys of its ledger records. */
  readonly #prefix: string;
  readonly #coordinator: TransactionCoordinator;
  readonly #stamp: ProducerStamp;
  readonly #sender: TransactionSender;
  readonly #closed = new AbortController();
  #state: State = "idle";
  #isSpent = false;
  #spread = 0;

  constructor(
    access: KafkaAccess,
    context: LaneContext,
    lane: LaneAddress,
    coordinator: TransactionCoordinator,
    stamp: ProducerStamp,
  ) {
    this.#access = access;
    this.#context = context;
    this.#lane = lane;
    this.#prefix = lanePrefix(lane);
    this.#coordinator = coordinator;
    this.#stamp = stamp;
    const id = transactionalId(access.settings.service, lane);
    this.#sender = new TransactionSender(access, context.topics, id, stamp, lane.slot);
  }

  get isSpent(): boolean {
    return this.#isSpent;
  }

  lastCommitted(after: bigint, signal: AbortSignal): Promise<readonly CommittedBatch[]> {
    const notes = { partition: this.#lane.slot, prefix: this.#prefix };
    return this.#guard("idle", signal, async () => {
      try {
        return await readLedger(this.#access, notes, after);
      } catch (error) {
        throw this.#ledgerFault(error);
      }
    });
  }

  send(messages: readonly Message[], note: CommittedBatch, signal: AbortSignal): Promise<readonly Outcome[]> {
    return this.#guard("idle", signal, async () => {
      const { items, outcomes } = measureAll(messages, this.#access.settings);
      if (outcomes !== null) return outcomes;
      const found = await this.#lookUp(messages, signal);
      if (!(found instanceof Map)) return found;
      const rounds = planRounds(items, this.#rules(found));
      const begun = this.#begin(messages, this.#partitionsOf(rounds));
      begun.catch(() => {}); // awaited below
      // Let that request be sent first, then use the wait to encode the next one.
      await setImmediate();
      addNote(rounds, this.#noteBatch(note));
      const ahead = this.#sender.ahead(rounds[0]!);
      return (await begun) ?? (await this.#sendRounds(messages, rounds, ahead));
    });
  }

  async commit(signal: AbortSignal): Promise<void> {
    await this.#guard("open", signal, () => this.#coordinator.end(this.#stamp, true));
    this.#enter("idle");
  }

  async abort(signal: AbortSignal): Promise<void> {
    if (this.#state === "idle") return;
    const state = this.#state === "refused" ? "refused" : "open";
    await this.#guard(state, signal, () => this.#coordinator.end(this.#stamp, false));
    this.#enter("idle");
  }

  async close(): Promise<void> {
    this.#lose();
    await destroyClient(this.#access.client);
    this.#context.closed(this);
  }

  /** After any error in here it is unknown what took effect, so the connections are destroyed and the lane is lost. */
  async #guard<T>(state: State, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    if (this.#state !== state) throw new Error(`the lane's transaction is ${this.#state}, but must be ${state}`);
    if (state === "idle" && this.#isSpent) throw new Error("the lane must be fenced again");
    try {
      return await untilAborted([signal, this.#closed.signal], work);
    } catch (error) {
      this.#lose();
      await destroyClient(this.#access.client);
      throw this.#explain(error);
    }
  }

  /** An aborted call may still be running and must not revive a lost lane. */
  #enter(state: State): void {
    if (this.#state !== "lost") this.#state = state;
  }

  #lose(): void {
    this.#state = "lost";
    this.#isSpent = true;
    this.#closed.abort();
  }

  /** Explains errors of the client; leaves our own errors and bugs as they are. */
  #explain(error: unknown): unknown {
    if (error instanceof RelayError) return error;
    const [answer] = answersIn(error);
    if (answer !== undefined) return new Error(`Kafka answered ${describeCode(answer.code)}`, { cause: error });
    const isClients = error instanceof NotSent || (error instanceof Error && "code" in error);
    if (!isClients) return error;
    return new Error(connectionReason(settingsOfAskedBroker(this.#access.settings, error), error), { cause: error });
  }

  #ledgerFault(error: unknown): unknown {
    const { settings } = this.#access;
    if (error instanceof RelayError) return error;
    const codes = answersIn(error).map(({ code }) => code);
    if (codes.includes(CODE.TOPIC_AUTHORIZATION_FAILED)) return refusedOnLedger(settings, ["Read"], error);
    return unreachableError(connectionReason(settings, error), error);
  }

  /**
   * The topics' partitions, after a short wait for topics that are being created; or the outcomes if some are missing.
   */
  async #lookUp(
    messages: readonly Message[],
    signal: AbortSignal,
  ): Promise<Map<string, TopicInfo> | readonly Outcome[]> {
    const { topics } = this.#context;
    const found = new Map<string, TopicInfo | null>();
    for (const { topic } of messages) if (!found.has(topic)) found.set(topic, topics.known(topic));
    let missing = [...found.keys()].filter((topic) => found.get(topic) === null);
    let failures: ReadonlyMap<string, TopicFailure> = new Map();
    try {
      await this.#sender.ready();
      for (const waitMs of [...CREATION_PAUSES_MS, null]) {
        if (missing.length === 0) return found as Map<string, TopicInfo>;
        failures = await topics.lookUp(this.#access.client, missing);
        for (const topic of missing) found.set(topic, topics.known(topic));
        missing = missing.filter((topic) => found.get(topic) === null);
        if (waitMs === null || !missing.every((topic) => this.#isBeingCreated(topic, failures))) break;
        if (missing.length > 0) await pauseMs(waitMs, undefined, { signal });
      }
    } catch (error) {
      // No transaction was begun, so this is an ordinary outage.
      return outcomesOfUnreachable(messages, this.#access.settings, error);
    }
    for (const topic of missing) topics.giveUp(topic);
    return outcomesOfTopics(messages, failures);
  }

  #isBeingCreated(topic: string, failures: ReadonlyMap<string, TopicFailure>): boolean {
    const { autoCreate, creation } = this.#access.settings;
    if (this.#context.topics.isGivenUp(topic)) return false;
    const code = failures.get(topic)?.code;
    if (code === CODE.LEADER_NOT_AVAILABLE) return true;
    return code === CODE.UNKNOWN_TOPIC_OR_PARTITION && (autoCreate || creation !== null);
  }

  #rules(found: ReadonlyMap<string, TopicInfo>): TransactionRules {
    const { limits, counts } = this.#context;
    this.#spread += 1;
    return {
      limits,
      topicInfo: (topic) => found.get(topic)!,
      countMax: (topic, partition) => counts.of(topic, partition),
      spread: this.#spread + this.#lane.lane,
    };
  }

  #noteBatch(note: CommittedBatch): TransactionBatch {
    const { ledger } = this.#access.settings;
    const key = ringKey(this.#prefix, note.batch, ledger.ringSize);
    const message = { topic: ledger.topic, key, headers: {}, payload: encodeNote(note) };
    const item: Item = { index: -1, message, contentBytes: measure(message) };
    return { topic: ledger.topic, partition: this.#lane.slot, items: [item], bytes: recordBytesMax(item) };
  }

  #partitionsOf(rounds: readonly TransactionRound[]): PartitionsByTopic {
    const partitions = new Map([[this.#access.settings.ledger.topic, new Set([this.#lane.slot])]]);
    for (const { topic, partition } of rounds.flat()) {
      const known = partitions.get(topic);
      if (known === undefined) partitions.set(topic, new Set([partition]));
      else known.add(partition);
    }
    return partitions;
  }

  /** Null when the transaction has begun; else the outcomes, and there is nothing to abort. */
  async #begin(messages: readonly Message[], partitions: PartitionsByTopic): Promise<readonly Outcome[] | null> {
    try {
      for (const waitMs of [...NEW_TOPIC_PAUSES_MS, null]) {
        const refused = await this.#coordinator.begin(this.#stamp, partitions);
        if (refused.size === 0) return null;
        const isNew = [...refused.values()].every((code) => code === CODE.UNKNOWN_TOPIC_OR_PARTITION);
        if (waitMs === null || !isNew) return outcomesOfRefusedTopics(messages, refused, this.#access.settings);
        await pauseMs(waitMs);
      }
    } catch (error) {
      if (error instanceof NotSent) return outcomesOfUnreachable(messages, this.#access.settings, error);
      throw error;
    }
    return null;
  }

  /** Rounds go one after another: two concurrent requests to a partition could be reordered. */
  async #sendRounds(
    messages: readonly Message[],
    rounds: readonly TransactionRound[],
    ahead: ReturnType<TransactionSender["ahead"]>,
  ): Promise<readonly Outcome[]> {
    this.#enter("refused");
    for (const [at, round] of rounds.entries()) {
      const refusals = await this.#sender.send(round, at === 0 ? ahead : undefined);
      if (refusals.length === 0) continue;
      // The brokers have counted the sequence numbers of some records only, so a new producer must continue after the
      // abort.
      this.#isSpent = true;
      const { settings } = this.#access;
      return outcomesOfRefusals(messages, refusals, { settings, ...this.#context });
    }
    for (const { topic, partition } of rounds.flat()) this.#context.counts.forget(topic, partition);
    this.#enter("open");
    return messages.map(() => delivered);
  }
}

/** The caller aborted, or the lane was closed. */
export class GivenUp extends Error {}

/** Rejects as soon as one of the signals aborts, and leaves the work running. */
export function untilAborted<T>(signals: readonly AbortSignal[], work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(new GivenUp("the call was aborted before Kafka answered"));
    if (signals.some(({ aborted }) => aborted)) return giveUp();
    for (const signal of signals) signal.addEventListener("abort", giveUp, { once: true });
    work()
      .then(resolve, reject)
      .finally(() => {
        for (const signal of signals) signal.removeEventListener("abort", giveUp);
      });
  });
}
