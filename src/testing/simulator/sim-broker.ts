import type { Message } from "../../core/event.ts";
import type { PublisherCapabilities } from "../../ports/publisher.ts";
import type { CommittedBatch, LaneAddress } from "../../ports/transactions.ts";
import { TransactionBroker } from "../../publishers/memory/memory-transaction-broker.ts";
import { markOf } from "../../relay/ledger-marks.ts";
import type { Send } from "./history.ts";
import type { World } from "./port-call.ts";
import type { OnlyKeyPlan } from "./scenario.ts";

export interface BrokerOptions extends PublisherCapabilities {
  readonly name: string;
  /** Messages on the wire may still arrive after the publish was abandoned. */
  readonly deliversAfterAbort: boolean;
  /** Null: no transactions. Otherwise every message is in a transaction, and readers see committed ones only. */
  readonly transactions: TransactionOptions | null;
}

export interface TransactionOptions {
  readonly ringSize: number;
  readonly timeoutMs: number;
}

/** A message in a transaction. */
export interface TransactionRecord {
  readonly message: Message;
  readonly send: Send;
}

/** The destination, outside of all processes: the messages that arrived, and the faults that are active. */
export class SimBroker {
  readonly options: BrokerOptions;
  readonly transactions: TransactionBroker<TransactionRecord> | null;
  /** The last visible batch number, by pipeline and lane. */
  readonly lastBatches = new Map<string, bigint>();
  /** Number of publishes and transaction requests that were sent to it. */
  requests = 0;
  readonly #world: World;
  readonly #known = new Set<string>();
  readonly #topicsUpAtMs = new Map<string, number>();
  #upAtMs = 0;
  #outageUntilMs = 0;

  /** The only key that it accepts; null: all keys. */
  readonly onlyKey: OnlyKeyPlan | null;

  constructor(options: BrokerOptions, world: World, onlyKey: OnlyKeyPlan | null) {
    this.options = options;
    this.onlyKey = onlyKey?.destination === options.name ? onlyKey : null;
    this.#world = world;
    const nowMs = () => world.time.nowMs;
    this.transactions =
      options.transactions === null ? null : new TransactionBroker({ ...options.transactions, nowMs });
    this.transactions?.onVisible((records, notes, lane) => this.#show(records, notes, lane));
  }

  get isUp(): boolean {
    return this.#world.time.nowMs >= Math.max(this.#upAtMs, this.#outageUntilMs);
  }

  isTopicUp(topic: string): boolean {
    return this.#world.time.nowMs >= (this.#topicsUpAtMs.get(topic) ?? 0);
  }

  goDown(forMs: number): void {
    this.#upAtMs = Math.max(this.#upAtMs, this.#world.time.nowMs + forMs);
    this.#world.history.note(this.options.name, `down for ${forMs} ms`);
  }

  /** A long outage that lasts beyond all other faults. */
  beginOutage(forMs: number): void {
    this.#outageUntilMs = this.#world.time.nowMs + forMs;
    this.#world.history.note(this.options.name, `has an outage of ${forMs} ms`);
  }

  takeTopicDown(topic: string, forMs: number): void {
    this.#topicsUpAtMs.set(topic, this.#world.time.nowMs + forMs);
    this.#world.history.note(this.options.name, `topic ${topic} down for ${forMs} ms`);
  }

  comeUp(): void {
    this.#upAtMs = 0;
    this.#topicsUpAtMs.clear();
  }

  /** Stores the message. A deduplicating destination keeps only the first one. */
  accept(message: Message, send: Send): void {
    const { history, time } = this.#world;
    send.arrived = true;
    const { id } = message.event;
    const content = message.payload.toString("latin1");
    if (this.options.deduplicates && this.#known.has(id)) return;
    this.#known.add(id);
    history.note(send.process, `arrived ${id} of ${message.key} at ${this.options.name}`);
    const { process } = send;
    const destination = this.options.name;
    history.arrivals.push({ id, key: message.key, content, destination, process, atMs: time.nowMs });
  }

  /** Makes a transaction visible: all of it, and only events that its ledger note names. */
  #show(records: readonly TransactionRecord[], notes: readonly CommittedBatch[], lane: LaneAddress): void {
    const { history } = this.#world;
    for (const { message, send } of records) this.accept(message, send);
    const [note] = notes;
    const marks = records.map(({ message }) => markOf(message.event));
    if (note === undefined || notes.length > 1 || note.ids.join() !== marks.join()) {
      const noted = notes.map(({ batch, ids }) => `${batch} (${namesOf(ids)})`).join(" and ");
      history.violate("X", `${namesOf(marks)} became visible, but the ledger says ${noted || "nothing"}`);
      return;
    }
    const name = `${lane.pipeline} ${lane.lane}`;
    const settled = history.settledBatches.get(name) ?? 0n;
    // Half of the ring is for unsettled batches, the other half for batches that a failover loses.
    if (note.batch - settled > Math.max(1, (this.transactions?.ringSize ?? 0) >> 1)) {
      history.violate("X", `batch ${note.batch} of ${name} was committed when only ${settled} was settled`);
    }
    this.lastBatches.set(name, note.batch);
  }
}

function namesOf(marks: readonly string[]): string {
  return marks.map((mark) => mark.split("\n")[0]).join(" ");
}
