import { type Clock, systemClock } from "../../core/clock.ts";
import { isRelayError, RelayError } from "../../core/errors.ts";
import {
  anyConnection,
  apiOf,
  connectionTo,
  destroyClient,
  type Kafka,
  type KafkaClient,
  openClient,
} from "./kafka-client.ts";
import { type BrokerAddress, describeBrokers, type KafkaSettings } from "./kafka-config.ts";
import { CODE, meaningOf } from "./kafka-error-codes.ts";
import { answersIn } from "./kafka-errors.ts";
import { PRODUCE_VERSION_MIN, type ProduceAnswer, type ProduceBatch, produce } from "./kafka-produce.ts";
import { QUICK_FAILURE_MS, type Topics } from "./kafka-topics.ts";

/** The result of sending a batch. */
export type BatchResult =
  | { readonly kind: "written" }
  /** The broker refused it. */
  | { readonly kind: "refused"; readonly answer: ProduceAnswer }
  /** It was not sent, because the partition's leader could not be reached; null: no broker could. */
  | { readonly kind: "unsent"; readonly error: unknown; readonly broker: BrokerAddress | null }
  /** It was sent and got no answer. */
  | { readonly kind: "unanswered"; readonly error: unknown; readonly broker: BrokerAddress };

/** A batch without its sequence number. */
export type DraftBatch = Omit<ProduceBatch, "sequence">;

/** The producer's id and epoch, and the API version that client and broker share. */
interface ProducerIdentity {
  readonly id: bigint;
  readonly epoch: number;
  readonly produceVersion: number;
}

interface Pending<D extends DraftBatch = DraftBatch> {
  readonly draft: D;
  readonly sequence: number;
  result: BatchResult;
  /** It may have been written, although the last answer says otherwise. */
  isUncertain: boolean;
}

/** Pauses before retries: a moving partition needs a moment until its new leader accepts writes. */
const PAUSES_MS: readonly number[] = [50, 150, 400, 800];

const written: BatchResult = { kind: "written" };

/**
 * An idempotent producer with its own connections, used by one publish at a time. The broker checks the sequence
 * numbers per partition, so an unanswered request can be retried safely as long as the link lives.
 */
export class KafkaLink {
  readonly client: KafkaClient;
  readonly #kafka: Kafka;
  readonly #settings: KafkaSettings;
  readonly #topics: Topics;
  readonly #clock: Clock;
  readonly #brokers: readonly BrokerAddress[];
  readonly #sequences = new Map<string, number>();
  #producer: ProducerIdentity | null = null;
  #isSpent = false;

  constructor(kafka: Kafka, settings: KafkaSettings, topics: Topics, clock: Clock = systemClock) {
    this.#kafka = kafka;
    this.#settings = settings;
    this.#topics = topics;
    this.#clock = clock;
    this.#brokers = topics.brokers();
    this.client = openClient(kafka, { ...settings, brokers: this.#brokers });
  }

  /** True when its sequence numbers are uncertain: it must not be used again. */
  get isSpent(): boolean {
    return this.#isSpent;
  }

  /** Call it when no broker answered: the next publish gets a new link, which starts its search at another broker. */
  spend(): void {
    this.#isSpent = true;
    this.#topics.tryOthers(this.#brokers);
  }

  /** Closes the connections; nothing more is sent. May be called at any time, also twice. */
  async destroy(): Promise<void> {
    this.#isSpent = true;
    await destroyClient(this.client);
  }

  /** Gets a producer id. Rejects when no broker can be reached or the login fails. */
  async open(signal: AbortSignal): Promise<void> {
    const startedMs = this.#clock.monotonicMs();
    for (let attempt = 0; this.#producer === null; attempt++) {
      try {
        this.#producer = await this.#initProducer();
      } catch (error) {
        const pauseMs = PAUSES_MS[attempt];
        const answers = answersIn(error);
        const isPassing = answers.some(({ code }) => meaningOf(code).isPassing);
        const isQuick = this.#clock.monotonicMs() - startedMs < QUICK_FAILURE_MS;
        const isWorthATry = isPassing || (answers.length === 0 && attempt === 0 && isQuick);
        if (pauseMs === undefined || !isWorthATry || signal.aborted || isRelayError(error)) throw error;
        await this.#clock.sleep(pauseMs, signal);
      }
    }
  }

  async #initProducer(): Promise<ProducerIdentity> {
    const connection = await anyConnection(this.#kafka, this.client);
    const { version } = await apiOf(this.#kafka, this.client, "Produce");
    if (version < PRODUCE_VERSION_MIN) {
      throw new RelayError(
        "CONFIG_INVALID",
        `${describeBrokers(this.#settings.brokers)} runs a Kafka version before 2.4: upgrade the brokers.`,
      );
    }
    const init = await apiOf(this.#kafka, this.client, "InitProducerId");
    // -1 requests a new id; the client's default of 0 would claim another producer's.
    const answer = await init.async(connection, null, 0, -1n, -1);
    const { producerId, producerEpoch } = answer as { readonly producerId: bigint; readonly producerEpoch: number };
    return { id: producerId, epoch: producerEpoch, produceVersion: version };
  }

  /**
   * Sends one batch per partition and reports each result as soon as it is known. Retries for a short time where that
   * is safe.
   */
  async send<D extends DraftBatch>(
    drafts: readonly D[],
    report: (draft: D, result: BatchResult) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const deadlineMs = this.#clock.monotonicMs() + this.#settings.requestTimeoutMs;
    let pending = drafts.map((draft) => this.#begin(draft));
    for (let attempt = 0; ; attempt++) {
      const pauseMs = PAUSES_MS[attempt] ?? null;
      const mayRepeat = () => pauseMs !== null && !signal.aborted && this.#clock.monotonicMs() + pauseMs < deadlineMs;
      const again: Pending<D>[] = [];
      await this.#sendOnce(pending, (it) => {
        if (mayRepeat() && isPassing(it.result)) again.push(it);
        else report(it.draft, this.#finish(it));
      });
      if (again.length === 0) return;
      await this.#clock.sleep(pauseMs ?? 0, signal);
      pending = await this.#lookUpAgain(again, (it) => report(it.draft, this.#finish(it)));
    }
  }

  /** One request per broker, all in parallel. */
  async #sendOnce<D extends DraftBatch>(
    pending: readonly Pending<D>[],
    report: (it: Pending<D>) => void,
  ): Promise<void> {
    const byLeader = Map.groupBy(pending, ({ draft }) => {
      const leader = this.#topics.leaderOf(draft.topic, draft.partition);
      return leader === null ? null : `${leader.host}:${leader.port}`;
    });
    const requests: Promise<void>[] = [];
    for (const [, group] of byLeader) {
      const { topic, partition } = group[0]!.draft;
      const leader = this.#topics.leaderOf(topic, partition);
      if (leader !== null) requests.push(this.#sendTo(leader, group, report));
      else for (const it of group) this.#record(it, refusal(it.draft, CODE.LEADER_NOT_AVAILABLE), report);
    }
    await Promise.all(requests);
  }

  async #sendTo<D extends DraftBatch>(
    leader: BrokerAddress,
    group: readonly Pending<D>[],
    report: (it: Pending<D>) => void,
  ): Promise<void> {
    const all = (result: BatchResult) => {
      for (const it of group) this.#record(it, result, report);
    };
    const connection = await connectionTo(this.#kafka, this.client, leader).catch((error: unknown) => {
      all({ kind: "unsent", error, broker: leader });
      return null;
    });
    if (connection === null) return;
    const answers = await this.#request(connection, group).catch((error: unknown) => {
      all({ kind: "unanswered", error, broker: leader });
      return null;
    });
    if (answers === null) return;
    const found = new Map(answers.map((answer) => [`${answer.topic}:${answer.partition}`, answer]));
    for (const it of group) this.#record(it, resultOf(found.get(slotOf(it.draft)), leader), report);
  }

  #request(connection: Awaited<ReturnType<typeof connectionTo>>, group: readonly Pending[]) {
    const producer = this.#producer!;
    return produce(this.#kafka, connection, {
      version: producer.produceVersion,
      transactionalId: null,
      producerId: producer.id,
      producerEpoch: producer.epoch,
      timeoutMs: this.#settings.requestTimeoutMs,
      compression: this.#settings.compression,
      batches: group.map(({ draft, sequence }) => ({ ...draft, sequence })),
    });
  }

  #record<D extends DraftBatch>(it: Pending<D>, result: BatchResult, report: (it: Pending<D>) => void): void {
    it.result = result;
    if (result.kind === "unanswered") it.isUncertain = true;
    if (result.kind === "refused" && !meaningOf(result.answer.code).isDefinite) it.isUncertain = true;
    report(it);
  }

  /** Looks up the new leaders and reports batches that can no longer be sent. Returns the rest. */
  async #lookUpAgain<D extends DraftBatch>(
    again: readonly Pending<D>[],
    report: (it: Pending<D>) => void,
  ): Promise<Pending<D>[]> {
    try {
      const failures = await this.#topics.lookUp(
        this.client,
        again.map(({ draft }) => draft.topic),
      );
      return again.filter((it) => {
        const failure = failures.get(it.draft.topic);
        if (failure === undefined) return true;
        const answer = { topic: it.draft.topic, partition: it.draft.partition, ...failure, faults: [] };
        this.#record(it, { kind: "refused", answer }, report);
        return false;
      });
    } catch (error) {
      for (const it of again) {
        if (it.result.kind === "unanswered" || it.isUncertain) report(it);
        else this.#record(it, { kind: "unsent", error, broker: null }, report);
      }
      return [];
    }
  }

  #begin<D extends DraftBatch>(draft: D): Pending<D> {
    const sequence = this.#sequences.get(slotOf(draft)) ?? 0;
    return { draft, sequence, result: { kind: "unsent", error: null, broker: null }, isUncertain: false };
  }

  #finish({ draft, sequence, result, isUncertain }: Pending): BatchResult {
    if (result.kind === "written") this.#sequences.set(slotOf(draft), after(sequence, draft.items.length));
    else if (isUncertain) this.#isSpent = true;
    if (isPassing(result)) this.#topics.forget(draft.topic);
    return result;
  }
}

function slotOf({ topic, partition }: DraftBatch): string {
  return `${topic}:${partition}`;
}

/** Sequence numbers wrap around as on the broker. */
function after(sequence: number, count: number): number {
  return (sequence + count) % 2 ** 31;
}

function resultOf(answer: ProduceAnswer | undefined, broker: BrokerAddress): BatchResult {
  if (answer === undefined)
    return { kind: "unanswered", error: new Error("the broker's response lacks the partition"), broker };
  const isThere = answer.code === CODE.NONE || answer.code === CODE.DUPLICATE_SEQUENCE_NUMBER;
  return isThere ? written : { kind: "refused", answer };
}

function refusal({ topic, partition }: DraftBatch, code: number): BatchResult {
  return { kind: "refused", answer: { topic, partition, code, message: null, faults: [] } };
}

function isPassing(result: BatchResult): boolean {
  if (result.kind === "refused") return meaningOf(result.answer.code).isPassing;
  return result.kind !== "written";
}
