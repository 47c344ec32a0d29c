import type { Message } from "../../core/event.ts";
import { delivered, type Outcome, rejected, retry } from "../../core/outcome.ts";
import type { EventFates } from "./event-fates.ts";
import type { MessageFault } from "./faults.ts";
import type { World } from "./port-call.ts";
import type { SimBroker } from "./sim-broker.ts";
import type { SimProcess } from "./sim-process.ts";

/** The connection from one process to one destination. */
export interface Way {
  readonly world: World;
  readonly broker: SimBroker;
  readonly fates: EventFates;
  readonly process: SimProcess;
}

interface Judgement {
  /** Null if there is never an answer. */
  readonly outcome: Outcome | null;
  /** Whether the destination has the message, regardless of the answer. */
  readonly arrives: boolean;
}

/** Decides the outcome of a message at the destination, with its current faults. */
export class MessageJudge {
  readonly #way: Way;

  constructor(way: Way) {
    this.#way = way;
  }

  judge(message: Message, drawn: MessageFault | null): Judgement {
    const refusal = this.#refusal(message);
    const fault = refusal !== null ? null : this.#way.fates.isSilent(message) ? "hang" : drawn;
    if (fault !== null) this.#strike(fault, message);
    const outcome = refusal ?? this.#outcome(message, fault);
    const arrives = outcome === delivered || fault === "hang after effect" || fault === "failed after effect";
    return { outcome, arrives };
  }

  /** The outcome without random faults. */
  #refusal(message: Message): Outcome | null {
    const { broker, fates } = this.#way;
    if (!broker.isUp) return retry("destination: down", { scope: "destination" });
    if (!broker.isTopicUp(message.topic)) return retry(`topic: ${message.topic} is down`, { scope: "topic" });
    return this.#refusedKey(message) ?? fates.refusal(message);
  }

  #refusedKey({ event, key }: Message): Outcome | null {
    const { broker, world } = this.#way;
    const { onlyKey } = broker;
    if (onlyKey === null || key === onlyKey.key) return null;
    world.faults.count("one key only");
    return retry(`event: ${event.id} of ${key} is refused as if by the ${onlyKey.scope}`, { scope: onlyKey.scope });
  }

  #outcome(message: Message, fault: MessageFault | null): Outcome | null {
    const { id } = message.event;
    const afterMs = this.#way.world.random.int(10, 3_000);
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

  #strike(fault: MessageFault, message: Message): void {
    const { faults, history, database } = this.#way.world;
    const { id } = message.event;
    faults.count(fault);
    history.note(this.#way.process.name, `! ${fault} of ${id}`);
    if (fault !== "row deleted in flight" && fault !== "row marked in flight") return;
    const isThere = database.model.tables.open.has(id);
    if (!isThere || !database.isUp) return;
    if (fault === "row deleted in flight") database.model.delete(id);
    else database.model.mark(id);
    for (const event of history.written) {
      if (event.id !== id || event.gone !== null) continue;
      history.takeAway(event, fault === "row deleted in flight" ? "deleted" : "marked");
    }
  }
}

/** The engine cannot detect a suspend of less than a second, or one that a clock step hides. */
export function checkLease({ world, process }: Way): void {
  const { time, leaseMs, leaseMarginMs, history } = world;
  const { wasSuspended, wasClockSet } = process;
  if (wasSuspended && wasClockSet) return;
  const slackMs = wasSuspended ? 1_000 : 1;
  const overdueMs = time.nowMs - (process.leaseFromMs + leaseMs - leaseMarginMs + slackMs);
  if (overdueMs <= 0) return;
  history.violate("lease", `${process.name} publishes ${overdueMs.toFixed(0)} ms after its lease expired`);
}
