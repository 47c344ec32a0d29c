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

/** Rounds in which the destination took nothing and refused nothing. */
const IDLE_ROUNDS_MAX = 3;
/** For a publisher to tell what it knows when it is given up. */
const GRACE_MS = 250;

interface Entry {
  readonly record: IntentRecord;
  readonly message: Message;
}

/** The ids of intents that are not done with. */
interface Undone {
  /** Nothing could be written down of them; they may have arrived. */
  readonly unsettled: ReadonlySet<string>;
  /** There was no time for them. */
  readonly untried: ReadonlySet<string>;
}

/** One call of `deliver`. */
interface Run {
  readonly time: TimeLeft;
  readonly unsettled: Set<string>;
  /** Why they are, each reason once. */
  readonly errors: Map<string, unknown>;
}

/** Sends intents and writes down what became of each. */
export class IntentDelivery {
  readonly #options: DeliveryOptions;

  constructor(options: DeliveryOptions) {
    this.#options = options;
  }

  /** Throws when the destination's client cannot be loaded; nothing was sent then. */
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
    return { unsettled: this.#tell(run), untried: new Set(waiting.map(({ record }) => record.id)) };
  }

  /** Makes a dead letter of an intent without sending it. */
  async bury(record: IntentRecord, reason: string, time: TimeLeft): Promise<void> {
    const run: Run = { time, unsettled: new Set(), errors: new Map() };
    await this.#settle(run, record, null, rejected(reason, { errorType: "CRASH_POISON" }), 0);
    this.#tell(run);
  }

  #tell({ errors, unsettled }: Run): ReadonlySet<string> {
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
        const reason = record.fault === null ? `It could not be translated: ${reasonOf(error)}` : reasonOf(error);
        faulty.push({ record, failed: rejected(reason, { error }) });
      }
    }
    return { pending, faulty };
  }

  /** One publish. Returns what is still to be sent, in its order. */
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
      // Not sent, because one of its key before it failed: that one waits for its retry, this one goes on.
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
    let unknown = retry("The destination did not say what became of it", { scope: "destination" });
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

  /** Gives a publish up when its time is over, and does not wait for one that goes on all the same. */
  async #limit(timeoutMs: number, giveUp: AbortController, done: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    await clock.sleep(timeoutMs, done);
    if (done.aborted) return;
    giveUp.abort();
    await clock.sleep(GRACE_MS, done);
    if (!done.aborted) throw new RelayError("PUBLISH_UNKNOWN", "The destination did not answer in time.");
  }

  /** Writes down what became of an intent, and tells it. */
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

/** For destinations that would take the next of a key although they refused the one before it. */
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
