import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { Message } from "../../core/event.ts";
import type { Outcome } from "../../core/outcome.ts";
import type { CommittedBatch, LaneAddress, LaneTransactions, Transactions } from "../../ports/transactions.ts";
import type { ContractCase } from "./contract-case.ts";
import type { Received } from "./publisher-subject.ts";

/** Far below what waiting for the broker would take, and enough for a machine that has other work. */
export const PROMPTLY_MS = 10_000;
/** How long a call may try whose answer is lost. */
export const GIVE_UP_MS = 2_000;
const TIMEOUT_MS = 60_000;
const SLOTS = 4;

/** Users, lanes and messages of one case. */
class TransactionsStage {
  readonly subject: TransactionsSubject;
  readonly database = randomUUID();
  readonly #users: TransactionsUser[] = [];
  readonly #nameById = new Map<string, string>();

  constructor(subject: TransactionsSubject) {
    this.subject = subject;
  }

  /** A process that has prepared the ledger. */
  async user(): Promise<Transactions> {
    const user = await this.subject.user();
    this.#users.push(user);
    await user.transactions.prepare(SLOTS);
    return user.transactions;
  }

  /** Lane 0 of this stage's database by default. */
  lane(changes: Partial<LaneAddress> = {}): LaneAddress {
    const lane = changes.lane ?? 0;
    return { database: this.database, pipeline: "orders", lane, slot: lane, ...changes };
  }

  /** `messages("a1 a2 b1")`: `a1` is of key `a`. */
  messages(names: string): Message[] {
    return names.split(" ").map((name) => {
      const id = randomUUID();
      this.#nameById.set(id, name);
      const key = keyOf(name);
      const payload = Buffer.from(JSON.stringify({ name }));
      const topic = this.subject.topic;
      const headers = { "event-id": id };
      const event = { id, type: topic, key, payload, headers, correlationId: null, createdAt: null };
      return { event, topic, key, headers, payload };
    });
  }

  /** Puts the messages and their note into a transaction and leaves it open. */
  async open(lane: LaneTransactions, batch: bigint, names: string): Promise<CommittedBatch> {
    const messages = this.messages(names);
    const note = noteOf(batch, messages);
    const outcomes = await lane.send(messages, note, unaborted());
    assertKinds(
      outcomes,
      messages.map(() => "delivered"),
    );
    return note;
  }

  async commit(lane: LaneTransactions, batch: bigint, names: string): Promise<CommittedBatch> {
    const note = await this.open(lane, batch, names);
    await lane.commit(unaborted());
    return note;
  }

  /** Continues as the engine does: on the same lane, or after a new fence if the session is spent. */
  async next(user: Transactions, lane: LaneTransactions, address = this.lane()): Promise<LaneTransactions> {
    if (!lane.isSpent) return lane;
    await lane.close();
    return user.fence(address, unaborted());
  }

  /** `a1 a2 b1`: what a consumer sees, by key in order of arrival. A commit may become visible with a delay. */
  async assertVisible(names: string): Promise<void> {
    const giveUpMs = performance.now() + TIMEOUT_MS;
    let seen = await this.#visible();
    while (seen !== names && performance.now() < giveUpMs) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      seen = await this.#visible();
    }
    assert.equal(seen, names);
  }

  async #visible(): Promise<string> {
    const names = (await this.subject.visible()).map(({ id }) => this.#nameById.get(id) ?? id);
    const keys = [...new Set(names.map(keyOf))].sort();
    return keys.flatMap((key) => names.filter((name) => keyOf(name) === key)).join(" ");
  }

  async close(): Promise<void> {
    for (const user of this.#users) await user.close();
    await this.subject.close();
  }
}

function keyOf(name: string): string {
  return name.replace(/\d+$/, "");
}

export function unaborted(): AbortSignal {
  return new AbortController().signal;
}

export function noteOf(batch: bigint, messages: readonly Message[]): CommittedBatch {
  return { batch, ids: messages.map(({ event }) => event.id) };
}

export function assertKinds(outcomes: readonly Outcome[], kinds: readonly string[]): void {
  const shown = outcomes.map((outcome) => ("reason" in outcome ? `${outcome.kind}: ${outcome.reason}` : outcome.kind));
  assert.deepEqual(
    outcomes.map(({ kind }) => kind),
    kinds,
    shown.join("\n"),
  );
}

/** Must end promptly with an error. */
export async function assertRejectsPromptly(call: Promise<unknown>): Promise<void> {
  const startedMs = performance.now();
  await assert.rejects(call);
  assert.ok(performance.now() - startedMs < PROMPTLY_MS, "it did not end promptly");
}

/** No operation of a fenced user succeeds. */
export async function assertPowerless(
  stage: TransactionsStage,
  zombie: LaneTransactions,
  batch: bigint,
): Promise<void> {
  const messages = stage.messages("z1 z2");
  const attempt = async (): Promise<void> => {
    const outcomes = await zombie.send(messages, noteOf(batch, messages), unaborted());
    assert.ok(outcomes.every(({ kind }) => kind === "delivered"));
    await zombie.commit(unaborted());
  };
  await assert.rejects(attempt());
}

export function numbers(batches: readonly { readonly batch: bigint }[]): bigint[] {
  return batches.map(({ batch }) => batch);
}

/** A rule, its test, and the adapters that it applies to; without the last it applies to all. */
export type TransactionsRule = readonly [
  rule: string,
  prove: (stage: TransactionsStage) => Promise<void>,
  needs?: (capabilities: TransactionsTraits) => boolean,
];

/** Every rule runs on its own destination. */
export function transactionsCases(rules: readonly TransactionsRule[]): readonly ContractCase<TransactionsHarness>[] {
  return rules.map(([rule, prove, needs = () => true]) => ({
    rule,
    needs,
    async run(harness) {
      const stage = new TransactionsStage(await harness.open());
      try {
        await prove(stage);
      } finally {
        await stage.close();
      }
    },
  }));
}

/** What a destination can do in tests; selects the cases that apply to its transactions. */
export interface TransactionsTraits {
  /** It can refuse a single message. */
  readonly refuses: boolean;
  /** It can accept requests without answering. */
  readonly stalls: boolean;
  /** The harness can drop the answer to a commit. */
  readonly losesAnswers: boolean;
}

/** The connection of one process to the destination. */
export interface TransactionsUser {
  readonly transactions: Transactions;
  /** Releases everything, including lanes that were not closed. */
  close(): Promise<void>;
}

/** A destination without messages and without a ledger. */
export interface TransactionsSubject {
  /** A topic that exists or can be created, with a unique name per subject. */
  readonly topic: string;
  /** A new user, as another process would be. Closed by the contract. */
  user(): Promise<TransactionsUser>;
  /** The messages that a `read_committed` consumer has received so far, in order. */
  visible(): Promise<readonly Received[]>;
  /** With `refuses`: changes the message or prepares the destination so that only this message is refused. */
  refuse?(message: Message): Promise<Message>;
  /** With `stalls`. */
  stall?(): Promise<void>;
  resume?(): Promise<void>;
  /** With `losesAnswers`: the next commit takes effect, but its caller gets no answer. */
  loseAnswerToCommit?(): Promise<void>;
  /** Closes the destination. */
  close(): Promise<void>;
}

export interface TransactionsHarness {
  readonly capabilities: TransactionsTraits;
  open(): Promise<TransactionsSubject>;
}
