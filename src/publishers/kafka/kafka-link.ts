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

/** What became of a batch. */
export type Verdict =
  | { readonly kind: "written" }
  /** The broker said no. */
  | { readonly kind: "refused"; readonly answer: ProduceAnswer }
  /** It was not sent, because the broker that leads it could not be reached; null: no broker could. */
  | { readonly kind: "unsent"; readonly error: unknown; readonly broker: BrokerAddress | null }
  /** It was sent, and nobody answered. */
  | { readonly kind: "unanswered"; readonly error: unknown; readonly broker: BrokerAddress };

export type DraftBatch = Omit<ProduceBatch, "sequence">;

/** What the cluster knows the producer by, and the version of the protocol that both speak. */
interface Introduction {
  readonly id: bigint;
  readonly epoch: number;
  readonly produceVersion: number;
}

interface Pending<D extends DraftBatch = DraftBatch> {
  readonly draft: D;
  readonly sequence: number;
  verdict: Verdict;
  /** It may have been written although the last answer says otherwise. */
  isDoubtful: boolean;
}

/** Pauses before a request is repeated: a partition that moves is at its new broker after a moment. */
const PAUSES_MS: readonly number[] = [50, 150, 400, 800];

const written: Verdict = { kind: "written" };

/**
 * An idempotent producer with connections of its own, used by one publish at a time. The broker numbers its records
 * per partition, so a request that got no answer is repeated without harm as long as the link lives.
 */
export class KafkaLink {
  readonly client: KafkaClient;
  readonly #kafka: Kafka;
  readonly #settings: KafkaSettings;
  readonly #topics: Topics;
  readonly #clock: Clock;
  readonly #brokers: readonly BrokerAddress[];
  readonly #sequences = new Map<string, number>();
  #producer: Introduction | null = null;
  #isSpent = false;

  constructor(kafka: Kafka, settings: KafkaSettings, topics: Topics, clock: Clock = systemClock) {
    this.#kafka = kafka;
    this.#settings = settings;
    this.#topics = topics;
    this.#clock = clock;
    this.#brokers = topics.brokers();
    this.client = openClient(kafka, { ...settings, brokers: this.#brokers });
  }

  /** True when its numbering is in doubt: it must not be used again. */
  get isSpent(): boolean {
    return this.#isSpent;
  }

  /** No broker answered it: the next publish gets another link, which begins its search elsewhere. */
  spend(): void {
    this.#isSpent = true;
    this.#topics.tryOthers(this.#brokers);
  }

  /** Nothing is sent over it any more. Legal at any time, also twice. */
  async destroy(): Promise<void> {
    this.#isSpent = true;
    await destroyClient(this.client);
  }

  /** Gets the producer's number. Rejects when no broker can be reached or none lets us in. */
  async open(signal: AbortSignal): Promise<void> {
    const startedMs = this.#clock.monotonicMs();
    for (let attempt = 0; this.#producer === null; attempt++) {
      try {
        this.#producer = await this.#introduce();
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

  async #introduce(): Promise<Introduction> {
    const connection = await anyConnection(this.#kafka, this.client);
    const { version } = await apiOf(this.#kafka, this.client, "Produce");
    if (version < PRODUCE_VERSION_MIN) {
      throw new RelayError("CONFIG_INVALID", `${describeBrokers(this.#settings.brokers)} runs a Kafka older than 2.4.`);
    }
    const init = await apiOf(this.#kafka, this.client, "InitProducerId");
    // -1 asks for a new number; the client's default of 0 would claim somebody else's.
    const answer = await init.async(connection, null, 0, -1n, -1);
    const { producerId, producerEpoch } = answer as { readonly producerId: bigint; readonly producerEpoch: number };
    return { id: producerId, epoch: producerEpoch, produceVersion: version };
  }

  /**
   * Sends one batch per partition and tells what became of each, as soon as it is known. What may be repeated is
   * repeated for a short while.
   */
  async send<D extends DraftBatch>(
    drafts: readonly D[],
    tell: (draft: D, verdict: Verdict) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const deadlineMs = this.#clock.monotonicMs() + this.#settings.requestTimeoutMs;
    let pending = drafts.map((draft) => this.#begin(draft));
    for (let attempt = 0; ; attempt++) {
      const pauseMs = PAUSES_MS[attempt] ?? null;
      const mayRepeat = () => pauseMs !== null && !signal.aborted && this.#clock.monotonicMs() + pauseMs < deadlineMs;
      const again: Pending<D>[] = [];
      await this.#sendOnce(pending, (it) => {
        if (mayRepeat() && isPassing(it.verdict)) again.push(it);
        else tell(it.draft, this.#finish(it));
      });
      if (again.length === 0) return;
      await this.#clock.sleep(pauseMs ?? 0, signal);
      pending = await this.#lookUpAgain(again, (it) => tell(it.draft, this.#finish(it)));
    }
  }

  /** One request per broker, all at the same time. */
  async #sendOnce<D extends DraftBatch>(pending: readonly Pending<D>[], tell: (it: Pending<D>) => void): Promise<void> {
    const byLeader = Map.groupBy(pending, ({ draft }) => {
      const leader = this.#topics.leaderOf(draft.topic, draft.partition);
      return leader === null ? null : `${leader.host}:${leader.port}`;
    });
    const requests: Promise<void>[] = [];
    for (const [, group] of byLeader) {
      const { topic, partition } = group[0]!.draft;
      const leader = this.#topics.leaderOf(topic, partition);
      if (leader !== null) requests.push(this.#sendTo(leader, group, tell));
      else for (const it of group) this.#judge(it, refusal(it.draft, CODE.LEADER_NOT_AVAILABLE), tell);
    }
    await Promise.all(requests);
  }

  async #sendTo<D extends DraftBatch>(
    leader: BrokerAddress,
    group: readonly Pending<D>[],
    tell: (it: Pending<D>) => void,
  ): Promise<void> {
    const all = (verdict: Verdict) => {
      for (const it of group) this.#judge(it, verdict, tell);
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
    for (const it of group) this.#judge(it, verdictOf(found.get(slotOf(it.draft)), leader), tell);
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

  #judge<D extends DraftBatch>(it: Pending<D>, verdict: Verdict, tell: (it: Pending<D>) => void): void {
    it.verdict = verdict;
    if (verdict.kind === "unanswered") it.isDoubtful = true;
    if (verdict.kind === "refused" && !meaningOf(verdict.answer.code).isDefinite) it.isDoubtful = true;
    tell(it);
  }

  /** Looks for the new leaders; what can no longer be sent is told. Returns the rest. */
  async #lookUpAgain<D extends DraftBatch>(
    again: readonly Pending<D>[],
    tell: (it: Pending<D>) => void,
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
        this.#judge(it, { kind: "refused", answer }, tell);
        return false;
      });
    } catch (error) {
      for (const it of again) {
        if (it.verdict.kind === "unanswered" || it.isDoubtful) tell(it);
        else this.#judge(it, { kind: "unsent", error, broker: null }, tell);
      }
      return [];
    }
  }

  #begin<D extends DraftBatch>(draft: D): Pending<D> {
    const sequence = this.#sequences.get(slotOf(draft)) ?? 0;
    return { draft, sequence, verdict: { kind: "unsent", error: null, broker: null }, isDoubtful: false };
  }

  #finish({ draft, sequence, verdict, isDoubtful }: Pending): Verdict {
    if (verdict.kind === "written") this.#sequences.set(slotOf(draft), after(sequence, draft.items.length));
    else if (isDoubtful) this.#isSpent = true;
    if (isPassing(verdict)) this.#topics.forget(draft.topic);
    return verdict;
  }
}

function slotOf({ topic, partition }: DraftBatch): string {
  return `${topic}:${partition}`;
}

/** The numbers of records wrap around as the broker's do. */
function after(sequence: number, count: number): number {
  return (sequence + count) % 2 ** 31;
}

function verdictOf(answer: ProduceAnswer | undefined, broker: BrokerAddress): Verdict {
  if (answer === undefined)
    return { kind: "unanswered", error: new Error("its answer leaves the partition out"), broker };
  const isThere = answer.code === CODE.NONE || answer.code === CODE.DUPLICATE_SEQUENCE_NUMBER;
  return isThere ? written : { kind: "refused", answer };
}

function refusal({ topic, partition }: DraftBatch, code: number): Verdict {
  return { kind: "refused", answer: { topic, partition, code, message: null, faults: [] } };
}

function isPassing(verdict: Verdict): boolean {
  if (verdict.kind === "refused") return meaningOf(verdict.answer.code).isPassing;
  return verdict.kind !== "written";
}
