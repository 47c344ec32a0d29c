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
  /** What was on the wire when a publish was given up may still arrive. */
  readonly deliversAfterAbort: boolean;
  /** Null: it has none. Otherwise they are used for everything, and its readers see what was committed. */
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

/** The destination itself, outside of all processes: what has arrived, and what it refuses at present. */
export class SimBroker {
  readonly options: BrokerOptions;
  readonly transactions: TransactionBroker<TransactionRecord> | null;
  /** The number of the last batch that became visible, by pipeline and lane. */
  readonly lastBatches = new Map<string, bigint>();
  /** Publishes and requests of transactions that were sent to it. */
  requests = 0;
  readonly #world: World;
  readonly #known = new Set<string>();
  readonly #topicsUpAtMs = new Map<string, number>();
  #upAtMs = 0;
  #outageUntilMs = 0;

  /** The one key that it takes; null: all. */
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
    this.#upAtMs = this.#world.time.nowMs + forMs;
    this.#world.history.note(this.options.name, `down for ${forMs} ms`);
  }

  /** Down for long, also when all other faults are over. */
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

  /** The message is in. A destination that deduplicates keeps the first one only. */
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

  /** What its readers see of a transaction: all of it, and never anything that its note does not name. */
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
    // Half of the ring is for what is not settled yet, the other half for what a failover forgets.
    if (note.batch - settled > Math.max(1, (this.transactions?.ringSize ?? 0) >> 1)) {
      history.violate("X", `batch ${note.batch} of ${name} was committed when only ${settled} was settled`);
    }
    this.lastBatches.set(name, note.batch);
  }
}

function namesOf(marks: readonly string[]): string {
  return marks.map((mark) => mark.split("\n")[0]).join(" ");
}
