import type { Message } from "../../core/event.ts";
import { type Outcome, skipped } from "../../core/outcome.ts";
import type { Publisher, PublisherCapabilities, Report } from "../../ports/publisher.ts";
import type { Transactions } from "../../ports/transactions.ts";
import { MESSAGE_FAULTS, type MessageFault, PUBLISH_FAULTS, type PublishFault } from "./faults.ts";
import { FaultyTransactions } from "./faulty-transactions.ts";
import type { Send } from "./history.ts";
import { checkLease, MessageJudge, type Way } from "./message-judge.ts";
import { pauseBriefly } from "./port-call.ts";

/** A process's publisher with faults at every publish and every message. */
export class FaultyPublisher implements Publisher {
  readonly name: string;
  readonly capabilities: PublisherCapabilities;
  readonly transactions?: Transactions;
  readonly #way: Way;
  /** Number of unanswered messages per key. */
  readonly #onWire = new Map<string, number>();

  constructor(way: Way) {
    const { options, transactions } = way.broker;
    const { name, keyOrderInBatch, deduplicates } = options;
    this.name = name;
    this.capabilities = { keyOrderInBatch, deduplicates };
    this.#way = way;
    if (transactions !== null) this.transactions = new FaultyTransactions(way, transactions);
  }

  publish(batch: readonly Message[], report: Report, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const { world, process } = this.#way;
      const { faults, history } = world;
      if (!process.isAlive || history.isSpinning()) return;
      this.#way.broker.requests += 1;
      const fault = faults.draw(PUBLISH_FAULTS);
      if (fault !== null) {
        faults.count(fault);
        history.note(process.name, `! ${fault} at publish`);
      }
      if (this.transactions !== undefined) history.violate("X", "a message was sent outside of a transaction");
      checkLease(this.#way);
      this.#checkKeys(batch);
      if (fault === "crash before publish") return process.crash();
      if (fault === "pause before publish") pauseBriefly(world, process);
      const over = (messages: readonly Message[]): void => this.#forgetKeys(messages);
      const publish = new Publish(this.#way, fault, batch, report, signal, { over, resolve, reject });
      process.reach(0, () => publish.start());
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #checkKeys(batch: readonly Message[]): void {
    const before = new Set(this.#onWire.keys());
    for (const { key } of batch) {
      if (key === null) continue;
      if (before.has(key)) {
        const { world, process } = this.#way;
        world.history.violate("R", `${process.name} sends ${key} while an earlier send of the key is unanswered`);
      }
      this.#onWire.set(key, (this.#onWire.get(key) ?? 0) + 1);
    }
  }

  #forgetKeys(messages: readonly Message[]): void {
    for (const { key } of messages) {
      const left = key === null ? 0 : (this.#onWire.get(key) ?? 0) - 1;
      if (key !== null && left > 0) this.#onWire.set(key, left);
      else if (key !== null) this.#onWire.delete(key);
    }
  }
}

interface Ending {
  /** Removes answered messages. */
  readonly over: (messages: readonly Message[]) => void;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Messages leave one after another; the broker processes them in that order and answers each. */
class Publish {
  readonly #way: Way;
  readonly #judge: MessageJudge;
  readonly #fault: PublishFault | null;
  readonly #batch: readonly Message[];
  readonly #report: Report;
  readonly #signal: AbortSignal;
  readonly #ending: Ending;
  /** Keys whose later messages in this batch are held back. */
  readonly #failedKeys = new Map<string, "failed" | "stuck">();
  readonly #waiting: Map<number, Message>;
  /**
   * Every second publish is answered like one of Kafka: an answer brings all those along that the broker has given in
   * the meantime, and the engine gets them in one turn. The others bring one message each, in any order.
   */
  readonly #answersTogether: boolean;
  readonly #answers = new Map<number, { readonly send: Send; readonly outcome: Outcome }>();
  #slowMs = 0;
  #struckAt = 0;
  /** Arrival time of the last message: messages do not overtake each other. */
  #arrivesMs = 0;
  #isOver = false;
  /** The connection is closed: later arrivals are dropped. */
  #isCut = false;

  constructor(
    way: Way,
    fault: PublishFault | null,
    batch: readonly Message[],
    report: Report,
    signal: AbortSignal,
    ending: Ending,
  ) {
    this.#way = way;
    this.#judge = new MessageJudge(way);
    this.#fault = fault;
    this.#batch = batch;
    this.#report = report;
    this.#signal = signal;
    this.#ending = ending;
    this.#waiting = new Map(batch.entries());
    this.#answersTogether = way.broker.requests % 2 === 0;
  }

  start(): void {
    if (this.#signal.aborted) {
      this.#giveUp();
      return;
    }
    this.#signal.addEventListener("abort", () => this.#giveUp(), { once: true });
    const { random } = this.#way.world;
    this.#slowMs = this.#fault === "slow publish" ? random.between(0.1, 1.2) * this.#way.world.leaseMs : 0;
    this.#struckAt = random.int(0, this.#batch.length - 1);
    this.#way.process.reach(random.between(0.1, 2), () => this.#depart(0));
  }

  /** Sends one after another, even if the process is paused in between. */
  #depart(index: number): void {
    const message = this.#batch[index];
    if (message === undefined || this.#isOver || this.#signal.aborted) return;
    const { history, time, faults, random } = this.#way.world;
    const crash = this.#way.fates.crashes(message);
    if (crash === "before") {
      this.#way.process.crash();
      return;
    }
    if (index === this.#struckAt) this.#strikeAmid();
    const send = history.sent(message, this.#way.process.name);
    const fault = faults.draw(MESSAGE_FAULTS);
    const travelMs = random.between(0.1, 2) + this.#way.fates.delayMs(message);
    this.#arrivesMs = Math.max(this.#arrivesMs, time.nowMs + this.#slowMs) + travelMs;
    time.after(this.#arrivesMs - time.nowMs, () => this.#arrive(index, message, send, fault));
    if (crash === "after") this.#way.process.crash();
    this.#way.process.reach(random.between(0.01, 0.5), () => this.#depart(index + 1));
  }

  #strikeAmid(): void {
    if (this.#fault === "crash amid publish") this.#way.process.crash();
    if (this.#fault === "pause amid publish") pauseBriefly(this.#way.world, this.#way.process);
    if (this.#fault === "connection lost") {
      this.#isCut = true;
      this.#way.process.reach(1, () => this.#end(new Error(`${this.#way.broker.options.name}: connection reset`)));
    }
  }

  /** Runs at the broker. The process may be paused or crashed, or may have given up. */
  #arrive(index: number, message: Message, send: Send, drawn: MessageFault | null): void {
    if (this.#isCut) return;
    const { key } = message;
    const before = key === null ? undefined : this.#failedKeys.get(key);
    if (before === "stuck") return;
    if (before === "failed") {
      this.#answer(index, send, skipped);
      return;
    }
    const { outcome, arrives } = this.#judge.judge(message, drawn);
    if (arrives) {
      this.#way.broker.accept(message, send);
    } else if (key !== null && this.#way.broker.options.keyOrderInBatch) {
      this.#failedKeys.set(key, outcome === null ? "stuck" : "failed");
    }
    if (outcome !== null) this.#answer(index, send, outcome);
  }

  #answer(index: number, send: Send, outcome: Outcome): void {
    this.#answers.set(index, { send, outcome });
    this.#way.process.reach(this.#way.world.random.between(0.1, 2), () => {
      for (const at of this.#answersTogether ? [...this.#answers.keys()] : [index]) this.#receive(at);
    });
  }

  #receive(index: number): void {
    const answer = this.#answers.get(index);
    if (this.#isOver || answer === undefined) return;
    this.#answers.delete(index);
    this.#way.world.history.answered(answer.send, answer.outcome);
    this.#ending.over([this.#batch[index]!]);
    this.#waiting.delete(index);
    this.#report(index, answer.outcome);
    if (this.#waiting.size === 0) this.#end(null);
  }

  /** Messages on the wire may arrive until the connection closes; afterwards only if the protocol cannot prevent it. */
  #giveUp(): void {
    const { random } = this.#way.world;
    this.#way.process.reach(random.between(0, random.pick([1, 10, 200])), () => {
      if (!this.#way.broker.options.deliversAfterAbort) this.#isCut = true;
      this.#end(new Error("the publish was given up"));
    });
  }

  #end(error: Error | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#ending.over([...this.#waiting.values()]);
    if (error === null) this.#ending.resolve();
    else this.#ending.reject(error);
  }
}
