import type { Message } from "../../core/event.ts";
import { delivered, type Outcome, skipped } from "../../core/outcome.ts";
import type { CommittedBatch, LaneAddress } from "../../ports/transactions.ts";
import { MESSAGE_FAULTS, type MessageFault, type TransactionFault } from "./faults.ts";
import type { Send } from "./history.ts";
import { MessageJudge, type Way } from "./message-judge.ts";
import { pauseBriefly } from "./port-call.ts";
import { answerTimeoutMs, type Broker, lateness, unanswered } from "./transaction-request.ts";

interface Sent {
  readonly messages: readonly Message[];
  readonly note: CommittedBatch;
  readonly fault: TransactionFault | null;
  readonly signal: AbortSignal;
  readonly onWrite: () => void;
  readonly answer: {
    readonly resolve: (outcomes: readonly Outcome[]) => void;
    readonly reject: (error: unknown) => void;
  };
}

/**
 * The messages of a transaction leave one after another, the ledger note comes last, and there is one answer to all. A fault
 * leaves only some of them in the transaction.
 */
export class TransactionSend {
  readonly #way: Way;
  readonly #broker: Broker;
  readonly #judge: MessageJudge;
  readonly #address: LaneAddress;
  readonly #epoch: number;
  readonly #sent: Sent;
  readonly #sends: Send[] = [];
  readonly #refused = new Map<number, Outcome>();
  readonly #struckAt: number;
  /** The broker stops at the first message that it refuses. */
  readonly #stopsAtRefusal: boolean;
  #slowMs = 0;
  /** Arrival time of the last message: messages do not overtake each other. */
  #arrivesMs = 0;
  /** Messages from this index on are dropped. */
  #isCut = false;
  #isOver = false;

  constructor(way: Way, broker: Broker, lane: { address: LaneAddress; epoch: number }, sent: Sent) {
    this.#way = way;
    this.#broker = broker;
    this.#judge = new MessageJudge(way);
    this.#address = lane.address;
    this.#epoch = lane.epoch;
    this.#sent = sent;
    const { random } = way.world;
    this.#struckAt = random.int(0, sent.messages.length - 1);
    this.#stopsAtRefusal = random.chance(0.5);
  }

  start(): void {
    const { signal, fault } = this.#sent;
    const { random, leaseMs } = this.#way.world;
    if (signal.aborted) {
      this.#giveUp(0);
      return;
    }
    signal.addEventListener("abort", () => this.#giveUp(random.between(0, random.pick([1, 10, 200]))), { once: true });
    this.#slowMs = fault === "slow transaction" ? random.between(0.02, 0.5) * leaseMs : 0;
    this.#way.process.reach(random.between(0.1, 2), () => this.#depart(0));
  }

  #depart(index: number): void {
    const { fates, process, world } = this.#way;
    const { faults, history, random } = world;
    if (this.#isOver || this.#sent.signal.aborted) return;
    const message = this.#sent.messages[index];
    if (message === undefined) {
      this.#travel(() => this.#arriveNote());
      return;
    }
    const crash = fates.crashes(message);
    if (crash === "before") process.crash();
    if (!process.isAlive || (index === this.#struckAt && this.#strikes())) return;
    const send = history.sent(message, process.name);
    this.#sends.push(send);
    const fault = faults.draw(MESSAGE_FAULTS);
    this.#travel(() => this.#arrive(index, message, send, fault));
    if (crash === "after") process.crash();
    process.reach(random.between(0.01, 0.5), () => this.#depart(index + 1));
  }

  #travel(arrive: () => void): void {
    const { random, time } = this.#way.world;
    this.#arrivesMs = Math.max(this.#arrivesMs, time.nowMs + this.#slowMs) + random.between(0.1, 2);
    time.after(this.#arrivesMs - time.nowMs, arrive);
  }

  /** True if the process stops here. */
  #strikes(): boolean {
    const { process, world } = this.#way;
    if (this.#sent.fault === "pause amid transaction") pauseBriefly(world, process);
    if (this.#sent.fault === "crash amid transaction") process.crash();
    if (this.#sent.fault !== "connection lost in transaction") return !process.isAlive;
    this.#giveUp(1);
    return true;
  }

  /** Runs at the broker. The process may be paused or crashed, or may have given up. */
  #arrive(index: number, message: Message, send: Send, drawn: MessageFault | null): void {
    const { broker, world } = this.#way;
    if (this.#isCut || (this.#stopsAtRefusal && this.#refused.size > 0)) return;
    if (!broker.isUp && world.random.chance(0.5)) return void this.#loseRest();
    if (index === this.#struckAt && !this.#survives(message, send)) return;
    const { outcome, arrives } = this.#judge.judge(message, drawn);
    if (outcome !== null && outcome !== delivered) this.#refused.set(index, outcome);
    const isWritten = arrives && this.#write([{ message, send }], null);
    if (outcome === null) this.#isCut = true;
    if (isWritten && index === this.#struckAt && this.#sent.fault === "retried without an answer") {
      const own = this.#broker.openIn(this.#address);
      world.time.after(lateness(this.#way), () => this.#arriveLate(message, send, own));
    }
  }

  /** False if a fault keeps the message from arriving now. */
  #survives(message: Message, send: Send): boolean {
    const { time } = this.#way.world;
    const { fault } = this.#sent;
    if (fault === "transaction timed out") this.#broker.expire(this.#address);
    if (fault === "transaction request lost") this.#loseRest();
    if (fault === "late transaction request") {
      const timeoutMs = this.#loseRest();
      time.after(timeoutMs + lateness(this.#way), () => this.#arriveLate(message, send, null));
    }
    return !this.#isCut;
  }

  /**
   * Arrives alone and after all others. The broker detects a duplicate within the same transaction, and a duplicate does not
   * begin a transaction; but it cannot detect that a request belongs to a transaction that has ended.
   */
  #arriveLate(message: Message, send: Send, isCopyIn: number | null): void {
    const { broker, process, world } = this.#way;
    const open = this.#broker.openIn(this.#address);
    if (!broker.isUp || (isCopyIn !== null && (open === null || open === isCopyIn))) return;
    world.history.note(process.name, `send of ${send.id} arrives late`);
    this.#write([{ message, send }], null);
  }

  #arriveNote(): void {
    const { broker, process, world } = this.#way;
    if (this.#isCut) return;
    if (!broker.isUp) return void this.#loseRest();
    if (this.#refused.size === 0 && !this.#write([], this.#sent.note)) return;
    if (this.#sent.fault === "transaction answer lost") return void this.#loseRest();
    const hasRefused = this.#refused.size > 0;
    const outcomes = this.#sends.map((_, index) => this.#refused.get(index) ?? (hasRefused ? skipped : delivered));
    process.reach(world.random.between(0.1, 2), () => {
      if (this.#isOver) return;
      this.#isOver = true;
      for (const [index, outcome] of outcomes.entries()) {
        world.history.answered(this.#sends[index]!, outcome, this.#isOutOfTurn(index));
      }
      this.#sent.answer.resolve(outcomes);
    });
  }

  /** A refused message with an earlier message of its key in the transaction. */
  #isOutOfTurn(index: number): boolean {
    const { key } = this.#sends[index]!;
    const isFirst = key === null || this.#sends.findIndex((send) => send.key === key) === index;
    return this.#refused.has(index) && !isFirst;
  }

  /** False if the broker refuses the user of the lane, which it answers at once. */
  #write(records: readonly { message: Message; send: Send }[], note: CommittedBatch | null): boolean {
    const { process, world } = this.#way;
    try {
      this.#broker.write(this.#address, this.#epoch, records, note);
      this.#sent.onWrite();
      return true;
    } catch (error) {
      this.#isCut = true;
      process.reach(world.random.between(0.1, 2), () => this.#fail(error));
      return false;
    }
  }

  /** The remaining messages and the answer are lost. Returns when the client notices. */
  #loseRest(): number {
    this.#isCut = true;
    const timeoutMs = answerTimeoutMs(this.#way);
    this.#giveUp(timeoutMs);
    return timeoutMs;
  }

  #giveUp(afterMs: number): void {
    const { broker, process } = this.#way;
    process.reach(afterMs, () => this.#fail(unanswered(broker.options.name, "send")));
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { process, world } = this.#way;
    world.history.disturb(process.name, "send failed");
    world.history.note(process.name, "send failed");
    this.#sent.answer.reject(error);
  }
}
