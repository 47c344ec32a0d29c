import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { type Failed, type Outcome, rejected, retry, skipped } from "../../core/outcome.ts";
import type { BatchLimits, KafkaSettings } from "./kafka-config.ts";
import { CODE, describeCode, meaningOf } from "./kafka-error-codes.ts";
import { connectionReason, outcomeOf } from "./kafka-errors.ts";
import { faultOf, type Item, measure } from "./kafka-records.ts";
import type { TopicFailure } from "./kafka-topics.ts";
import { settingsOfAskedBroker } from "./transaction-coordinator.ts";
import { refusedOnLedger } from "./transaction-rights.ts";
import type { Refusal } from "./transaction-sender.ts";

/**
 * A broker closes the connection without a reason when a request exceeds 100 MiB, so larger records are rejected here.
 */
const RECORD_BYTES_MAX = 99 * 1024 * 1024;

/**
 * The maximum number of records per batch, by partition, learned from batches that a broker refused without naming the
 * record at fault.
 */
export class RecordCounts {
  readonly #counts = new Map<string, number>();

  of(topic: string, partition: number): number {
    return this.#counts.get(`${topic}:${partition}`) ?? Number.POSITIVE_INFINITY;
  }

  halve(topic: string, partition: number, count: number): void {
    this.#counts.set(`${topic}:${partition}`, Math.ceil(count / 2));
  }

  /** Forgets the limit once the record at fault is found. */
  forget(topic: string, partition: number): void {
    this.#counts.delete(`${topic}:${partition}`);
  }
}

/** Measures the messages and rejects those that no broker would accept. `outcomes` is null if there are none. */
export function measureAll(
  messages: readonly Message[],
  settings: KafkaSettings,
): { readonly items: Item<Message>[]; readonly outcomes: Outcome[] | null } {
  const items: Item<Message>[] = [];
  const faults = new Map<number, string>();
  const legalTopics = new Set<string>();
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!;
    const contentBytes = measure(message);
    items.push({ index, message, contentBytes });
    // Its strings are valid, too, or it could not have been measured.
    if (contentBytes >= 0 && contentBytes <= RECORD_BYTES_MAX && legalTopics.has(message.topic)) continue;
    const fault = faultIn(message, contentBytes, settings);
    if (fault === null) legalTopics.add(message.topic);
    else faults.set(index, fault);
  }
  if (faults.size === 0) return { items, outcomes: null };
  return { items, outcomes: messages.map((_, index) => (faults.has(index) ? rejected(faults.get(index)!) : skipped)) };
}

function faultIn(message: Message, contentBytes: number, { ledger }: KafkaSettings): string | null {
  if (message.topic === ledger.topic) return `topic "${message.topic}" is the relay's own ledger`;
  if (contentBytes > RECORD_BYTES_MAX)
    return `the record has ${contentBytes} bytes, but no broker accepts more than ${RECORD_BYTES_MAX}`;
  return faultOf(message);
}

/** The outcomes when some topics cannot be written to, before a transaction was begun. */
export function outcomesOfTopics(
  messages: readonly Message[],
  failures: ReadonlyMap<string, TopicFailure>,
): readonly Outcome[] {
  return messages.map(({ topic }) => {
    const failure = failures.get(topic);
    return failure === undefined ? skipped : outcomeOf(failure.code, topic, failure.message);
  });
}

/** The outcomes when no broker could be reached. */
export function outcomesOfUnreachable(
  messages: readonly Message[],
  settings: KafkaSettings,
  error: unknown,
): readonly Outcome[] {
  const reason = connectionReason(settingsOfAskedBroker(settings, error), error);
  const outcome = retry(reason, { scope: "destination", isOutside: true, error });
  return messages.map(() => outcome);
}

interface RefusalContext {
  readonly settings: KafkaSettings;
  readonly limits: BatchLimits;
  readonly counts: RecordCounts;
}

/** After these answers the producer is invalid, and only a new fence helps. */
const PRODUCER_GONE: ReadonlySet<number> = new Set([
  CODE.OUT_OF_ORDER_SEQUENCE_NUMBER,
  CODE.INVALID_PRODUCER_EPOCH,
  CODE.INVALID_TXN_STATE,
  CODE.INVALID_PRODUCER_ID_MAPPING,
  CODE.TRANSACTION_COORDINATOR_FENCED,
  CODE.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
  CODE.UNKNOWN_PRODUCER_ID,
  CODE.PRODUCER_FENCED,
  CODE.TRANSACTIONAL_ID_NOT_FOUND,
  CODE.TRANSACTION_ABORTABLE,
]);

/**
 * The outcomes of a transaction with refused batches. If the broker does not name the record at fault, none fails: the
 * next transaction sends smaller batches, until a single record is refused.
 */
export function outcomesOfRefusals(
  messages: readonly Message[],
  refusals: readonly Refusal[],
  context: RefusalContext,
): readonly Outcome[] {
  const outcomes: Outcome[] = messages.map(() => skipped);
  for (const refusal of refusals) {
    if (refusal.batch.topic === context.settings.ledger.topic) {
      const outcome = ledgerRefused(refusal, context.settings);
      return messages.map(() => outcome);
    }
    for (const [{ index }, outcome] of blamed(refusal, context)) outcomes[index] = outcome;
  }
  return outcomes;
}

function blamed(refusal: Refusal, { settings, limits, counts }: RefusalContext): (readonly [Item, Failed])[] {
  const { items, topic, partition, bytes } = refusal.batch;
  if (refusal.kind === "unsent") {
    const reason = connectionReason(settings, refusal.error);
    const outcome = retry(`topic "${topic}": the leader of a partition is unreachable: ${reason}`, {
      scope: "topic",
      isOutside: true,
      error: refusal.error,
    });
    return items.map((item) => [item, outcome]);
  }
  const { code, message, faults } = refusal.answer;
  if (PRODUCER_GONE.has(code)) throw new Error(`topic "${topic}": ${describeCode(code)}`);
  const named = faults.flatMap(({ at, message: why }): (readonly [Item, Failed])[] => {
    const item = items[at];
    return item === undefined ? [] : [[item, outcomeOf(code, topic, why ?? message)]];
  });
  if (meaningOf(code).scope === "event" && named.length > 0) return named;
  if (items.length === 1 || meaningOf(code).scope !== "event") {
    counts.forget(topic, partition);
    return items.map((item) => [item, outcomeOf(code, topic, message)]);
  }
  if (code === CODE.MESSAGE_TOO_LARGE || code === CODE.RECORD_LIST_TOO_LARGE) limits.refused(topic, bytes);
  else counts.halve(topic, partition, items.length);
  return [];
}

/** No message is at fault. Throws when an operator must act. */
function ledgerRefused(refusal: Refusal, settings: KafkaSettings): Failed {
  const { topic } = settings.ledger;
  if (refusal.kind === "unsent") {
    const { error } = refusal;
    return retry(connectionReason(settings, error), { scope: "destination", isOutside: true, error });
  }
  const { code } = refusal.answer;
  const { bytes } = refusal.batch;
  if (PRODUCER_GONE.has(code)) throw new Error(`topic "${topic}": ${describeCode(code)}`);
  if (code === CODE.TOPIC_AUTHORIZATION_FAILED) throw refusedOnLedger(settings, ["Write"]);
  const passing = { scope: "destination", isOutside: true } as const;
  if (meaningOf(code).isPassing) return retry(`the ledger "${topic}": ${describeCode(code)}`, passing);
  const what = `The ledger topic "${topic}" refused a note of ${bytes} bytes: ${describeCode(code)}`;
  throw new RelayError("LEDGER_UNFIT", `${what}. Raise its max.message.bytes, or lower limits.transactionSize.`);
}

/**
 * The outcomes when the coordinator rejected topics and no transaction was begun. Throws when the ledger is among them.
 */
export function outcomesOfRefusedTopics(
  messages: readonly Message[],
  codes: ReadonlyMap<string, number>,
  settings: KafkaSettings,
): readonly Outcome[] {
  const { topic } = settings.ledger;
  const ofLedger = codes.get(topic);
  if (ofLedger === CODE.TOPIC_AUTHORIZATION_FAILED) throw refusedOnLedger(settings, ["Write"]);
  if (ofLedger !== undefined)
    throw new RelayError("LEDGER_UNFIT", `The ledger topic "${topic}": ${describeCode(ofLedger)}.`);
  return outcomesOfTopics(messages, new Map([...codes].map(([name, code]) => [name, { code, message: null }])));
}
