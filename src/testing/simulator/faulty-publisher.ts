import type { Message } from "../../core/event.ts";
import { delivered, type Outcome, rejected, retry, skipped } from "../../core/outcome.ts";
import type { Publisher, PublisherCapabilities, Report } from "../../ports/publisher.ts";
import type { EventFates } from "./event-fates.ts";
import { MESSAGE_FAULTS, type MessageFault, PUBLISH_FAULTS, type PublishFault } from "./faults.ts";
import type { Send } from "./history.ts";
import { pauseBriefly, type World } from "./port-call.ts";
import type { SimBroker } from "./sim-broker.ts";
import type { SimProcess } from "./sim-process.ts";

/** One process's way to a destination, with faults at every publish and every message. */
export class FaultyPublisher implements Publisher {
  readonly name: string;
  readonly capabilities: PublisherCapabilities;
  readonly #world: World;
  readonly #broker: SimBroker;
  readonly #fates: EventFates;
  readonly #process: SimProcess;
  /** Messages per key without an answer so far. */
  readonly #onWire = new Map<string, number>();

  constructor(world: World, broker: SimBroker, fates: EventFates, process: SimProcess) {
    this.name = broker.options.name;
    const { keyOrderInBatch, deduplicates } = broker.options;
    this.capabilities = { keyOrderInBatch, deduplicates };
    this.#world = world;
    this.#broker = broker;
    this.#fates = fates;
    this.#process = process;
  }

  publish(batch: readonly Message[], report: Report, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const { faults, history } = this.#world;
      if (!this.#process.isAlive || history.isSpinning()) return;
      const fault = faults.draw(PUBLISH_FAULTS);
      if (fault !== null) {
        faults.count(fault);
        history.note(this.#process.name, `! ${fault} at publish`);
      }
      this.#checkLease();
      this.#checkKeys(batch);
      if (fault === "crash before publish") return this.#process.crash();
      if (fault === "pause before publish") pauseBriefly(this.#world, this.#process);
      const over = (messages: readonly Message[]): void => this.#forgetKeys(messages);
      const ending = { over, resolve, reject };
      const { world, broker, fates, process } = {
        world: this.#world,
        broker: this.#broker,
        fates: this.#fates,
        process: this.#process,
      };
      const publish = new Publish(world, broker, fates, process, fault, batch, report, signal, ending);
      this.#process.reach(0, () => publish.start());
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** The engine cannot know of a machine that slept for less than a second, or whose clock was set to hide it. */
  #checkLease(): void {
    const { time, leaseMs, leaseMarginMs, history } = this.#world;
    const { wasSuspended, wasClockSet } = this.#process;
    if (wasSuspended && wasClockSet) return;
    const slackMs = wasSuspended ? 1_000 : 1;
    const overdueMs = time.nowMs - (this.#process.leaseFromMs + leaseMs - leaseMarginMs + slackMs);
    if (overdueMs <= 0) return;
    history.violate("lease", `${this.#process.name} publishes ${overdueMs.toFixed(0)} ms after the end of its lease`);
  }

  #checkKeys(batch: readonly Message[]): void {
    const before = new Set(this.#onWire.keys());
    for (const { key } of batch) {
      if (key === null) continue;
      if (before.has(key)) {
        this.#world.history.violate("R", `${this.#process.name} sends ${key} while it is on the wire already`);
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
  /** These are no longer on the wire. */
  readonly over: (messages: readonly Message[]) => void;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Messages leave one after another; the broker works through them in that order and answers each. */
class Publish {
  readonly #world: World;
  readonly #broker: SimBroker;
  readonly #fates: EventFates;
  readonly #process: SimProcess;
  readonly #fault: PublishFault | null;
  readonly #batch: readonly Message[];
  readonly #report: Report;
  readonly #signal: AbortSignal;
  readonly #ending: Ending;
  /** Keys whose later messages in this batch are kept back. */
  readonly #failedKeys = new Map<string, "failed" | "stuck">();
  readonly #waiting: Map<number, Message>;
  #slowMs = 0;
  #struckAt = 0;
  /** When the last one arrives: none overtakes another on its way. */
  #arrivesMs = 0;
  #isOver = false;
  /** Nothing that arrives from now on counts: the connection is gone. */
  #isCut = false;

  constructor(
    world: World,
    broker: SimBroker,
    fates: EventFates,
    process: SimProcess,
    fault: PublishFault | null,
    batch: readonly Message[],
    report: Report,
    signal: AbortSignal,
    ending: Ending,
  ) {
    this.#world = world;
    this.#broker = broker;
    this.#fates = fates;
    this.#process = process;
    this.#fault = fault;
    this.#batch = batch;
    this.#report = report;
    this.#signal = signal;
    this.#ending = ending;
    this.#waiting = new Map(batch.entries());
  }

  start(): void {
    if (this.#signal.aborted) {
      this.#giveUp();
      return;
    }
    this.#signal.addEventListener("abort", () => this.#giveUp(), { once: true });
    const { random } = this.#world;
    this.#slowMs = this.#fault === "slow publish" ? random.between(0.1, 1.2) * this.#world.leaseMs : 0;
    this.#struckAt = random.int(0, this.#batch.length - 1);
    this.#process.reach(random.between(0.1, 2), () => this.#depart(0));
  }

  /** One after the other, also when the process was paused between two of them. */
  #depart(index: number): void {
    const message = this.#batch[index];
    if (message === undefined || this.#isOver || this.#signal.aborted) return;
    const { history, time, faults, random } = this.#world;
    const crash = this.#fates.crashes(message);
    if (crash === "before") {
      this.#process.crash();
      return;
    }
    if (index === this.#struckAt) this.#strikeAmid();
    const { id, key } = message.event;
    const content = message.payload.toString("latin1");
    const send: Send = {
      id,
      key,
      content,
      process: this.#process.name,
      sentAtMs: time.nowMs,
      arrived: false,
      answer: null,
    };
    history.sends.push(send);
    const fault = faults.draw(MESSAGE_FAULTS);
    const travelMs = random.between(0.1, 2) + this.#fates.delayMs(message);
    this.#arrivesMs = Math.max(this.#arrivesMs, time.nowMs + this.#slowMs) + travelMs;
    time.after(this.#arrivesMs - time.nowMs, () => this.#arrive(index, message, send, fault));
    if (crash === "after") this.#process.crash();
    this.#process.reach(random.between(0.01, 0.5), () => this.#depart(index + 1));
  }

  #strikeAmid(): void {
    if (this.#fault === "crash amid publish") this.#process.crash();
    if (this.#fault === "pause amid publish") pauseBriefly(this.#world, this.#process);
    if (this.#fault === "connection lost") {
      this.#isCut = true;
      this.#process.reach(1, () => this.#end(new Error(`${this.#broker.options.name}: connection reset`)));
    }
  }

  /** At the broker. The process may be paused, crashed or no longer interested. */
  #arrive(index: number, message: Message, send: Send, drawn: MessageFault | null): void {
    if (this.#isCut) return;
    const { key } = message;
    const before = key === null ? undefined : this.#failedKeys.get(key);
    if (before === "stuck") return;
    if (before === "failed") {
      this.#answer(index, send, skipped);
      return;
    }
    const refusal = this.#refusal(message);
    const fault = refusal !== null ? null : this.#fates.isSilent(message) ? "hang" : drawn;
    if (fault !== null) this.#strikeMessage(fault, message);
    const outcome = refusal ?? this.#outcome(message, fault);
    if (outcome === delivered || fault === "hang after effect" || fault === "failed after effect") {
      this.#broker.accept(message, send);
    } else if (key !== null && this.#broker.options.keyOrderInBatch) {
      this.#failedKeys.set(key, outcome === null ? "stuck" : "failed");
    }
    if (outcome !== null) this.#answer(index, send, outcome);
  }

  /** What the destination has against the message, without any fault of the moment. */
  #refusal(message: Message): Outcome | null {
    if (!this.#broker.isUp) return retry("destination: down", { scope: "destination" });
    if (!this.#broker.isTopicUp(message.topic)) return retry(`topic: ${message.topic} is down`, { scope: "topic" });
    return this.#fates.refusal(message);
  }

  /** Null when there never is an answer. */
  #outcome(message: Message, fault: MessageFault | null): Outcome | null {
    const { id } = message.event;
    const afterMs = this.#world.random.int(10, 3_000);
    switch (fault) {
      case "hang":
      case "hang after effect":
        return null;
      case "retry event":
      case "failed after effect":
        return retry(`event: ${id} failed`);
      case "retry after":
        return retry(`event: ${id} must wait`, { afterMs });
      case "retry topic":
        return retry("topic: busy", { scope: "topic" });
      case "retry destination":
        return retry("destination: busy", { scope: "destination" });
      case "rejected":
        return rejected(`event: ${id} is refused for good`);
      default:
        return delivered;
    }
  }

  #strikeMessage(fault: MessageFault, message: Message): void {
    const { faults, history, database } = this.#world;
    const { id } = message.event;
    faults.count(fault);
    history.note(this.#process.name, `! ${fault} of ${id}`);
    if (fault !== "row deleted in flight" && fault !== "row marked in flight") return;
    const isThere = database.model.tables.open.has(id);
    if (!isThere || !database.isUp) return;
    if (fault === "row deleted in flight") database.model.delete(id);
    else database.model.mark(id);
    for (const event of history.written) {
      if (event.id === id && event.gone === null) event.gone = fault === "row deleted in flight" ? "deleted" : "marked";
    }
  }

  #answer(index: number, send: Send, outcome: Outcome): void {
    const { random, time, history } = this.#world;
    this.#process.reach(random.between(0.1, 2), () => {
      if (this.#isOver) return;
      const reason = outcome.kind === "delivered" || outcome.kind === "skipped" ? "" : outcome.reason;
      const kind = outcome.kind === "retry" ? `retry ${outcome.scope}` : outcome.kind;
      const afterMs = outcome.kind === "retry" ? (outcome.afterMs ?? 0) : 0;
      send.answer = { kind, reason, afterMs, atMs: time.nowMs };
      history.note(this.#process.name, `told ${kind} of ${send.id}`);
      this.#ending.over([this.#batch[index]!]);
      this.#waiting.delete(index);
      this.#report(index, outcome);
      if (this.#waiting.size === 0) this.#end(null);
    });
  }

  /** What is on the wire may arrive until the connection is gone; afterwards only where the protocol cannot help it. */
  #giveUp(): void {
    const { random } = this.#world;
    this.#process.reach(random.between(0, random.pick([1, 10, 200])), () => {
      if (!this.#broker.options.deliversAfterAbort) this.#isCut = true;
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
