import type { Clock, Random } from "../core/clock.ts";
import { RelayError, reasonOf } from "../core/errors.ts";
import type { Message } from "../core/event.ts";
import { type Failed, type Outcome, rejected, retry } from "../core/outcome.ts";
import type { RetryPolicy } from "../core/retry-policy.ts";
import type { DynamoDbOutbox } from "../dynamodb/dynamodb-outbox.ts";
import type { IntentRecord } from "../dynamodb/intent-record.ts";
import type { Publisher } from "../ports/publisher.ts";
import { nextAfterFailure } from "../relay/failure-rule.ts";
import { messageOf } from "../routing/message.ts";
import type { Route } from "../routing/routes.ts";
import type { Attempt, EventFailure, IntentReports } from "./intent-reports.ts";
import type { TimeLeft } from "./time-left.ts";

interface DeliveryOptions {
  readonly outbox: Pick<DynamoDbOutbox, "markDelivered" | "recordFailure" | "deadLetter">;
  readonly route: Route;
  readonly retry: RetryPolicy;
  /** Opened at the first delivery. */
  readonly publisher: () => Promise<Publisher>;
  readonly batchSize: number;
  readonly reports: IntentReports;
  readonly clock: Clock;
  readonly random: Random;
}

/** Publishes without any outcome for an event, after which the rest waits for the next call. */
const IDLE_ROUNDS_MAX = 3;
/** How long an aborted publisher has to report the outcomes it knows. */
const GRACE_MS = 250;

interface Entry {
  readonly record: IntentRecord;
  readonly message: Message;
}

/** The ids of intents that are not finished. */
interface Undone {
  /** Their outcome could not be recorded; they may have arrived. */
  readonly unsettled: ReadonlySet<string>;
  /** There was no time to send them. */
  readonly untried: ReadonlySet<string>;
}

/** One call of `deliver`. */
interface Run {
  readonly time: TimeLeft;
  readonly unsettled: Set<string>;
  /** Why they are unsettled, each reason once. */
  readonly errors: Map<string, unknown>;
}

/** Sends intents and records their outcomes. */
export class IntentDelivery {
  readonly #options: DeliveryOptions;

  constructor(options: DeliveryOptions) {
    this.#options = options;
  }

  /** Throws when the destination's client cannot be loaded; then nothing was sent. */
  async deliver(records: readonly IntentRecord[], time: TimeLeft): Promise<Undone> {
    const run: Run = { time, unsettled: new Set(), errors: new Map() };
    if (records.length === 0) return { unsettled: run.unsettled, untried: new Set() };
    const publisher = await this.#options.publisher();
    const { faulty, pending } = this.#translate(records, publisher);
    await Promise.all(faulty.map(({ failed, record }) => this.#settle(run, record, null, failed, 0)));
    let waiting: readonly Entry[] = pending;
    let idleRounds = 0;
    while (waiting.length > 0 && time.canSend && idleRounds < IDLE_ROUNDS_MAX) {
      const left = await this.#round(run, publisher, waiting);
      idleRounds = left.length === waiting.length ? idleRounds + 1 : 0;
      waiting = left;
    }
    return { unsettled: this.#reportUnsettled(run), untried: new Set(waiting.map(({ record }) => record.id)) };
  }

  /** Moves an intent to the dead letters without sending it. */
  async deadLetter(record: IntentRecord, reason: string, time: TimeLeft): Promise<void> {
    const run: Run = { time, unsettled: new Set(), errors: new Map() };
    await this.#settle(run, record, null, rejected(reason, { errorType: "CRASH_POISON" }), 0);
    this.#reportUnsettled(run);
  }

  #reportUnsettled({ errors, unsettled }: Run): ReadonlySet<string> {
    for (const error of errors.values()) this.#options.reports.unsettled(error);
    return unsettled;
  }

  #translate(records: readonly IntentRecord[], publisher: Publisher) {
    const pending: Entry[] = [];
    const faulty: { readonly record: IntentRecord; readonly failed: Failed }[] = [];
    for (const record of records) {
      try {
        if (record.fault !== null) throw new RelayError("EVENT_UNREADABLE", record.fault);
        const message = messageOf(this.#options.route, record, publisher.capabilities.attributePrefix);
        pending.push({ record, message });
      } catch (error) {
        const reason =
          record.fault === null ? `The intent could not be turned into a message: ${reasonOf(error)}` : reasonOf(error);
        faulty.push({ record, failed: rejected(reason, { error }) });
      }
    }
    return { pending, faulty };
  }

  /** One publish. Returns the entries that still have to be sent, in order. */
  async #round(run: Run, publisher: Publisher, waiting: readonly Entry[]): Promise<readonly Entry[]> {
    const { batchSize, clock } = this.#options;
    const isOrdered = publisher.capabilities.keyOrderInBatch;
    const batch = isOrdered ? waiting.slice(0, batchSize) : oneOfEachKey(waiting, batchSize);
    const began = clock.monotonicMs();
    const outcomes = await this.#publish(publisher, batch, run.time.beginSend());
    const durationMs = Math.round(clock.monotonicMs() - began);
    const done = new Set<Entry>();
    const settling = batch.map(async (entry, index) => {
      const outcome = outcomes[index]!;
      // Not sent, because an earlier intent of its key failed. That one waits for its retry; this one is sent in the
      // next round.
      if (outcome.kind === "skipped") return;
      done.add(entry);
      await this.#settle(run, entry.record, entry.message.topic, outcome, durationMs);
    });
    await Promise.all(settling);
    return waiting.filter((entry) => !done.has(entry));
  }

  async #publish(publisher: Publisher, batch: readonly Entry[], timeoutMs: number): Promise<readonly Outcome[]> {
    const outcomes: (Outcome | undefined)[] = batch.map(() => undefined);
    const giveUp = new AbortController();
    const isDone = new AbortController();
    let unknown = retry("The destination reported no outcome for this intent", { scope: "destination" });
    try {
      const messages = batch.map(({ message }) => message);
      const report = (index: number, outcome: Outcome) => {
        outcomes[index] ??= outcome;
      };
      const publishing = publisher.publish(messages, report, giveUp.signal);
      publishing.catch(() => {});
      await Promise.race([publishing, this.#limit(timeoutMs, giveUp, isDone.signal)]);
    } catch (error) {
      unknown = retry(reasonOf(error), { scope: "destination", errorType: "PUBLISH_UNKNOWN", error });
    }
    isDone.abort();
    return outcomes.map((outcome) => outcome ?? unknown);
  }

  /** Aborts a publish when its time is over, and does not wait for a publisher that ignores the abort. */
  async #limit(timeoutMs: number, giveUp: AbortController, done: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    await clock.sleep(timeoutMs, done);
    if (done.aborted) return;
    giveUp.abort();
    await clock.sleep(GRACE_MS, done);
    if (!done.aborted) throw new RelayError("PUBLISH_UNKNOWN", "The destination did not answer in time.");
  }

  /** Records the outcome of an intent and reports it. */
  async #settle(
    run: Run,
    record: IntentRecord,
    topic: string | null,
    outcome: Outcome,
    durationMs: number,
  ): Promise<void> {
    if (outcome.kind === "skipped") return;
    const { clock, outbox, reports } = this.#options;
    const attempt = { topic, durationMs };
    try {
      if (outcome.kind === "delivered") {
        reports.relayed(record, attempt);
        const settled = await run.time.within(outbox.markDelivered(record.id, clock.wallMs()));
        if (settled === "gone") reports.vanished(record);
      } else await this.#settleFailure(run.time, record, attempt, outcome);
    } catch (error) {
      run.unsettled.add(record.id);
      run.errors.set(reasonOf(error), error);
    }
  }

  async #settleFailure(time: TimeLeft, record: IntentRecord, attempt: Attempt, failed: EventFailure): Promise<void> {
    const { clock, outbox, random, reports } = this.#options;
    const policy = { retry: this.#options.retry, onExhausted: "skip" as const };
    const next = nextAfterFailure(policy, failed, record.attemptCount + 1, random.next());
    const failure = { at: clock.wallMs(), reason: failed.reason };
    const delayMs = next.kind === "retry" ? next.delayMs : null;
    reports.failed(record, attempt, failed, delayMs);
    const writing =
      delayMs === null
        ? outbox.deadLetter(record, failure)
        : outbox.recordFailure(record, failure, failure.at + delayMs);
    const settled = await time.within(writing);
    if (settled === "gone") reports.vanished(record);
    else if (delayMs === null) reports.deadLettered(record, attempt.topic, failed.reason);
  }
}

/**
 * At most one entry per key, for destinations that could accept a later event of a key after they refused an earlier
 * one.
 */
function oneOfEachKey(waiting: readonly Entry[], limit: number): readonly Entry[] {
  const keys = new Set<string>();
  return waiting
    .filter(({ record: { key } }) => {
      if (key === null) return true;
      const isFirst = !keys.has(key);
      keys.add(key);
      return isFirst;
    })
    .slice(0, limit);
}
